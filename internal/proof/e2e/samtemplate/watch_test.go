package samtemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/functions"
)

// ofType lists the resources of a type by name.
func ofType(template *Template, kind string) []string {
	var names []string
	for name, r := range template.Resources {
		if r.Type == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// metric is one that an alarm or the dashboard looks at.
type metric struct {
	namespace, name string
	dimensions      map[string]string
}

// selected is a query over the metrics of all tasks.
var selected = regexp.MustCompile(`^SELECT SUM\((\w+)\) FROM SCHEMA\("(\w+)", ([\w, ]+)\) `)

func alarmMetrics(properties map[string]any) (list []metric) {
	read := func(m any) metric {
		out := metric{textAt(m, "Namespace"), textAt(m, "MetricName"), map[string]string{}}
		for _, d := range listAt(m, "Dimensions") {
			out.dimensions[textAt(d, "Name")] = textAt(d, "Value")
		}
		return out
	}
	if properties["MetricName"] != nil {
		return []metric{read(properties)}
	}
	for _, query := range listAt(properties, "Metrics") {
		if m := at(query, "MetricStat", "Metric"); m != nil {
			list = append(list, read(m))
		}
		if found := selected.FindStringSubmatch(textAt(query, "Expression")); found != nil {
			out := metric{found[2], found[1], map[string]string{}}
			for name := range strings.SplitSeq(found[3], ", ") {
				out.dimensions[name] = "${" + name + "}"
			}
			list = append(list, out)
		}
	}
	return list
}

// dashboardMetrics are those of the dashboard, which must be the JSON that CloudWatch takes.
func dashboardMetrics(t *testing.T, template *Template) (list []metric) {
	t.Helper()
	var body struct {
		Widgets []struct {
			Type       string
			Width      int
			Properties struct {
				Title, Region, Stat string
				Period              int
				Metrics             [][]string
			}
		}
	}
	if err := json.Unmarshal([]byte(textAt(template.Resources["Board"].Properties, "DashboardBody")), &body); err != nil {
		t.Fatalf("the dashboard is no JSON: %v", err)
	}
	for _, w := range body.Widgets {
		p := w.Properties
		if w.Type != "metric" || w.Width != 12 || p.Title == "" || p.Region != "${AWS::Region}" || p.Stat == "" || p.Period == 0 || len(p.Metrics) == 0 {
			t.Errorf("widget %+v is incomplete", w)
		}
		var above []string
		for _, m := range p.Metrics {
			for i := range m {
				if m[i] == "." {
					m[i] = above[i]
				}
			}
			above = m
			out := metric{m[0], m[1], map[string]string{}}
			for i := 2; i+1 < len(m); i += 2 {
				out.dimensions[m[i]] = m[i+1]
			}
			list = append(list, out)
		}
	}
	return list
}

// ownMetrics are the functions' metrics, as their package declares them.
var ownMetrics = []string{
	functions.MetricCommitConflicts, functions.MetricDeadLettersSeen, functions.MetricOldestDueSeconds, functions.MetricRunsCreated,
	functions.MetricRunsFailed, functions.MetricRunsSucceeded, functions.MetricTaskRunsFailed, functions.MetricThrottles, functions.MetricWakeupsRefused,
}

func TestMetrics_ListIsComplete(t *testing.T) {
	t.Parallel()
	var declared []string
	for name, value := range constantsOf(t, "../../../../functions/metrics.go") {
		if strings.HasPrefix(name, "Metric") && !strings.HasPrefix(name, "Metrics") {
			declared = append(declared, value)
		}
	}
	slices.Sort(declared)
	equal(t, "metrics", ownMetrics, declared)
}

// What alarms and dashboard look at exists: the functions' own metrics under the functions' own names, and resources of the stack.
func TestMetrics_ThatAreWatched_Exist(t *testing.T) {
	t.Parallel()
	template := evaluate(t, withEverything)
	all := dashboardMetrics(t, template)
	for _, name := range ofType(template, "AWS::CloudWatch::Alarm") {
		list := alarmMetrics(template.Resources[name].Properties)
		if len(list) == 0 {
			t.Errorf("%s looks at nothing", name)
		}
		all = append(all, list...)
	}
	senders := []string{"${Bridge}", "${Relay}", "${Tick}"}
	named := map[string][]string{ // the dimensions that AWS gives its metrics
		"AWS/DynamoDB": {"TableName"}, "AWS/Lambda": {"FunctionName"}, "AWS/SQS": {"QueueName"},
	}
	for _, m := range all {
		switch {
		case m.name == functions.MetricTaskRunsFailed:
			names := []string{functions.DimensionEnvironment, functions.DimensionTable, functions.DimensionTask}
			equal(t, m.name, slices.Sorted(maps.Keys(m.dimensions)), names)
		case m.namespace == functions.MetricsNamespace:
			if !slices.Contains(ownMetrics, m.name) || !slices.Contains(senders, m.dimensions[functions.DimensionFunction]) || len(m.dimensions) != 1 {
				t.Errorf("no function sends %+v", m)
			}
		default:
			dimensions := maps.Clone(m.dimensions)
			if index, ok := dimensions["GlobalSecondaryIndexName"]; ok && (index == "due" || index == "done") {
				delete(dimensions, "GlobalSecondaryIndexName")
			}
			if m.name == "Errors" && dimensions["Resource"] == dimensions["FunctionName"]+":live" { // one version's, behind the alias
				delete(dimensions, "Resource")
				delete(dimensions, "ExecutedVersion")
			}
			if !slices.Equal(slices.Collect(maps.Keys(dimensions)), named[m.namespace]) {
				t.Errorf("AWS sends no %+v", m)
			}
			for _, value := range dimensions {
				resource, _, _ := strings.Cut(strings.Trim(value, "${}"), ".")
				if template.Resources[resource].Type == "" {
					t.Errorf("%+v is about nothing in the stack", m)
				}
			}
		}
	}
}

// everyAlarm maps parameters to the alarms that they turn off.
func everyAlarm(t *testing.T, parameters map[string]string) map[string][]string {
	t.Helper()
	all := ofType(evaluate(t, parameters), "AWS::CloudWatch::Alarm")
	out := map[string][]string{}
	owned := map[string]string{}
	for name := range load(t).Parameters {
		if !strings.HasPrefix(name, "Alarm") || name == "Alarms" || name == "AlarmTopic" {
			continue
		}
		off := maps.Clone(parameters)
		if off == nil {
			off = map[string]string{}
		}
		off[name] = "false"
		left := ofType(evaluate(t, off), "AWS::CloudWatch::Alarm")
		for _, alarm := range all {
			if !slices.Contains(left, alarm) {
				if owned[alarm] != "" {
					t.Errorf("%s is turned off by %s and by %s", alarm, owned[alarm], name)
				}
				owned[alarm] = name
				out[name] = append(out[name], alarm)
			}
		}
		if len(out[name]) == 0 {
			t.Errorf("%s turns nothing off", name)
		}
	}
	for _, alarm := range all {
		if owned[alarm] == "" {
			t.Errorf("%s cannot be turned off alone", alarm)
		}
	}
	return out
}

func TestAlarms_EachIsAParameter_AndAllTogether(t *testing.T) {
	t.Parallel()
	everyAlarm(t, withEverything)
	off := evaluate(t, map[string]string{"FifoQueue": "orders", "ServerScopes": "read", "EventBus": busARN, "Alarms": "false", "Dashboard": "false", "Metrics": "false"})
	equal(t, "alarms", ofType(off, "AWS::CloudWatch::Alarm"), []string(nil))
	equal(t, "dashboards", ofType(off, "AWS::CloudWatch::Dashboard"), []string(nil))
	for _, name := range ofType(evaluate(t, map[string]string{"Metrics": "false"}), "AWS::CloudWatch::Alarm") {
		for _, m := range alarmMetrics(load(t).Resources[name].Properties) {
			if m.namespace == functions.MetricsNamespace {
				t.Errorf("%s looks at %s, which no program sends", name, m.name)
			}
		}
	}
}

// explains are commands that explain an alarm: the log of a function, and what docs/commands.md has.
var explains = regexp.MustCompile("`(?:sam logs --name ([A-Za-z]+)|runlane ([a-z]+(?: [a-z]+)*)(?: [^`]*)?)`")

func TestAlarms_SayWhatToDoAndNotify(t *testing.T) {
	t.Parallel()
	topic := "arn:aws:sns:eu-west-1:123456789012:alarms"
	with := evaluate(t, map[string]string{"FifoQueue": "orders", "ServerScopes": "read", "EventBus": busARN, "AlarmTopic": topic})
	without, template := evaluate(t, withEverything), load(t)
	commands, err := os.ReadFile("../../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ofType(with, "AWS::CloudWatch::Alarm") {
		p := with.Resources[name].Properties
		if len(textAt(p, "AlarmDescription")) < 20 || len(textAt(p, "AlarmDescription")) > 200 {
			t.Errorf("%s says %q", name, p["AlarmDescription"])
		}
		named := explains.FindStringSubmatch(textAt(p, "AlarmDescription"))
		if named == nil || template.Resources[named[1]].Type == "" && !regexp.MustCompile(`(?m)^## `+named[2]+`( |$)`).Match(commands) {
			t.Errorf("%s names no command that explains it: %q", name, p["AlarmDescription"])
		}
		for _, actions := range []string{"AlarmActions", "OKActions"} {
			if strings.HasSuffix(name, "CanaryAlarm") { // deployments ask it
				equal(t, name, p[actions], nil)
				continue
			}
			equal(t, name, p[actions], any([]any{topic}))
			equal(t, name, without.Resources[name].Properties[actions], any([]any{}))
		}
		missing := "notBreaching"
		if name == "OldestDueAlarm" {
			missing = "breaching" // no data
		}
		equal(t, name, textAt(p, "TreatMissingData"), missing)
	}
	concurrency := func(parameters map[string]string) string {
		return textAt(listAt(evaluate(t, parameters).Resources["ConcurrencyAlarm"].Properties, "Metrics")[0], "Expression")
	}
	// With two queues the function can run twice as much, and one of them can be used up all the same.
	equal(t, "share of the concurrency", concurrency(map[string]string{"BridgeConcurrency": "7"}), "100 * running / 7")
	equal(t, "share of one queue's concurrency", concurrency(map[string]string{"BridgeConcurrency": "7", "FifoQueue": "orders"}), "100 * running / 7")
}

// Messages of these queues are notes that nothing takes away for 14 days: the alarm is about new ones, and passes.
func TestAlarms_OnQueuesThatNothingDrains_Pass(t *testing.T) {
	t.Parallel()
	template := evaluate(t, withFIFO)
	for _, queue := range []string{"RelayFailures", "TickDeadLetters"} {
		p := template.Resources[queue+"Alarm"].Properties
		equal(t, queue, []any{p["MetricName"], p["Statistic"]}, []any{"NumberOfMessagesSent", "Sum"})
	}
}

// A wakeup whose bridge died comes again when its visibility timeout is over, which grows with BridgeTimeout.
func TestAlarms_OfAges_FollowTheTimeout(t *testing.T) {
	t.Parallel()
	for _, timeout := range load(t).Parameters["BridgeTimeout"].AllowedValues {
		template := evaluate(t, map[string]string{"FifoQueue": "orders", "BridgeTimeout": timeout.(string)})
		for alarm, queue := range map[string]string{"OldestMessageAlarm": "WorkQueue", "FifoOldestMessageAlarm": "FifoWorkQueue"} {
			threshold := integer(template.Resources[alarm].Properties["Threshold"], 0)
			equal(t, alarm+" with "+timeout.(string), threshold, integer(template.Resources[queue].Properties["VisibilityTimeout"], 0)+900)
		}
	}
}

func TestAlarms_TheRelayBehindItsStreamIsSeen(t *testing.T) {
	t.Parallel()
	age := alarmMetrics(evaluate(t, nil).Resources["StreamAgeAlarm"].Properties)
	equal(t, "metric", fmt.Sprint(age), "[{AWS/Lambda IteratorAge map[FunctionName:${Relay}]}]")
}
