package lane

import "github.com/runlane/runlane-go"

// IndexState describes whether an index of the storage, by its Name, can be read.
type IndexState struct {
	Name string
	// Used by this program. Another version may read an unused one.
	Used bool
	// Readable: it answers this program's queries correctly. Always true if unused.
	Readable bool
	// Fault is the problem, with the next step in its hint; nil for none. A fault of a readable index does no harm.
	// runlane.ErrStorageUnavailable passes by itself; runlane.ErrConfigurationInvalid does not.
	Fault *runlane.Error
}
