package lane

import "github.com/runlane/runlane-go"

// OutputChecker is the optional ability of a storage to say, before a handler has returned, whether it can hold an
// output. Found with [As]. A storage that refuses outputs which runlane.MaxPayloadBytes allows should have it:
// otherwise the handler succeeds, with all its effects, and the commit fails.
type OutputChecker interface {
	// CheckOutput returns runlane.ErrValidationFailed for an output that a commit would refuse. The bytes are those
	// that would be committed: a codec's, where there is one. It reads and writes nothing.
	CheckOutput(run runlane.RunID, output []byte) error
}
