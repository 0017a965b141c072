package samfile_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli/internal/samfile"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
	"github.com/runlane/runlane-go/internal/tools/costs"
)

// What one more queue or function costs idle is documented as the template has it afterwards.
func TestPrices_OfAdditions_AreTheTemplates(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/prices.md")
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, full)
	own := addQueue(t, before, samfile.Queue{Name: "reports"})
	fifo := addQueue(t, before, samfile.Queue{Name: "reports", FIFO: true})
	function := addFunction(t, own, samfile.Function{Name: "slow", Queues: []string{"reports"}})
	const pollsAMonth = 15 * costs.TicksAMonth
	for _, c := range []struct {
		command, from, to string
		polls             float64 // dollars
		metrics           int     // sent by the function
	}{
		{"queues add --own", before, own, pollsAMonth * costs.SQSRequest / 1e6, 0},
		{"queues add --fifo", before, fifo, pollsAMonth * costs.SQSFIFORequest / 1e6, 0},
		{"functions add", own, function, 0, sentByBridges(t, string(text))},
	} {
		alarms := alarmMetrics(evaluate(t, c.to, nil)) - alarmMetrics(evaluate(t, c.from, nil))
		row := fmt.Sprintf("| `%s` | %s | %d | %s | %s |", c.command, cents(c.polls), alarms,
			cents(c.polls+float64(alarms)*costs.AlarmMetric), cents(float64(c.metrics)*costs.CustomMetric))
		if !strings.Contains(string(text), "\n"+row+"\n") {
			t.Errorf("docs/prices.md has no row %s", row)
		}
	}
}

func cents(dollars float64) string { return fmt.Sprintf("%.2f", math.Round(dollars*100)/100) }

// sentByBridges counts the metrics that a bridge sends.
func sentByBridges(t *testing.T, text string) (n int) {
	t.Helper()
	_, after, found := strings.Cut(text, "\n| Metric | Sent by |\n")
	if !found {
		t.Fatal("docs/prices.md has no table of metrics")
	}
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "|") {
			return n
		}
		if metric, senders, _ := strings.Cut(line[1:], "|"); strings.Contains(senders, "bridge") {
			n += strings.Count(metric, "`") / 2
		}
	}
	return n
}

// alarmMetrics counts the metrics that alarms look at.
func alarmMetrics(template *samtemplate.Template) (n int) {
	for _, resource := range template.Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		metrics, several := resource.Properties["Metrics"].([]any)
		if !several {
			n++
		}
		for _, metric := range metrics {
			if fields, _ := metric.(map[string]any); fields["MetricStat"] != nil {
				n++
			}
		}
	}
	return n
}
