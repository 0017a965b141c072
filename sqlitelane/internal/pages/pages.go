// Package pages makes and reads the cursors of lists.
package pages

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Scope identifies a list: its method, environment, filter and order. A cursor carries the scope it was made for.
type Scope uint64

// NewScope is that of a request.
func NewScope(method string, name runlane.Environment, filter ...string) Scope {
	h := fnv.New64a()
	for _, part := range append([]string{method, name.Name()}, filter...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return Scope(h.Sum64())
}

// Position is a place in a list, on a row or between two.
type Position struct {
	// Part is that of a list which is made of several.
	Part byte
	// At is the instant by which the list is ordered, or a sequence.
	At int64
	// ID tells rows of one instant apart.
	ID string
}

// Cursor is opaque: version, part, instant, id, and a checksum of these and the scope, which also reveals an altered
// one.
func (s Scope) Cursor(p Position) runlane.Cursor {
	b := make([]byte, 0, 18+len(p.ID))
	b = append(b, 1, p.Part)
	b = binary.BigEndian.AppendUint64(b, uint64(p.At)) // its bits
	b = append(b, p.ID...)
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(b, s.sum(b))))
}

func (s Scope) sum(content []byte) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(s)))
	h.Write(content)
	return h.Sum64()
}

// Open reads limit and cursor of a request. after is nil at the beginning.
func Open(q *lane.PageQuery, s Scope) (limit int, after *Position, err error) {
	if limit, err = q.PageLimit(); err != nil || q.After == "" {
		return limit, nil, err
	}
	b, err := base64.RawURLEncoding.DecodeString(string(q.After))
	after = &Position{}
	if end := len(b) - 8; err == nil && end >= 10 { // of the content
		at := int64(binary.BigEndian.Uint64(b[2:])) // its bits
		*after = Position{b[1], at, string(b[10:end])}
	}
	if s.Cursor(*after) != q.After { // base64 has several texts for the same bytes
		return 0, nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "the cursor is not one of this list", Cause: err,
			Hint: "pass the cursor with the same filter, order and environment, or begin without one",
		}
	}
	return limit, after, nil
}
