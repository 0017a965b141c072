package sqstransport

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/runlane/runlane-go"
)

// groupID names the message group: one a concurrency key, else one a run. SQS takes at most 128 characters of ASCII,
// keys may be longer and hold anything.
func groupID(queue runlane.QueueName, key string) string { return digest(string(queue), key) }

// deduplicationID is of the outbox row, so that a publication repeated after an unknown outcome arrives once.
func deduplicationID(outboxID string) string { return digest(outboxID) }

// digest is 32 hex digits of a SHA-256 over the parts, each after its length: no two lists of parts read the same.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
