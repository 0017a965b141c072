package samtemplate

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/tools/costs"
)

// documentedTable returns the rows of the table of docs/prices.md that begins with a header of these columns.
func documentedTable(t *testing.T, columns ...string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/prices.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n| "+strings.Join(columns, " | ")+" |\n")
	if !found {
		t.Fatalf("docs/prices.md has no table with the columns %q", columns)
	}
	var rows [][]string
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		t.Fatalf("the table %q is empty", columns)
	}
	return rows
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func cents(dollars float64) string { return fmt.Sprintf("%.2f", math.Round(dollars*100)/100) }

var quoted = regexp.MustCompile("`([^`]+)`")

func names(cell string) (list []string) {
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, match[1])
	}
	return list
}

// priced is how many metrics an alarm looks at in a month without failures. A query looks at those of the tasks that failed.
func priced(properties map[string]any) int {
	return len(slices.DeleteFunc(alarmMetrics(properties), func(m metric) bool { return m.name == functions.MetricTaskRunsFailed }))
}

func TestPrices_OfAlarms_AreTheTemplates(t *testing.T) {
	t.Parallel()
	plain := everyAlarm(t, nil)
	template := evaluate(t, withEverything)
	want := map[string]string{} // parameter: alarms, metrics, price
	row := func(parameter string, alarms []string) {
		metrics := 0
		for _, alarm := range alarms {
			metrics += priced(template.Resources[alarm].Properties)
		}
		slices.Sort(alarms)
		want[parameter] = fmt.Sprint(alarms, metrics)
	}
	for parameter, alarms := range plain {
		row(parameter, alarms)
	}
	for more, given := range map[string]map[string]string{"FifoQueue": withFIFO, "ServerScopes": withServer, "EventBus": withBus} {
		for parameter, alarms := range everyAlarm(t, given) {
			alarms = slices.DeleteFunc(alarms, func(alarm string) bool { return slices.Contains(plain[parameter], alarm) })
			if len(alarms) > 0 {
				row(parameter+" "+more, alarms)
			}
		}
	}
	got := map[string]string{}
	for _, cells := range documentedTable(t, "Parameter", "Alarms", "Metrics") {
		alarms := names(cells[1])
		slices.Sort(alarms)
		got[strings.Join(names(cells[0]), " ")] = fmt.Sprint(alarms, int(number(t, cells[2])))
	}
	equal(t, "prices of alarms", got, want)
}

// The dashboard shows each metric for each function that sends it, and the documentation lists and prices the same.
func TestPrices_OfMetrics_AreTheTemplates(t *testing.T) {
	t.Parallel()
	senders, sent := map[string][]string{}, 0
	for _, m := range dashboardMetrics(t, evaluate(t, nil)) {
		if m.namespace == functions.MetricsNamespace {
			senders[m.name] = append(senders[m.name], strings.ToLower(strings.Trim(m.dimensions[functions.DimensionFunction], "${}")))
		}
	}
	want, got := map[string]string{}, map[string]string{}
	for name, roles := range senders {
		slices.Sort(roles)
		want[name] = strings.Join(roles, ", ")
		sent += len(roles)
	}
	want[functions.MetricTaskRunsFailed] = "all together" // in an alarm, and priced by the task
	for _, cells := range documentedTable(t, "Metric", "Sent by") {
		for _, name := range names(cells[0]) {
			got[name] = cells[1]
		}
	}
	equal(t, "prices of metrics", got, want)
	equal(t, "metrics", slices.Sorted(maps.Keys(got)), ownMetrics)
	prices := documentedNumbers(t, `An alarm costs ([0-9.]+) for each metric that it looks at, a metric of the functions ([0-9.]+) in a month`)
	equal(t, "prices of a metric", prices, []float64{costs.AlarmMetric, costs.CustomMetric})
	equal(t, "price of all but OldestDueSeconds", documentedNumbers(t, `All of them in every hour are ([0-9.]+) more`)[0], float64(sent-1)*costs.CustomMetric)
}

// million is the price of what a table of docs/prices.md names, by how the name begins.
var million = map[string]float64{
	"read units": costs.ReadUnit, "write units": costs.WriteUnit, "invocations": costs.LambdaInvocation,
	"GB-seconds": costs.LambdaGigabyteSecond, "calls of the scheduler": costs.SchedulerCall, "polls of the queue": costs.SQSRequest,
	"SQS requests": costs.SQSRequest,
}

// price is that of a name for which [million] has the beginning.
func price(t *testing.T, name string) float64 {
	t.Helper()
	for begins, price := range million {
		if strings.HasPrefix(name, begins) {
			return price
		}
	}
	t.Fatalf("no price of %q", name)
	return 0
}

// product checks a table of counts and prices, and returns its sum in dollars.
func product(t *testing.T, rows [][]string) float64 {
	t.Helper()
	sum := 0.0
	for _, cells := range rows[:len(rows)-1] {
		equal(t, "price of "+cells[0], number(t, cells[2]), price(t, cells[0]))
		dollars := number(t, cells[1]) * number(t, cells[2]) / 1e6
		equal(t, cells[0], cells[3], cents(dollars))
		sum += dollars
	}
	equal(t, "sum", rows[len(rows)-1][3], "**"+cents(sum)+"**")
	return sum
}

// parts checks a table of parts, and returns its sum in dollars.
func parts(t *testing.T, rows [][]string) float64 {
	t.Helper()
	sum := 0.0
	for _, cells := range rows[:len(rows)-1] {
		sum += number(t, cells[1])
	}
	equal(t, "sum", rows[len(rows)-1][1], "**"+cents(sum)+"**")
	return sum
}

// What a deployment costs idle is what its defaults turn on, not what is left when everything is off.
func TestPrices_Idle_AreThoseOfTheDefaults(t *testing.T) {
	t.Parallel()
	engine := product(t, documentedTable(t, "What", "Count a month", "$ for a million", "$ a month"))
	if engine >= 1 {
		t.Errorf("the engine costs %.2f idle", engine)
	}
	template, watched := evaluate(t, nil), 0
	for _, alarm := range ofType(template, "AWS::CloudWatch::Alarm") {
		watched += priced(template.Resources[alarm].Properties)
	}
	if len(ofType(template, "AWS::CloudWatch::Dashboard")) != 1 || variables(template.Resources["Tick"].Properties)[functions.MetricsVariable] != "on" {
		t.Error("dashboard or metrics are off by default")
	}
	reads := documentedNumbers(t, `what the tick reads for it, ([0-9]+) read units`)[0]
	rows := documentedTable(t, "Part", "$ a month")
	equal(t, "parts", rows, [][]string{
		{"the engine, as counted below", cents(engine)},
		{fmt.Sprintf("`Alarms`: %d metrics that they look at", watched), cents(float64(watched) * costs.AlarmMetric)},
		{"`Dashboard`", cents(costs.Dashboard)},
		{"`Metrics`: `OldestDueSeconds`, the one that an idle hour sends", cents(costs.CustomMetric)},
		{fmt.Sprintf("`Metrics`: what the tick reads for it, %g read units", reads), cents(costs.Use{Reads: reads}.Units() * costs.TicksAMonth / 1e6)},
		{"`Metrics`: a line of the log a tick", "0.01"},
		{"**together**", "**" + cents(parts(t, rows)) + "**"},
	})
	all, alone := cents(parts(t, rows)), cents(engine)
	for path, says := range map[string]string{
		"../../../../README.md":        fmt.Sprintf("it costs $%s a month while idle: $%s for the engine, $%s for what watches it", all, alone, cents(parts(t, rows)-engine)),
		"../../../../docs/tutorial.md": fmt.Sprintf("Idle it costs $%s a month, or $%s with `Alarms`, `Dashboard` and `Metrics` off", all, alone),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
			t.Errorf("%s does not say %q", path, says)
		}
	}
}
