package samfile_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli/internal/samfile"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
)

const full, minimal = "../../project/template.yaml", "../../project/minimal/template.yaml"

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return samfile.WithoutExample(string(content))
}

func evaluate(t *testing.T, template string, parameters map[string]string) *samtemplate.Template {
	t.Helper()
	parsed, err := samtemplate.Parse([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	evaluated, err := parsed.Evaluate(parameters)
	if err != nil {
		t.Fatal(err)
	}
	return evaluated
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// wantKept holds that every line of the old text is in the new one, in its order; a line may have grown.
func wantKept(t *testing.T, before, after string) {
	t.Helper()
	lines := strings.Split(after, "\n")
	for _, line := range strings.Split(before, "\n") {
		at := slices.IndexFunc(lines, func(l string) bool { return l == line })
		if at < 0 {
			t.Errorf("line is gone: %s", line)
			return
		}
		lines = lines[at+1:]
	}
}

func addQueue(t *testing.T, template string, q samfile.Queue) string {
	t.Helper()
	out, err := samfile.AddQueue(template, q)
	if err != nil {
		t.Fatal(err)
	}
	again, err := samfile.AddQueue(out, q)
	if diff := cmp.Diff(out, again); err != nil || diff != "" {
		t.Errorf("added again: %v\n%s", err, diff)
	}
	return out
}

func TestAddQueue_IsWhatTheFirstOneIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, template string
		queue          samfile.Queue
		known          string
	}{
		{"full", full, samfile.Queue{Name: "orders"}, ""},
		{"FIFO", full, samfile.Queue{Name: "mail-out.v2", FIFO: true}, ""},
		{"minimal", minimal, samfile.Queue{Name: "orders"}, "Relay.Commits: what is given up goes nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := read(t, c.template)
			after := addQueue(t, before, c.queue)
			id := samfile.ID(c.queue.Name)
			for _, parameters := range []map[string]string{nil, {"FifoQueue": "other"}, {"Alarms": "false"}} {
				if c.template == minimal && parameters != nil {
					continue
				}
				e := evaluate(t, after, parameters)
				for _, fault := range samtemplate.Faults(e) {
					if fault != c.known {
						t.Errorf("%v: %s", parameters, fault)
					}
				}
				old := evaluate(t, before, parameters)
				wantSame(t, old, e, id, c.queue)
			}
		})
	}
}

// wantSame compares the new queue with the template's own one: resources, event, policies, variables.
func wantSame(t *testing.T, before, after *samtemplate.Template, id string, q samfile.Queue) {
	t.Helper()
	for name := range before.Resources {
		if _, ok := after.Resources[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
	for _, name := range []string{id + "Queue", id + "DeadLetters"} {
		if r, ok := after.Resources[name]; !ok || r.Type != "AWS::SQS::Queue" {
			t.Errorf("%s is %q", name, r.Type)
		}
	}
	if _, alarmed := before.Resources["OldestMessageAlarm"]; alarmed {
		for _, name := range []string{id + "DeadLettersAlarm", id + "OldestMessageAlarm"} {
			if _, ok := after.Resources[name]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
	}
	bridge := after.Resources["Bridge"].Properties
	events, _ := bridge["Events"].(map[string]any)
	if _, ok := events[id+"Wakeups"]; !ok {
		t.Errorf("Bridge has events %v", events)
	}
	variables, _ := bridge["Environment"].(map[string]any)["Variables"].(map[string]any)
	want := "," + q.Name + "=${" + id + "Queue}"
	if queues, _ := variables["RUNLANE_QUEUES"].(string); !strings.HasSuffix(queues, want) {
		t.Errorf("RUNLANE_QUEUES is %q", queues)
	}
	if line, _ := after.Outputs["Variables"].Value.(string); !strings.Contains(line, want+" ") {
		t.Errorf("Variables is %q", line)
	}
}

func TestAddQueue_KeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	before := read(t, full)
	by := strings.Replace(before, "        maxReceiveCount: 5\n", "        maxReceiveCount: 7 # ours\n", 1)
	by = strings.Replace(by, "\nOutputs:\n", "\n  Ours: # kept\n    Type: AWS::SNS::Topic\n\nOutputs:\n", 1)
	after := addQueue(t, addQueue(t, by, samfile.Queue{Name: "orders"}), samfile.Queue{Name: "mail", FIFO: true})
	kept := by
	for _, grown := range []string{
		"=${WorkQueue}${Fifo}", `"${WorkQueue.Arn}","${FifoWorkQueue.Arn}"`,
	} {
		addition := `,"${OrdersQueue.Arn}","${MailQueue.Arn}"`
		if strings.HasPrefix(grown, "=") {
			addition = ",orders=${OrdersQueue},mail=${MailQueue}"
		}
		kept = strings.ReplaceAll(kept, grown, grown+addition)
	}
	kept = strings.Replace(kept, `RUNLANE_BINDINGS: !Sub ["${StandardQueue}${Fifo}"`, `RUNLANE_BINDINGS: !Sub ["${StandardQueue}${Fifo},orders,mail"`, 1)
	wantKept(t, kept, after)
	e := evaluate(t, after, nil)
	policy, _ := e.Resources["OrdersQueue"].Properties["RedrivePolicy"].(map[string]any)
	if policy["maxReceiveCount"] != 7 {
		t.Errorf("what was changed by hand is not copied: %v", policy)
	}
	// The second one is a copy of the template's own, not of the first addition.
	if strings.Contains(after, "OrdersMail") || strings.Contains(after, "MailOrders") {
		t.Error("a copy of a copy")
	}
}

func TestAddQueue_WhatIsMissingOrTaken_IsNamed(t *testing.T) {
	t.Parallel()
	text := read(t, full)
	for name, c := range map[string]struct{ template, says string }{
		"another template": {"Resources: {}\n", "the template has no Resources WorkQueue"},
		"no event":         {strings.Replace(text, "        Wakeups:\n", "        Renamed:\n", 1), "the template has no event Wakeups of Bridge"},
		"no variable":      {strings.ReplaceAll(text, "=${WorkQueue}", "=${Other}"), "the template has no RUNLANE_QUEUES with ${WorkQueue}"},
		"taken":            {strings.Replace(text, "\nOutputs:\n", "\n  OrdersQueue:\n    Type: AWS::SNS::Topic\n\nOutputs:\n", 1), "the template has another Resources OrdersQueue"},
	} {
		_, err := samfile.AddQueue(c.template, samfile.Queue{Name: "orders"})
		if err == nil || err.Error() != c.says && !(name == "another template" && strings.HasPrefix(err.Error(), "the template has no")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var missing *samfile.MissingError
	if _, err := samfile.AddQueue(read(t, minimal), samfile.Queue{Name: "orders", FIFO: true}); !errors.As(err, &missing) {
		t.Errorf("FIFO in the minimal template: %v", err)
	}
}

// Parameters name queues of the application, too: one that has a separate SQS queue is refused there, now or by CloudFormation.
func TestAddQueue_ParameterThatNamesIt_IsRefused(t *testing.T) {
	t.Parallel()
	template := read(t, full)
	var taken *samfile.TakenError
	if _, err := samfile.AddQueue(strings.Replace(template, "  StandardQueue:\n", "  StandardQueue:\n    Default: orders\n", 1),
		samfile.Queue{Name: "orders"}); !errors.As(err, &taken) {
		t.Errorf("the Default of StandardQueue: %v", err)
	}
	after := addQueue(t, template, samfile.Queue{Name: "orders"})
	parsed, err := samtemplate.Parse([]byte(after))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"Assertions": []any{map[string]any{
		"Assert": map[string]any{"Fn::Not": []any{map[string]any{"Fn::Or": []any{
			map[string]any{"Fn::Equals": []any{map[string]any{"Ref": "StandardQueue"}, "orders"}},
			map[string]any{"Fn::Equals": []any{map[string]any{"Ref": "FifoQueue"}, "orders"}},
		}}}},
		"AssertDescription": "orders has a separate SQS queue; let StandardQueue and FifoQueue name others",
	}}}
	if diff := cmp.Diff(want, parsed.Rules["OrdersQueueDiffers"]); diff != "" {
		t.Error(diff)
	}
	if again := addQueue(t, after, samfile.Queue{Name: "orders"}); again != after {
		t.Error("adding it again changes something")
	}
}
