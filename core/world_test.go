package core

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/runlane/runlane-go"
)

// seeded is a World.Rand that repeats itself.
func seeded(seed uint64) func() uint64 {
	source := rand.New(rand.NewPCG(seed, seed))
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

func TestULIDs_IncreaseAndNeverRepeat(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	newID := newULIDs(func() time.Time { return at })
	const each, callers = 5000, 4
	lists := make([][]string, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for range each {
				lists[i] = append(lists[i], newID("run_"))
			}
		})
	}
	group.Wait()
	var all []string
	for _, list := range lists {
		if !slices.IsSorted(list) {
			t.Fatal("ids of one caller decrease")
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != each*callers {
		t.Fatalf("%d ids of %d are different", n, each*callers)
	}
	id, err := ulid.ParseStrict(strings.TrimPrefix(all[0], "run_"))
	if err != nil || !ulid.Time(id.Time()).Equal(at) {
		t.Fatalf("%q is of %s, %v", all[0], ulid.Time(id.Time()), err)
	}
	if err := runlane.RunID(all[0]).Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestULIDs_StepOverflowsIntoTheHighBytes(t *testing.T) {
	t.Parallel()
	id := ulid.ULID{}
	for i := 6; i < 16; i++ {
		id[i] = 0xFF
	}
	id[7] = 0xFE
	if !step(&id) || id[7] != 0xFF {
		t.Fatalf("stepped to %x", id)
	}
	for i := 8; i < 16; i++ {
		id[i] = 0xFF
	}
	if step(&id) {
		t.Fatal("a step beyond the last id is no id")
	}
}
