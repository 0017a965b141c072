// Package sealed encrypts payloads and outputs before they are stored. Give its codec to every runtime that triggers,
// executes or shows runs:
//
//	codec, err := sealed.FromEnv(nil) // RUNLANE_KEYS or RUNLANE_KEYS_FILE
//	…
//	rt, err := core.Open(ctx, l, &core.Options{Codec: codec, Handlers: handlers})
//
// The cipher is AES-256-GCM. Each payload and each output has a separate key, which HKDF-SHA256 derives from one of the
// given keys and from environment, run, task and kind. So bytes that were moved to another run cannot be decrypted, and
// a given key may be used for any number of runs. What is encrypted, what is not, and how keys are changed:
// docs/encryption.md.
package sealed
