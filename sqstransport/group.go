package sqstransport

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/runlane/runlane-go"
)

// groupID is the message group of a concurrency key, or of a run without one. SQS takes at most 128 ASCII characters.
func groupID(queue runlane.QueueName, key string) string { return digest(string(queue), key) }

// deduplicationID depends on the outbox row, so that a publication repeated after an unknown outcome arrives once.
func deduplicationID(outboxID string) string { return digest(outboxID) }

// digest is 32 hex digits of SHA-256 over the length-prefixed parts.
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
