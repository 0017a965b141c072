// Package sealed encrypts payloads and outputs before they are stored. Give its codec to every runtime that triggers, executes or
// shows runs:
//
//	codec, err := sealed.FromEnv(nil) // RUNLANE_KEYS or RUNLANE_KEYS_FILE
//	…
//	rt, err := core.Open(ctx, l, &core.Options{Codec: codec, Handlers: handlers})
//
// The cipher is AES-256-GCM. Each payload and each output has a key of its own, which HKDF-SHA256 derives from one of the given keys
// and from environment, run, task and kind: bytes that were moved to another run do not open, and no number of runs wears a key out.
// What is encrypted, what is not, and how keys are changed: docs/encryption.md.
package sealed
