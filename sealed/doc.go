// Package sealed encrypts payloads and outputs before they are stored. Set its codec in every runtime that triggers,
// executes or shows runs:
//
//	codec, err := sealed.FromEnv(nil) // RUNLANE_KEYS or RUNLANE_KEYS_FILE
//	…
//	rt, err := core.Open(ctx, l, &core.Options{Codec: codec, Handlers: handlers})
//
// The cipher is AES-256-GCM. Each payload and output has its own key, which HKDF-SHA256 derives from one of the given
// keys and from environment, run, task and kind. So bytes moved to another run cannot be decrypted, and a given key may
// serve any number of runs. docs/encryption.md lists what is encrypted and how to change keys.
package sealed
