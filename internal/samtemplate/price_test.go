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
)

// List prices of us-east-1 in dollars a month.
const (
	alarmMetricPrice  = 0.10
	customMetricPrice = 0.30
	dashboardPrice    = 3.00
)

// documentedTable returns the rows of the table of docs/deploying.md that begins with a header of these columns.
func documentedTable(t *testing.T, columns ...string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n| "+strings.Join(columns, " | ")+" |\n")
	if !found {
		t.Fatalf("docs/deploying.md has no table with the columns %q", columns)
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

func TestPrices_OfAlarms_AreTheTemplates(t *testing.T) {
	t.Parallel()
	plain, all := everyAlarm(t, nil), everyAlarm(t, withFIFO)
	template := evaluate(t, withFIFO)
	want := map[string]string{} // parameter: alarms, metrics, price
	row := func(parameter string, alarms []string) {
		metrics := 0
		for _, alarm := range alarms {
			metrics += len(alarmMetrics(template.Resources[alarm].Properties))
		}
		slices.Sort(alarms)
		want[parameter] = fmt.Sprint(alarms, metrics, cents(float64(metrics)*alarmMetricPrice))
	}
	for parameter, alarms := range plain {
		row(parameter, alarms)
		var more []string
		for _, alarm := range all[parameter] {
			if !slices.Contains(alarms, alarm) {
				more = append(more, alarm)
			}
		}
		if len(more) > 0 {
			row(parameter+" FifoQueue", more)
		}
	}
	got := map[string]string{}
	for _, cells := range documentedTable(t, "Parameter", "Alarms", "Metrics", "$ a month") {
		alarms := names(cells[1])
		slices.Sort(alarms)
		got[strings.Join(names(cells[0]), " ")] = fmt.Sprint(alarms, int(number(t, cells[2])), cells[3])
	}
	equal(t, "prices of alarms", got, want)
}

// The dashboard shows each metric for each function that sends it, and the documentation prices the same.
func TestPrices_OfMetrics_AreTheTemplates(t *testing.T) {
	t.Parallel()
	senders := map[string][]string{}
	for _, m := range dashboardMetrics(t, evaluate(t, nil)) {
		if m.namespace == functions.MetricsNamespace {
			senders[m.name] = append(senders[m.name], m.dimensions[functions.DimensionFunction])
		}
	}
	want, got := map[string]string{}, map[string]string{}
	for name, roles := range senders {
		slices.Sort(roles)
		want[name] = strings.Join(roles, ", ") + " " + cents(float64(len(roles))*customMetricPrice)
	}
	for _, cells := range documentedTable(t, "Metric", "Sent by", "$ a month at most") {
		got[names(cells[0])[0]] = cells[1] + " " + cells[2]
	}
	equal(t, "prices of metrics", got, want)
	equal(t, "metrics", slices.Sorted(maps.Keys(got)), ownMetrics)
	equal(t, "price of the dashboard", documentedTable(t, "Parameter", "$ a month"), [][]string{{"`Dashboard`", cents(dashboardPrice)}})
}

// product checks a table of counts and prices, and returns its sum in dollars.
func product(t *testing.T, rows [][]string) float64 {
	t.Helper()
	sum := 0.0
	for _, cells := range rows[:len(rows)-1] {
		dollars := number(t, cells[1]) * number(t, cells[2]) / 1e6
		equal(t, cells[0], cells[3], cents(dollars))
		sum += dollars
	}
	equal(t, "sum", rows[len(rows)-1][3], "**"+cents(sum)+"**")
	return sum
}

func TestPrices_Arithmetic(t *testing.T) {
	t.Parallel()
	idle := product(t, documentedTable(t, "What", "Count a month", "$ for a million", "$ a month"))
	if idle >= 1 {
		t.Errorf("an idle installation costs %.2f", idle)
	}
	million := product(t, documentedTable(t, "What", "Count", "$ for a million", "$"))
	for _, cells := range documentedTable(t, "Runs a month", "Idle", "Runs", "Pruning", "Kept a month", "Together") {
		millions := number(t, cells[0]) / 1e6
		parts := []float64{idle, millions * million, millions * 5 * 0.625, millions * 2 * (0.25 + 0.20)}
		sum := 0.0
		for i, part := range parts {
			equal(t, cells[0]+" runs", strings.ReplaceAll(cells[i+1], ",", ""), cents(part))
			sum += part
		}
		equal(t, cells[0]+" runs", strings.ReplaceAll(cells[5], ",", ""), cents(sum))
	}
}
