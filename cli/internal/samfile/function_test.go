package samfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli/internal/samfile"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
)

func addFunction(t *testing.T, template string, f samfile.Function) string {
	t.Helper()
	out, err := samfile.AddFunction(template, f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := samfile.AddFunction(out, f) // takes away what queues that moved left behind
	if err != nil {
		t.Fatal(err)
	}
	third, err := samfile.AddFunction(again, f)
	if diff := cmp.Diff(again, third); err != nil || diff != "" {
		t.Errorf("added a third time: %v\n%s", err, diff)
	}
	if diff := cmp.Diff(out, again); diff != "" && !samfile.Moved(out) {
		t.Errorf("added again: %s", diff)
	}
	return out
}

// A deployment changes the role that a queue leaves first, and makes the mapping of the other function after its canary:
// until the function is added again, both roles may receive.
func TestAddFunction_QueueThatMoves_StaysReadable(t *testing.T) {
	t.Parallel()
	receives := func(template, role string) (own, moved bool) {
		for _, statement := range strings.Split(entryOf(template, role), "- Effect:") {
			if strings.Contains(statement, "sqs:ReceiveMessage") && strings.Contains(statement, "!GetAtt ExportsQueue.Arn") {
				kept := strings.Contains(statement, "Sid: MovedQueues")
				own, moved = own || !kept, moved || kept
			}
		}
		return own, moved
	}
	add := func(template, name string, queues ...string) string {
		out, err := samfile.AddFunction(template, samfile.Function{Name: name, Queues: queues})
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range samtemplate.Faults(evaluate(t, out, nil)) {
			t.Errorf("%s %v: %s", name, queues, fault)
		}
		return out
	}
	template := addQueue(t, addQueue(t, read(t, full), samfile.Queue{Name: "reports"}), samfile.Queue{Name: "exports"})
	template = add(add(template, "slow", "reports"), "slow", "reports")
	for i, step := range []struct {
		function         string
		queues           []string
		bridge, slow, to [2]bool // own, moved
		forgets          bool
	}{
		{"slow", []string{"exports"}, [2]bool{false, true}, [2]bool{true, false}, [2]bool{}, false},
		{"slow", []string{"reports"}, [2]bool{false, true}, [2]bool{true, false}, [2]bool{}, false}, // of another queue
		{"slow", []string{"exports"}, [2]bool{}, [2]bool{true, false}, [2]bool{}, true},
		{"to", []string{"exports"}, [2]bool{}, [2]bool{false, true}, [2]bool{true, false}, false},
		{"slow", []string{"exports"}, [2]bool{}, [2]bool{true, false}, [2]bool{false, true}, false}, // and back
		{"slow", []string{"exports"}, [2]bool{}, [2]bool{true, false}, [2]bool{}, true},
	} {
		before := template
		template = add(template, step.function, step.queues...)
		if forgets := samfile.Forgets(before, template); forgets != step.forgets {
			t.Errorf("step %d: forgets %t", i, forgets)
		}
		for role, want := range map[string][2]bool{"BridgeRole": step.bridge, "SlowBridgeRole": step.slow, "ToBridgeRole": step.to} {
			if own, moved := receives(template, role); own != want[0] || moved != want[1] {
				t.Errorf("step %d: %s may receive: own %v, moved %v, want %v", i, role, own, moved, want)
			}
		}
		if again := addQueue(t, template, samfile.Queue{Name: "exports"}); again != template {
			t.Errorf("step %d: adding the queue again changes it: %s", i, cmp.Diff(template, again))
		}
	}
	if samfile.Moved(template) {
		t.Error("rights of queues that moved are left")
	}
}

// No deployed function takes the wakeups of a queue that is new with its function.
func TestAddFunction_NewQueue_LeavesNoRight(t *testing.T) {
	t.Parallel()
	template := addQueue(t, read(t, full), samfile.Queue{Name: "reports"})
	template = addFunction(t, template, samfile.Function{Name: "slow", Queues: []string{"reports"}, New: []string{"reports"}})
	if samfile.Moved(template) {
		t.Error(entryOf(template, "BridgeRole"))
	}
}

func TestAddFunction_TakesItsQueuesWithItsLimits(t *testing.T) {
	t.Parallel()
	template := addQueue(t, read(t, full), samfile.Queue{Name: "reports"})
	template = addQueue(t, template, samfile.Queue{Name: "orders", FIFO: true})
	f := samfile.Function{Name: "slow", Queues: []string{"reports", "orders"}, Timeout: 900, Memory: 1024, Concurrency: 4}
	template = addFunction(t, template, f)
	for _, parameters := range []map[string]string{nil, {"FifoQueue": "other"}, {"Alarms": "false"}, {"SlowTimeout": "300"}} {
		e := evaluate(t, template, parameters)
		for _, fault := range samtemplate.Faults(e) {
			t.Errorf("%v: %s", parameters, fault)
		}
		bridge, slow := e.Resources["Bridge"].Properties, e.Resources["SlowBridge"].Properties
		if events := eventNames(bridge); events != "FifoWakeups Wakeups" {
			t.Errorf("Bridge has events %s", events)
		}
		if events := eventNames(slow); events != "OrdersWakeups ReportsWakeups" {
			t.Errorf("SlowBridge has events %s", events)
		}
		seconds, visible := "900", 5400
		if parameters["SlowTimeout"] != "" {
			seconds, visible = "300", 1800
		}
		if slow["Timeout"] != seconds || slow["MemorySize"] != "1024" || bridge["Timeout"] != "60" {
			t.Errorf("SlowBridge: %v s, %v MB; Bridge: %v s", slow["Timeout"], slow["MemorySize"], bridge["Timeout"])
		}
		if own := variable(bridge, "RUNLANE_BINDINGS"); own != strings.TrimSuffix("default,"+parameters["FifoQueue"], ",") {
			t.Errorf("Bridge counts %s as its own", own)
		}
		if own := variable(slow, "RUNLANE_BINDINGS"); own != "reports,orders" {
			t.Errorf("SlowBridge counts %s as its own", own)
		}
		for queue, want := range map[string]int{"ReportsQueue": visible, "OrdersQueue": visible, "WorkQueue": 360} {
			if got := e.Resources[queue].Properties["VisibilityTimeout"]; got != want {
				t.Errorf("%s is invisible for %v s, want %d", queue, got, want)
			}
		}
	}
	e := evaluate(t, template, nil)
	for _, alarm := range []string{
		"SlowBridgeErrorsAlarm", "SlowBridgeCanaryAlarm", "SlowBridgeThrottlesAlarm", "SlowInvocationsAlarm", "SlowConcurrencyAlarm",
	} {
		if _, ok := e.Resources[alarm]; !ok {
			t.Errorf("%s is missing", alarm)
		}
	}
	if n := strings.Count(template, "FILL(bridge, 0) + FILL(slow, 0)"); n != strings.Count(read(t, full), "FILL(bridge, 0)") {
		t.Errorf("%d sums have the function", n)
	}
	var board any
	body := fmt.Sprint(e.Resources["Board"].Properties["DashboardBody"])
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Errorf("the board is not JSON: %v\n%s", err, body)
	}
	before := fmt.Sprint(evaluate(t, read(t, full), nil).Resources["Board"].Properties["DashboardBody"])
	if got, want := metricsOf(t, body, "${SlowBridge}"), metricsOf(t, before, "${Bridge}"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the board shows of the function %v, and of the bridge %v", got, want)
	}
	if got, want := metricsOf(t, body, "${Bridge}"), metricsOf(t, before, "${Bridge}"); !slices.Equal(got, want) {
		t.Errorf("the board shows of the bridge %v, and before %v", got, want)
	}
	if e.Outputs["SlowBridgeFunction"].Value != "${SlowBridge}" {
		t.Errorf("output %v", e.Outputs["SlowBridgeFunction"].Value)
	}
}

// metricsOf lists the metrics of the board that have a dimension's value, with what "." repeats written out.
func metricsOf(t *testing.T, body, value string) (list []string) {
	t.Helper()
	var board struct {
		Widgets []struct {
			Properties struct{ Metrics [][]string }
		}
	}
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Fatal(err)
	}
	for _, widget := range board.Widgets {
		above := make([]string, 4)
		for _, metric := range widget.Properties.Metrics {
			for i := range metric {
				if metric[i] != "." {
					above[i] = metric[i]
				}
			}
			if above[3] == value {
				list = append(list, above[0]+" "+above[1])
			}
		}
	}
	return list
}

func variable(properties map[string]any, name string) string {
	environment, _ := properties["Environment"].(map[string]any)
	variables, _ := environment["Variables"].(map[string]any)
	return fmt.Sprint(variables[name])
}

// A template of an earlier version has one statement for all that a bridge may do with queues, and no list of bindings.
func TestAddFunction_TemplateOfAnEarlierVersion_StaysAsItIs(t *testing.T) {
	t.Parallel()
	template := read(t, full)
	from, to := strings.Index(template, "              # The queues of its events.\n"), strings.Index(template, "                Resource: !GetAtt BridgeLogs.Arn")
	statement := template[from:to]
	statement = statement[:strings.LastIndex(statement, "              - Effect: Allow")]
	template = strings.Replace(template, statement, "", 1)
	template = strings.Replace(template, "                  - sqs:GetQueueAttributes\n", "                  - sqs:GetQueueAttributes\n                  - sqs:ReceiveMessage\n", 1)
	template = regexp.MustCompile(`(?m)^ *RUNLANE_BINDINGS.*\n`).ReplaceAllString(template, "")
	template = addQueue(t, template, samfile.Queue{Name: "reports"})
	template = addFunction(t, template, samfile.Function{Name: "slow", Queues: []string{"reports"}})
	if strings.Contains(template, "RUNLANE_BINDINGS") || strings.Contains(entryOf(template, "SlowBridgeRole"), "The queues of its events") {
		t.Error(entryOf(template, "SlowBridgeRole"))
	}
	if n := strings.Count(entryOf(template, "SlowBridgeRole"), "sqs:ReceiveMessage"); n != 1 {
		t.Errorf("%d statements allow to receive", n)
	}
}

func eventNames(properties map[string]any) string {
	events, _ := properties["Events"].(map[string]any)
	var names []string
	for name := range events {
		names = append(names, name)
	}
	return strings.Join(sorted(names), " ")
}

func TestAddFunction_OtherLimits_AreSet(t *testing.T) {
	t.Parallel()
	template := addQueue(t, read(t, full), samfile.Queue{Name: "reports"})
	template = addFunction(t, template, samfile.Function{Name: "slow", Queues: []string{"reports"}, Timeout: 900})
	template = addFunction(t, template, samfile.Function{Name: "slow", Queues: []string{"reports"}, Timeout: 120, Memory: 512})
	slow := evaluate(t, template, nil).Resources["SlowBridge"].Properties
	if slow["Timeout"] != "120" || slow["MemorySize"] != "512" {
		t.Errorf("%v s, %v MB", slow["Timeout"], slow["MemorySize"])
	}
}

func TestAddFunction_QueueWithoutItsOwn_IsNamed(t *testing.T) {
	t.Parallel()
	for _, template := range []string{full, minimal} {
		_, err := samfile.AddFunction(read(t, template), samfile.Function{Name: "slow", Queues: []string{"reports"}})
		if err == nil || err.Error() != "the template has no separate SQS queue for reports" {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// What a copy says of the bridge, it says of the function.
func TestAddFunction_DescriptionsAndComments_AreItsOwn(t *testing.T) {
	t.Parallel()
	template := addQueue(t, read(t, full), samfile.Queue{Name: "reports"})
	template = addFunction(t, template, samfile.Function{Name: "fast", Queues: []string{"reports"}})
	template = addFunction(t, template, samfile.Function{Name: "slow", Queues: []string{"reports"}})
	for alarm, want := range map[string]string{
		"SlowBridgeThrottlesAlarm":  "AlarmDescription: Lambda throttled function slow; ",
		"SlowBridgeErrorsAlarm":     "AlarmDescription: Function slow failed invocations, ",
		"SlowBridgeCanaryAlarm":     "The newest version of function slow failed ",
		"ReportsOldestMessageAlarm": "look at function slow's errors, throttles and concurrency",
		"OldestMessageAlarm":        "look at the bridge's errors, throttles and concurrency",
	} {
		if entry := entryOf(template, alarm); !strings.Contains(entry, want) {
			t.Errorf("%s does not say %q:\n%s", alarm, want, entry)
		}
	}
	comment := "              # The queues of its events.\n              - Effect: Allow\n                Action:\n                  - sqs:Change"
	if role := entryOf(template, "SlowBridgeRole"); !strings.Contains(role, comment) {
		t.Errorf("the comment stands elsewhere:\n%s", role)
	}
}

// A name that was written by hand is copied, too, and CloudFormation takes it once.
func TestAddFunction_NameByHand_IsRefused(t *testing.T) {
	t.Parallel()
	template := strings.Replace(read(t, full), "      Description: Executes the runs", "      FunctionName: my-bridge\n      Description: Executes the runs", 1)
	template = addQueue(t, template, samfile.Queue{Name: "reports"})
	var taken *samfile.TakenError
	if _, err := samfile.AddFunction(template, samfile.Function{Name: "slow", Queues: []string{"reports"}}); !errors.As(err, &taken) ||
		!strings.Contains(err.Error(), "FunctionName: my-bridge") {
		t.Errorf("a second my-bridge: %v", err)
	}
}
