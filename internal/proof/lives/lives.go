package lives

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("lives.seed", 0,
	"the seed of all lives; 0 chooses one. One that failed is repeated by what its failure says")

// prepare counts the steps of each habit.
var prepare = sync.OnceFunc(func() { spread(habits, allSteps) })

// chosenSeed is the flag's, or any.
func chosenSeed() (seed uint64) {
	for seed = *seedFlag; seed == 0; {
		seed = rand.Uint64() >> 1 // printed, to be repeated
	}
	return seed
}

// oneLife is a life without an oracle.
func oneLife(ctx context.Context, f fate, t *tally, makeWorld func(*life) *World) {
	l := newLife(ctx, f, t, makeWorld)
	defer func() { // what is closed is closed also where the context has ended
		if err := l.close(); err != nil {
			f.fail(fmt.Sprintf("clean-up: %v", err))
		}
	}()
	l.live()
}

// Run lives random lives without an oracle, one after the other, over worlds of another module's lane, in real time.
// Each world has the life's clock. It goes on for a while, or for so many lives: with the flag lives.seed for one, that
// of the failure. A failure is not shrunk.
func Run(t *testing.T, laneName string, most int, while time.Duration, makeWorld func(now func() time.Time) *World) {
	t.Helper()
	prepare()
	seed, tally := chosenSeed(), newTally()
	if *seedFlag != 0 {
		most = 1
	}
	until := time.Now().Add(while)
	for n := 0; n < most && !t.Failed() && time.Now().Before(until); n++ {
		at := seed + uint64(n) // positive
		if found := oneSeed(at, tally, func(l *life) *World { return makeWorld(l.clock.Now) }); found != "" {
			t.Errorf("again by -lives.seed %d: %s", at, found)
		}
	}
	tally.report(t, laneName, seed)
	tally.missing(t, doorFaults)
}

// oneSeed lives the life of a seed, and returns what was wrong with it.
func oneSeed(seed uint64, t *tally, makeWorld func(*life) *World) (found string) {
	defer func() {
		if what := recover(); what != nil {
			text, planned := what.(failure)
			if !planned {
				panic(what)
			}
			found = string(text)
		}
	}()
	fate := seededFate{rand.New(rand.NewPCG(seed, 0))} // repeatable
	oneLife(context.Background(), fate, t, makeWorld)
	return ""
}
