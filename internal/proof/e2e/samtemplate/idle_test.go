package samtemplate

import (
	"os"
	"regexp"
	"testing"

	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/tools/costs"
)

// documentedNumbers are what the groups of a pattern match in docs/prices.md.
func documentedNumbers(t *testing.T, pattern string) (numbers []float64) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/prices.md")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
	if match == nil {
		t.Fatalf("docs/prices.md does not say %q", pattern)
	}
	for _, m := range match[1:] {
		numbers = append(numbers, number(t, m))
	}
	return numbers
}

// An environment with nothing to do costs what its ticks read: the documentation says how much, and real ticks are counted.
func TestTick_Idle_ReadsWhatIsDocumented(t *testing.T) {
	t.Parallel()
	plain := documentedNumbers(t, `read units of ([0-9,]+) ticks, ([0-9]+) each \| ([0-9,]+) \|`)
	more := documentedNumbers(t, `A bounded queue adds ([0-9]+) read units to each tick, ([0-9.]+) a month`)
	equal(t, "ticks a month", plain[0], float64(costs.TicksAMonth))
	equal(t, "units a month", plain[2], plain[0]*plain[1])
	equal(t, "price of a bounded queue", cents(more[1]), cents(costs.Use{Reads: more[0]}.Units()*plain[0]/1e6))
	metric := documentedNumbers(t, `what the tick reads for it, ([0-9]+) read units`)
	for _, tc := range []struct {
		program, metrics string
		most             float64
	}{
		{idleProgram, "off", plain[1]}, {boundedIdle, "off", plain[1] + more[0]}, {idleProgram, "on", plain[1] + metric[0]},
	} {
		t.Run(tc.program+" metrics "+tc.metrics, func(t *testing.T) {
			t.Parallel()
			s := deployLocally(t, tc.program, tc.metrics)
			s.tick(t) // opens
			s.recorders[functions.RoleTick].count()
			s.tick(t)
			const emptyQuery, emptyItem = 0.5, 1 // read units: eventually consistent, and not
			units := 0.0
			for operation, n := range s.recorders[functions.RoleTick].count() {
				switch operation {
				case "DynamoDB_20120810.Query":
					units += emptyQuery * float64(n)
				case "DynamoDB_20120810.GetItem":
					units += emptyItem * float64(n)
				default:
					t.Errorf("an idle tick makes %d requests %s", n, operation)
				}
			}
			if units > tc.most || units < tc.most-1 {
				t.Errorf("an idle tick reads %g units, documented are %g", units, tc.most)
			}
		})
	}
}
