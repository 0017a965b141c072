package samfile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli/internal/samfile"
)

// widgets lists the metrics of each widget of the board, by its title, with what "." repeats written out.
func widgets(t *testing.T, template string) map[string][]string {
	t.Helper()
	body := fmt.Sprint(evaluate(t, template, nil).Resources["Board"].Properties["DashboardBody"])
	var board struct {
		Widgets []struct {
			Properties struct {
				Title   string
				Metrics [][]string
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Fatalf("the board is not JSON: %v\n%s", err, body)
	}
	shown := map[string][]string{}
	for _, widget := range board.Widgets {
		above := make([]string, 4)
		for _, metric := range widget.Properties.Metrics {
			for i := range metric {
				if metric[i] != "." {
					above[i] = metric[i]
				}
			}
			shown[widget.Properties.Title] = append(shown[widget.Properties.Title], strings.Join(above, " "))
		}
	}
	return shown
}

func TestBoard_HasEachMetricOnceAndTheOldOnesInTheirOrder(t *testing.T) {
	t.Parallel()
	shipped := read(t, full)
	age := `[".",".",".","${FifoWorkQueue.QueueName}"]]}}`
	for name, template := range map[string]string{
		"shipped": shipped,
		"by hand": edited(t, shipped, age, strings.TrimSuffix(age, "]}}")+",\n"+`        [".","NumberOfMessagesSent",".","."]]}}`),
	} {
		before := widgets(t, template)
		template = addQueue(t, template, samfile.Queue{Name: "reports"})
		template = addQueue(t, template, samfile.Queue{Name: "orders", FIFO: true})
		template = addFunction(t, template, samfile.Function{Name: "slow", Queues: []string{"reports"}})
		template = addFunction(t, template, samfile.Function{Name: "fast", Queues: []string{"orders"}})
		added := 0
		for title, metrics := range widgets(t, template) {
			old := before[title]
			for i, metric := range metrics {
				if slices.Contains(metrics[:i], metric) {
					t.Errorf("%s: %s shows twice %s", name, title, metric)
				}
			}
			kept := slices.DeleteFunc(slices.Clone(metrics), func(metric string) bool { return !slices.Contains(old, metric) })
			if diff := cmp.Diff(old, kept); diff != "" {
				t.Errorf("%s: %s shows other metrics of before: %s", name, title, diff)
			}
			added += len(metrics) - len(kept)
		}
		// A queue: 1 of its age, 2 of its messages, 1 of its dead letters. A function: 3 of runs, 4 of refusals, conflicts
		// and throttles, 4 of Lambda.
		want := 2*4 + 2*11
		if name == "by hand" {
			want += 2
		}
		if added != want {
			t.Errorf("%s: %d metrics came, want %d", name, added, want)
		}
	}
}
