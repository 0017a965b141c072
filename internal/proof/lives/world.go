package lives

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// World is what outlives the processes of a life. All fields are needed.
type World struct {
	// Environment of the runs.
	Environment runlane.Environment
	// Storage is one process's way to what is stored. To a sound one nothing happens on the way.
	Storage func(sound bool) lane.Storage
	// Check reads what the storage's own invariants are about: what was written since the last time, or all there is.
	Check func(ctx context.Context, all bool) ([]lane.Violation, error)
	// DoorMeets: what goes wrong does so between a process and its storage, not behind the storage.
	DoorMeets bool
	// Begin is called before each step. Calm ends what goes wrong behind the storage, for good.
	Begin func(step int)
	Calm  func()
	// Close removes what is stored.
	Close func(ctx context.Context) error
}
