package sealed

import (
	"context"
	"fmt"
	"os"

	"github.com/runlane/runlane-go"
)

// Variables of [FromEnv]. At most one of them may be set.
const (
	// KeysVariable has the keys, in the format of [ParseKeys].
	KeysVariable = "RUNLANE_KEYS"
	// KeysFileVariable is the path of a file with the keys.
	KeysFileVariable = "RUNLANE_KEYS_FILE"
)

// FromEnv returns a codec with the keys of the environment, or nil without keys: payloads are then stored unencrypted.
// Invalid keys are runlane.ErrConfigurationInvalid; the error does not quote them.
func FromEnv(options *Options) (runlane.Codec, error) {
	text, file := os.Getenv(KeysVariable), os.Getenv(KeysFileVariable)
	switch {
	case text != "" && file != "":
		return nil, invalidKeys("set one of them", "%s and %s are both set", KeysVariable, KeysFileVariable)
	case text == "" && file == "":
		return nil, nil // documented: no codec, no error
	case file != "":
		read, err := os.ReadFile(file)
		if err != nil {
			return nil, &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("encryption: the file that %s names cannot be read", KeysFileVariable),
				Hint:    "name a file with a key a line, that this process may read",
				Cause:   err,
			}
		}
		text = string(read)
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, err
	}
	codec, err := New(keys, options)
	if err != nil {
		return nil, err
	}
	return codec, nil
}

// Unwrapper decrypts a key that another key encrypted, for example one of a key management service. id is the key's
// name.
type Unwrapper func(ctx context.Context, id string, wrapped []byte) (secret []byte, err error)

// UnwrapKeys parses keys like [ParseKeys] and decrypts each secret with unwrap. Call it once, when the program starts.
// An error of unwrap is the cause of the returned error, which has the same code, or runlane.ErrConfigurationInvalid
// without one.
func UnwrapKeys(ctx context.Context, text string, unwrap Unwrapper) ([]Key, error) {
	var keys []Key
	err := parseEntries(text, func(n int, id string, wrapped []byte) error {
		secret, err := unwrap(ctx, id, wrapped)
		if err != nil {
			code := runlane.CodeOf(err)
			if code == "" {
				code = runlane.ErrConfigurationInvalid
			}
			return &runlane.Error{
				Code:    code,
				Message: fmt.Sprintf("encryption: key %q cannot be unwrapped", id),
				Cause:   err,
				Hint:    "check that this process may use the key it was wrapped with",
			}
		}
		key, err := keyOfEntry(n, id, secret)
		clear(secret)
		keys = append(keys, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}
