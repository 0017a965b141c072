package lane

import (
	"context"

	"github.com/runlane/runlane-go"
)

// IndexReader is the optional ability of a storage to tell in what state the indexes are that it reads by, while they
// are made, changed and deleted beside running programs. doctor shows it; nothing else depends on it. Found with [As].
// Safe for concurrent use.
type IndexReader interface {
	// Indexes are those that the program reads, whether there or not, and then the others that the storage has. The
	// error is of the looking, as of any other read; what is wrong with an index stands in its state.
	Indexes(ctx context.Context) ([]IndexState, error)
}

// IndexState tells of an index whether it can be read.
type IndexState struct {
	// Name is the storage's.
	Name string
	// Used says that this program reads it. Another version may read one that is not.
	Used bool
	// Readable says that queries of this program are answered as it wants them. True for what it does not read.
	Readable bool
	// Fault says what is wrong, and in its hint what to do; nil for nothing. That of a readable index does no harm.
	// runlane.ErrStorageUnavailable passes by itself; runlane.ErrConfigurationInvalid does not.
	Fault *runlane.Error
}
