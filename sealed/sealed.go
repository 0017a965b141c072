package sealed

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"

	"github.com/runlane/runlane-go"
)

// Codec implements runlane.Codec. It encrypts with its first key, decrypts with all, is safe for concurrent use, and
// prints only the names of its keys.
type Codec struct {
	first   Key
	keys    map[string]Key
	names   []string // in the order given
	options Options
}

// Options of [New] and [FromEnv]. nil means the defaults.
type Options struct {
	// NoCompression encrypts the bytes as they are. By default bytes that get shorter are compressed first, because
	// encrypted bytes do not compress in the storage. The stored length then depends on the content. Set NoCompression
	// if an attacker who controls part of a payload and can see its stored length must not guess the rest.
	NoCompression bool
	// RefusePlain refuses bytes that were stored without a codec. By default they are returned unchanged, so that runs
	// created before the codec was set can finish. Set it once they have: until then, an attacker who can write to the
	// table can replace encrypted bytes with plain ones.
	RefusePlain bool
}

var _ runlane.Codec = (*Codec)(nil)

// New returns a codec for the given keys: the first one encrypts, the others only decrypt. No keys, or two with one
// name, are runlane.ErrConfigurationInvalid.
func New(keys []Key, options *Options) (*Codec, error) {
	if len(keys) == 0 {
		return nil, invalidKeys("give at least one, see NewKey", "there are no keys")
	}
	c := &Codec{first: keys[0], keys: make(map[string]Key, len(keys))}
	if options != nil {
		c.options = *options
	}
	for _, key := range keys {
		if key.secret == nil {
			return nil, invalidKeys("make keys with NewKey, KeyOf or ParseKeys", "a key is empty")
		}
		if _, twice := c.keys[key.id]; twice {
			return nil, invalidKeys(
				"give each key a different name, and never use a name again",
				"two keys are named %q",
				key.id,
			)
		}
		c.keys[key.id] = key
		c.names = append(c.names, key.id)
	}
	return c, nil
}

type form byte

const (
	formPlain form = iota + 1 // the bytes themselves are encrypted
	formZstd                  // compressed first
)

const (
	nonceBytes   = 12
	tagBytes     = 16
	headerBytes  = 1 + nonceBytes
	compressFrom = 64 // shorter bytes hardly ever get shorter
)

// Encode implements runlane.Codec.
func (c *Codec) Encode(_ context.Context, of runlane.BodyRef, plain []byte) (stored []byte, key string, err error) {
	as, body := formPlain, plain
	if !c.options.NoCompression && len(plain) >= compressFrom {
		if small := compress(plain); len(small) < len(plain) {
			as, body = formZstd, small
		}
	}
	aead, err := c.first.cipher(of)
	if err != nil {
		return nil, "", err
	}
	stored = make([]byte, headerBytes, headerBytes+len(body)+tagBytes)
	stored[0] = byte(as)
	nonce := stored[1:headerBytes]
	if _, err := rand.Read(nonce); err != nil { // cannot fail, see crypto/rand
		return nil, "", &runlane.Error{
			Code:    runlane.ErrInternal,
			Message: "the system gives no random bytes",
			Cause:   err,
		}
	}
	return aead.Seal(stored, nonce, body, additional(as, c.first.id)), c.first.id, nil
}

// Decode implements runlane.Codec. Bytes that it cannot open are runlane.ErrPayloadUnreadable.
func (c *Codec) Decode(_ context.Context, of runlane.BodyRef, key string, stored []byte) (plain []byte, err error) {
	if key == "" {
		if c.options.RefusePlain {
			return nil, unreadable("it is not encrypted, and this process reads nothing else")
		}
		return stored, nil
	}
	with, ok := c.keys[key]
	if !ok {
		return nil, unreadable("it is encrypted with key %q, which this process does not have", key)
	}
	if len(stored) < headerBytes+tagBytes {
		return nil, unreadable("it was cut: %d bytes are left of what key %q encrypted", len(stored), key)
	}
	as := form(stored[0])
	if as != formPlain && as != formZstd {
		return nil, unreadable("it has a form that this version does not know")
	}
	aead, err := with.cipher(of)
	if err != nil {
		return nil, err
	}
	plain, err = aead.Open(nil, stored[1:headerBytes], stored[headerBytes:], additional(as, key))
	if err != nil {
		return nil, unreadable(
			"it was changed, belongs to another run, or was encrypted with another key of the name %q",
			key,
		)
	}
	if as == formZstd {
		if plain, err = decompress(plain); err != nil {
			return nil, unreadable("it does not decompress")
		}
	}
	return plain, nil
}

// cipher returns the cipher of one body. Its key is derived from the body's place, so the bytes cannot be decrypted for
// another body.
func (k Key) cipher(of runlane.BodyRef) (cipher.AEAD, error) {
	secret, err := hkdf.Key(sha256.New, k.secret(), nil, place(of), KeyBytes)
	if err == nil {
		var block cipher.Block
		if block, err = aes.NewCipher(secret); err == nil {
			return cipher.NewGCM(block)
		}
	}
	return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "there is no cipher", Cause: err}
}

// place encodes which body it is. Each part has its length first, so no two bodies have the same place.
func place(of runlane.BodyRef) string {
	kind := "payload"
	if of.Output {
		kind = "output"
	}
	parts := []string{kind, of.Environment.Name(), string(of.RunID), string(of.TaskID)}
	if of.Kind != "" {
		parts[0], parts = string(of.Kind), append(parts, of.Name)
	}
	b := []byte("runlane sealed 1")
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return string(b)
}

// additional is the data that the tag protects in addition to the bytes.
func additional(as form, key string) []byte { return append([]byte{byte(as)}, key...) }

func unreadable(format string, args ...any) error {
	return &runlane.Error{
		Code:      runlane.ErrPayloadUnreadable,
		Message:   fmt.Sprintf(format, args...),
		Retryable: true,
		Hint:      "give this process the keys of the one that stored it, under the same names",
	}
}

// String has the names of the keys, the encrypting one first. No method or verb prints the keys themselves.
func (c *Codec) String() string { return "sealed.Codec(" + strings.Join(c.names, ", ") + ")" }

// GoString is String.
func (c *Codec) GoString() string { return c.String() }

// Format prints String for every verb.
func (c *Codec) Format(to fmt.State, _ rune) { fmt.Fprint(to, c.String()) }

// LogValue is String.
func (c *Codec) LogValue() slog.Value { return slog.StringValue(c.String()) }
