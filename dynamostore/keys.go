package dynamostore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Names of the table's keys.
const (
	attrPK = "pk"
	attrSK = "sk"
)

// Names of the table's indexes, and of their keys.
const (
	indexDue  = "due"
	indexDone = "done"
	attrDueP  = "dp"
	attrDueA  = "da"
	attrDoneP = "fp"
	attrDoneA = "fa"
)

// Sort keys within a run's partition. 'log:…' < 'output' < 'payload' < 'run', so one query from 'payload' on reads payload and
// run.
const (
	skRun       = "run"
	skPayload   = "payload"
	skOutput    = "output"
	skOwner     = "owner"
	skLogPrefix = "log:"
	skShards    = "shards"
)

func runPK(key lane.RunKey) string {
	return key.Environment.Name() + ":run:" + string(key.RunID)
}

// parseRunPK is the inverse of runPK: neither environments nor ids contain ':'.
func parseRunPK(pk string) (lane.RunKey, bool) {
	environment, id, ok := strings.Cut(pk, ":run:")
	return lane.RunKey{Environment: runlane.Environment(environment), RunID: runlane.RunID(id)}, ok
}

func logSK(firstSequence int64) string { return fmt.Sprintf("%s%010d", skLogPrefix, firstSequence) }

func idempotencyPK(key lane.OwnerKey) string {
	return key.Environment.Name() + ":idem:" + hashParts(string(key.TaskID), key.Key)
}

func singletonPK(key lane.OwnerKey) string {
	return key.Environment.Name() + ":single:" + hashParts(string(key.TaskID), key.Key)
}

func configPK(e runlane.Environment) string { return e.Name() + ":config" }

// hashParts is SHA-256 over the length-prefixed parts, its first 32 hex digits.
func hashParts(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

func shardOf(id string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(n)) //nolint:gosec // n is a small positive count
}

// outboxID names a delivery row: run, first sequence of its commit, index within the commit. Opaque to callers.
func outboxID(id runlane.RunID, firstSequence int64, index int) string {
	return string(id) + ":" + strconv.FormatInt(firstSequence, 10) + ":" + strconv.Itoa(index)
}

func parseOutboxID(id string) (run runlane.RunID, firstSequence int64, index int, ok bool) {
	parts := strings.Split(id, ":")
	if len(parts) != 3 || parts[0] == "" {
		return "", 0, 0, false
	}
	first, err1 := strconv.ParseInt(parts[1], 10, 64)
	i, err2 := strconv.Atoi(parts[2])
	return runlane.RunID(parts[0]), first, i, err1 == nil && err2 == nil && first > 0 && i >= 0
}

// eventID is the durable id of an event record.
func eventID(id runlane.RunID, sequence int64) string {
	return string(id) + "-" + strconv.FormatInt(sequence, 10)
}

// millis are Unix milliseconds; 0 is the absent time.
type millis int64

func toMillis(t time.Time) millis {
	if t.IsZero() {
		return 0
	}
	return millis(t.UnixMilli())
}

func (m millis) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// parseMillis reads a time out of a key that this package wrote.
func parseMillis(digits string) millis {
	ms, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return millis(ms)
}
