package lane

import "github.com/runlane/runlane-go"

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
