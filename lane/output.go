package lane

import "github.com/runlane/runlane-go"

// OutputChecker is the optional ability of a storage to say, before a handler has returned, whether it can hold an
// output, and before a schedule fires, whether it can hold the payload. Found with [As]. A storage that refuses outputs
// or payloads which runlane.MaxPayloadBytes allows should have it: otherwise the handler succeeds, with all its effects,
// and the commit fails, or the schedule fails at each of its times.
type OutputChecker interface {
	// CheckOutput returns runlane.ErrValidationFailed for an output that a commit would refuse. The bytes are those
	// that would be committed: a codec's, where there is one. It reads and writes nothing.
	CheckOutput(run runlane.RunID, output []byte) error
	// CheckPayload is the same for a payload that a creation would refuse.
	CheckPayload(run runlane.RunID, payload []byte) error
}
