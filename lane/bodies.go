package lane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// Bodies is a lane's place for large payloads, outputs, results of steps and bodies of signals. The storage then holds
// references to them.
type Bodies struct {
	// Store is required.
	Store BodyStore
	// Above is the size from which a body goes to the store: a body of more bytes. At least [MinBodiesAbove].
	Above int
}

// MinBodiesAbove is the least value of [Bodies].Above: smaller bodies would not be worth a reference.
const MinBodiesAbove = 1 << 10

// BodyStore keeps bodies by their keys: printable ASCII without spaces and backslashes, of at most 700 bytes, in three
// parts between slashes. It knows nothing about runs. Errors that are no *runlane.Error count as
// runlane.ErrStorageUnavailable. All methods are safe for concurrent use by any number of processes.
type BodyStore interface {
	// Put keeps the body durably before it returns, and replaces an earlier one. A reader sees one of them as a whole.
	Put(ctx context.Context, key string, body []byte) error
	// Get returns the caller's own copy. A missing body is fs.ErrNotExist.
	Get(ctx context.Context, key string) ([]byte, error)
	// List returns up to limit bodies with keys that begin with prefix and come after another key, in the order of the
	// keys' bytes. Fewer than limit means the end. Exact.
	List(ctx context.Context, prefix, after string, limit int) ([]ListedBody, error)
	// Delete removes bodies. Missing ones are no error.
	Delete(ctx context.Context, keys ...string) error
}

// ListedBody is a body in a list.
type ListedBody struct {
	Key   string    // as it was put
	Bytes int64     // its size
	At    time.Time // of the last put
}

// RunInstance is one creation of a run: a pruned ID may be used again.
type RunInstance struct {
	RunID     runlane.RunID // of the run
	CreatedAt time.Time     // its creation
}

// Reference stands in a storage for a body of one run in the body store.
type Reference struct {
	// At is the run's creation time in milliseconds.
	At int64 `json:"at"`
	runlane.BodyApart
}

// referenceMark begins a reference. No JSON begins so, and no body that a codec has encoded.
const referenceMark = 2

// NewReference returns the reference to a body of a run.
func NewReference(createdAt time.Time, body []byte) Reference {
	sum := sha256.Sum256(body)
	return Reference{createdAt.UnixMilli(), runlane.BodyApart{Bytes: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}}
}

// Stored returns the bytes for the storage.
func (r Reference) Stored() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and a text
	}
	return append([]byte{referenceMark}, text...)
}

// IsReference reports whether stored bytes are a reference, even if this version cannot read it.
func IsReference(stored []byte) bool { return len(stored) > 0 && stored[0] == referenceMark }

// ParseReference is the inverse of [Reference.Stored].
func ParseReference(stored []byte) (r Reference, ok bool) {
	if !IsReference(stored) || json.Unmarshal(stored[1:], &r) != nil {
		return Reference{}, false
	}
	sum, err := hex.DecodeString(r.SHA256)
	return r, err == nil && len(sum) == sha256.Size && r.Bytes > 0
}

// Matches reports whether a body is the one of the reference.
func (r Reference) Matches(body []byte) bool {
	sum := sha256.Sum256(body)
	return int64(len(body)) == r.Bytes && hex.EncodeToString(sum[:]) == r.SHA256
}

// Key returns the body's key: the content's hash within one creation of one run. Pruning the run can so remove its
// bodies without counting references.
func (r Reference) Key(run RunKey) string {
	return BodiesOf(run.Environment, RunInstance{run.RunID, time.UnixMilli(r.At)}) + r.SHA256
}

// BodiesIn returns the prefix of all keys of an environment.
func BodiesIn(environment runlane.Environment) string { return keyPart(environment.Name()) + "/" }

// BodiesOf returns the prefix of all keys of one creation of a run.
func BodiesOf(environment runlane.Environment, run RunInstance) string {
	return fmt.Sprintf("%s%s/%s-", BodiesIn(environment), keyPart(string(run.RunID)),
		strconv.FormatInt(run.CreatedAt.UnixMilli(), 36))
}

// maxKeyPart leaves room in the name of a file.
const maxKeyPart = 230

// keyPart escapes a name so that case is not significant: it is not in every file system. Of a name that is too long
// only a hash remains.
func keyPart(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		case c >= 'A' && c <= 'Z':
			b.WriteByte('.')
			b.WriteByte(c - 'A' + 'a')
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() <= maxKeyPart {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return "~" + hex.EncodeToString(sum[:])
}

// parseKeyPart is the inverse of keyPart. A hash has none.
func parseKeyPart(part string) (name string, ok bool) {
	var b strings.Builder
	whole := part
	for part != "" {
		c, rest := part[0], part[1:]
		switch {
		case c == '.' && rest != "":
			c, rest = rest[0]-'a'+'A', rest[1:]
		case c == '%' && len(rest) > 1:
			code, err := strconv.ParseUint(rest[:2], 16, 8)
			if err != nil {
				return "", false
			}
			c, rest = byte(code), rest[2:]
		}
		b.WriteByte(c)
		part = rest
	}
	name = b.String()
	return name, keyPart(name) == whole
}

// ParseBodyKey returns the run of a key. ok is false for keys of others, and of runs with very long names.
func ParseBodyKey(key string) (environment runlane.Environment, run RunInstance, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return "", RunInstance{}, false
	}
	env, envOK := parseKeyPart(parts[0])
	id, idOK := parseKeyPart(parts[1])
	created, _, found := strings.Cut(parts[2], "-")
	at, err := strconv.ParseInt(created, 36, 64)
	return runlane.Environment(env), RunInstance{runlane.RunID(id), time.UnixMilli(at).UTC()},
		envOK && idOK && found && err == nil
}
