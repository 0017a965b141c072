package sealed

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"

	"github.com/runlane/runlane-go"
)

const (
	// KeyBytes is the length of a key: AES-256's.
	KeyBytes = 32
	// MaxKeyIDBytes limits the name of a key, which is stored with everything that the key encrypted.
	MaxKeyIDBytes = 64
)

// Key is a secret with a name. The name is stored with the encrypted bytes and is not secret: choose one that shows
// when the key came into use, and never reuse it for another key. A key prints only its name.
type Key struct {
	id     string
	secret func() []byte // nil: no key. A function, because packages that print by reflection follow pointers
}

// NewKey makes a random key. Store its Line where programs read keys.
func NewKey(id string) (Key, error) {
	secret := make([]byte, KeyBytes)
	if _, err := rand.Read(secret); err != nil { // cannot fail, see crypto/rand
		return Key{}, &runlane.Error{Code: runlane.ErrInternal, Message: "the system gives no random bytes", Cause: err}
	}
	return KeyOf(id, secret)
}

// KeyOf returns the key with this name and a copy of these [KeyBytes] bytes. An invalid name or length is
// runlane.ErrConfigurationInvalid.
func KeyOf(id string, secret []byte) (Key, error) {
	if fault := idFault(id); fault != "" {
		return Key{}, invalidKeys(idHint, "the name of a key %s", fault)
	}
	if len(secret) != KeyBytes {
		return Key{}, invalidKeys(fmt.Sprintf("use %d random bytes", KeyBytes), "key %q has %d bytes", id, len(secret))
	}
	kept := bytes.Clone(secret)
	return Key{id: id, secret: func() []byte { return kept }}, nil
}

// ID is the key's name.
func (k Key) ID() string { return k.id }

// Line is the key with its secret, in the format of [ParseKeys].
func (k Key) Line() string {
	if k.secret == nil {
		return ""
	}
	return k.id + "=" + base64.StdEncoding.EncodeToString(k.secret())
}

// String is the key's name. The secret is never printed.
func (k Key) String() string { return "sealed.Key(" + k.id + ")" }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Format prints String for every verb.
func (k Key) Format(to fmt.State, _ rune) { fmt.Fprint(to, k.String()) }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// ParseKeys parses keys of a file or a variable: id=secret, on separate lines or comma-separated, the secret in base64.
// The first key encrypts. Empty lines, and lines starting with #, are ignored. An invalid key is
// runlane.ErrConfigurationInvalid; the error has the number of the key, never its text.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	err := parseEntries(text, func(n int, id string, secret []byte) error {
		key, err := keyOfEntry(n, id, secret)
		keys = append(keys, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

func parseEntries(text string, each func(n int, id string, secret []byte) error) error {
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for entry := range strings.SplitSeq(line, ",") {
			if entry = strings.TrimSpace(entry); entry == "" {
				continue
			}
			n++
			id, encoded, ok := strings.Cut(entry, "=")
			if !ok {
				return invalidKeys(lineHint, "key %d has no name", n)
			}
			if fault := idFault(id); fault != "" {
				return invalidKeys(idHint, "the name of key %d %s", n, fault)
			}
			secret, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil { // its error has only a position
				return invalidKeys(lineHint, "key %d is not base64", n)
			}
			if len(secret) == 0 { // a lone secret that ends in = reads as a name without a secret
				return invalidKeys(lineHint, "key %d has no secret, or no name", n)
			}
			if err := each(n, id, secret); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		return invalidKeys(lineHint, "there are no keys")
	}
	return nil
}

const (
	lineHint = "write id=secret, the secret in base64, a key a line or with commas between them"
	idHint   = "use 1 to 64 letters, digits, and . _ - / :"
)

// idFault describes an invalid name of a key, or returns "". It does not quote the name, which may be a secret in the
// wrong place.
func idFault(id string) string {
	switch {
	case id == "":
		return "is empty"
	case len(id) > MaxKeyIDBytes:
		return fmt.Sprintf("has %d bytes", len(id))
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/:", r) {
			return "has other characters"
		}
	}
	return ""
}

// keyOfEntry is KeyOf with errors that do not quote the entry.
func keyOfEntry(n int, id string, secret []byte) (Key, error) {
	if len(secret) != KeyBytes {
		return Key{}, invalidKeys(fmt.Sprintf("use %d random bytes", KeyBytes), "key %d has %d bytes", n, len(secret))
	}
	return KeyOf(id, secret)
}

func invalidKeys(hint, format string, args ...any) error {
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: "encryption: " + fmt.Sprintf(format, args...),
		Hint:    hint,
	}
}
