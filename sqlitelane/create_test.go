package sqlitelane_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// A creation does not look for its id before it writes. Where the id is used, that comes before every other refusal, the
// run's own keys included, and the other commands of the batch are carried out.
func TestCreation_OfAUsedID_IsALostRace(t *testing.T) {
	t.Parallel()
	s := started(t, filepath.Join(t.TempDir(), "runlane.db"), 0)
	f := lanetest.NewFactory("used")
	const runs = 20
	var commands []*lane.AppendCommand
	for n := range runs {
		o := lanetest.RunOptions{Payload: []byte(`"x"`)}
		if n%2 == 0 {
			o.IdempotencyKey = string(rune('a' + n))
		}
		commands = append(commands, f.Creation(t, time.Now(), o))
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	made, refused := 0, 0
	for range 3 {
		for _, c := range commands {
			all.Go(func() {
				_, err := s.AppendRunEvents(t.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					made++
				case errors.Is(err, runlane.ConflictEventSequence):
					refused++
				default:
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if made != runs || refused != 2*runs {
		t.Errorf("%d runs were made, %d creations refused", made, refused)
	}
	again := f.Creation(t, time.Now(), lanetest.RunOptions{Payload: []byte(`"x"`), IdempotencyKey: "a"})
	if _, err := s.AppendRunEvents(t.Context(), again); !errors.Is(err, runlane.ConflictIdempotencyKey) {
		t.Error("another run of the key:", err)
	}
}
