package lives

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
)

var (
	soak = flag.Duration("soak", 0, "how long the lives on DynamoDB go on, instead of the time they have in CI; needs -timeout 0")
	one  uint64 // the seed of a life that is to be repeated
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // the seed is enough
	one, _ = strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	prepare()
	spread(modelHabits, modelSteps)
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), // connections to local AWS that are kept
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// rapidFate shrinks what fails.
type rapidFate struct{ *rapid.T }

var anyBit = rapid.Bool()

func (f rapidFate) bit(label string) bool { return anyBit.Draw(f.T, label) }
func (f rapidFate) fail(text string)      { f.Fatal(text) }

// parts are lives at a time.
const parts = 4

// drive is one test of many lives.
type drive struct {
	lane  string
	seed  uint64
	until time.Time // zero: as long as it takes
	// checks are how many hundreds of lives a part has at most; 0: as many as there is time for.
	checks int
	run    func(r *rapid.T, part int, tally *tally)
	tally  *tally
	failed atomic.Bool
}

func newDrive(laneName string) *drive {
	return &drive{lane: laneName, seed: chosenSeed(), tally: newTally()}
}

// over ends a drive in time, unless a failure is being shrunk.
func (d *drive) over() bool {
	return !d.until.IsZero() && time.Now().After(d.until) && !d.failed.Load()
}

func (d *drive) lives(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { d.tally.report(t, d.lane, d.seed) })
	if one != 0 {
		t.Run("0", func(t *testing.T) { rapid.Check(t, func(r *rapid.T) { d.run(r, 0, d.tally) }) })
		return
	}
	var running sync.WaitGroup
	for part := range parts { // side by side, however few processors there are: most of the time is the storage's
		running.Go(func() {
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				for n := 0; !d.over() && !d.failed.Load() && (d.checks == 0 || n < d.checks); n++ {
					d.check(t, part, d.seedOf(part, n))
				}
			})
		})
	}
	running.Wait()
}

// seeding is held while rapid's flag has a seed that a check has not yet taken: rapid has no other way to be given one.
var seeding sync.Mutex

func (d *drive) check(t *testing.T, part int, seed uint64) {
	t.Helper()
	seeding.Lock()
	taken := sync.OnceFunc(seeding.Unlock)
	defer taken()
	if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		taken()
		if d.over() {
			return
		}
		ended := false
		defer func() {
			if !ended {
				d.failed.Store(true)
			}
		}()
		d.run(r, part, d.tally)
		ended = true
	})
}

// seedOf is the seed of one of a part's checks.
func (d *drive) seedOf(part, n int) uint64 { return d.seed + uint64(part+n*parts)*1_000_003 } // positive

func untouched(s lane.Storage) lane.Storage { return s }

// TestLives_Memory: on memory storage, in virtual time, what the lives themselves are worth is seen quickly.
//
// its parts are parallel without: see lives
func TestLives_Memory(t *testing.T) {
	t.Parallel()
	d := newDrive("memory")
	d.checks, d.until = 3, time.Now().Add(memoryInCI)
	d.run = func(r *rapid.T, _ int, tally *tally) {
		rapid.SyncTest(r, func(r *rapid.T) {
			oneLife(context.Background(), rapidFate{r}, tally, func(*life) *World { return memoryWorld(untouched) })
		})
	}
	t.Cleanup(func() { d.missing(t, true) })
	d.lives(t)
}

// How long lives go on: on memory storage at most, on DynamoDB without -soak.
const (
	memoryInCI   = 10 * time.Second
	dynamoDBInCI = 35 * time.Second
)

// TestLives_DynamoDB: lives that share a table, four at a time, each in a separate environment.
//
// its parts are parallel without: see lives
func TestLives_DynamoDB(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	table := awstest.Table(t, client)
	d := newDrive("dynamodb")
	d.until = time.Now().Add(dynamoDBInCI)
	if *soak > 0 {
		d.until = time.Now().Add(*soak)
		d.tell(t)
	}
	d.run = func(r *rapid.T, part int, tally *tally) {
		environment := runlane.Environment("lives-" + strconv.Itoa(part))
		oneLife(context.Background(), rapidFate{r}, tally, func(l *life) *World { return dynamoWorld(t, client, table, environment, l) })
	}
	t.Cleanup(func() { d.missing(t, false) })
	d.lives(t)
}

// tell prints every ten minutes how far it is.
func (d *drive) tell(t *testing.T) {
	t.Helper()
	began, ended := time.Now(), make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(10 * time.Minute)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				sequences, steps := d.tally.sums()
				fmt.Fprintf(os.Stdout, "lives lane=%s after=%s sequences=%d steps=%d seed=%d\n",
					d.lane, time.Since(began).Round(time.Minute), sequences, steps, d.seed)
			case <-ended:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		telling.Wait()
	})
}

// missing fails for what no life reached: a step or a fault that never happens proves nothing.
func (d *drive) missing(t *testing.T, memory bool) {
	t.Helper()
	faults := doorFaults
	if !memory {
		faults = nil
		for name := range weathers[2].requests {
			faults = append(faults, string(name))
		}
	}
	d.tally.missing(t, faults)
}
