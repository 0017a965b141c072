package samtemplate

import (
	"os"
	"regexp"
	"testing"

	"github.com/runlane/runlane-go/functions"
)

// An environment with nothing to do costs what its ticks read: the documentation says how much, and real ticks are counted.
func TestTick_Idle_ReadsWhatIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := func(pattern string) []float64 {
		t.Helper()
		match := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if match == nil {
			t.Fatalf("docs/deploying.md does not say %q", pattern)
		}
		var numbers []float64
		for _, m := range match[1:] {
			numbers = append(numbers, number(t, m))
		}
		return numbers
	}
	plain := documented(`read units of ([0-9,]+) ticks, ([0-9]+) each \| ([0-9,]+) \|`)
	more := documented(`A bounded queue adds ([0-9]+) read units to each tick, ([0-9.]+) a month`)
	equal(t, "units a month", plain[2], plain[0]*plain[1])
	equal(t, "price of a bounded queue", cents(more[1]), cents(more[0]*plain[0]*0.125/1e6))
	for program, most := range map[string]float64{idleProgram: plain[1], boundedIdle: plain[1] + more[0]} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := deployLocally(t, program, "off")
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
			if units > most || units < most-1 {
				t.Errorf("an idle tick reads %g units, documented are %g", units, most)
			}
		})
	}
}
