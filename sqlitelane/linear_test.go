package sqlitelane_test

import (
	"testing"

	"github.com/runlane/runlane-go/internal/proof/lives/linear"
	"github.com/runlane/runlane-go/lane"
)

// Four processes over one file, each with a writer and a memory of its entries.
func TestStorage_Linearizability(t *testing.T) {
	t.Parallel()
	linear.Run(t, linear.Harness{
		New: func(t testing.TB) []lane.Storage {
			t.Helper()
			path := newPath(t)
			var processes []lane.Storage
			for range 4 {
				processes = append(processes, started(t, path, 0))
			}
			return processes
		},
		Options: &linear.Options{Operations: 4, Keys: 16},
	})
}
