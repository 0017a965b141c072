// Package rows builds the items of the table and the writes of a commit, and classifies what a run needs at an instant.
// It is pure: callers pass in clock and randomness, and do the I/O (docs/internals/layout.md).
package rows

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

const (
	IndexDue  = "due"
	IndexDone = "done"
	AttrDueP  = "dp"
	AttrDueA  = "da"
	AttrDoneP = "fp"
	AttrDoneA = "fa"
)

// Sort keys within a run's partition: 'kept:…' < 'log:…' < 'output' < 'payload' < 'run'. One query from 'payload' on
// reads payload and run.
const (
	RunSK     = "run"
	PayloadSK = "payload"
	OutputSK  = "output"
	OwnerSK   = "owner"
	LogPrefix = "log:"
	ShardsSK  = "shards"
	KeepSK    = "keep"
	PausesSK  = "pauses"
)

// RunPK is the partition key of a run and everything that belongs to it.
func RunPK(key lane.RunKey) string {
	return key.Environment.Name() + ":run:" + string(key.RunID)
}

// ParseRunPK is the inverse of RunPK: neither environments nor IDs contain ':'.
func ParseRunPK(pk string) (lane.RunKey, bool) {
	environment, id, ok := strings.Cut(pk, ":run:")
	return lane.RunKey{Environment: runlane.Environment(environment), RunID: runlane.RunID(id)}, ok
}

func LogSK(firstSequence int64) string { return fmt.Sprintf("%s%010d", LogPrefix, firstSequence) }

func IdempotencyPK(key lane.OwnerKey) string {
	return key.Environment.Name() + ":idem:" + Hash(string(key.TaskID), key.Key)
}

func SingletonPK(key lane.OwnerKey) string {
	return key.Environment.Name() + ":single:" + Hash(string(key.TaskID), key.Key)
}

func ConfigPK(e runlane.Environment) string { return e.Name() + ":config" }

// Hash returns the first 32 hex digits of SHA-256 over the length-prefixed parts.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// OutboxID names a delivery row by run, first sequence of its commit, and index. Callers treat it as opaque.
func OutboxID(id runlane.RunID, firstSequence int64, index int) string {
	return string(id) + ":" + strconv.FormatInt(firstSequence, 10) + ":" + strconv.Itoa(index)
}

func ParseOutboxID(id string) (run runlane.RunID, firstSequence int64, index int, ok bool) {
	parts := strings.Split(id, ":")
	if len(parts) != 3 || parts[0] == "" {
		return "", 0, 0, false
	}
	first, err1 := strconv.ParseInt(parts[1], 10, 64)
	i, err2 := strconv.Atoi(parts[2])
	return runlane.RunID(parts[0]), first, i, err1 == nil && err2 == nil && first > 0 && i >= 0
}

func eventID(id runlane.RunID, sequence int64) string {
	return string(id) + "-" + strconv.FormatInt(sequence, 10)
}

// Millis are Unix milliseconds; 0 is no time.
type Millis int64

func ToMillis(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// ParseMillis parses a time of a key that this package wrote.
func ParseMillis(digits string) Millis {
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return Millis(ms)
}

const FarFuture Millis = 9_999_999_999_999

func (m Millis) LastKey() string { return fmt.Sprintf("%013d:%s", m, item.BeyondKeys) }
