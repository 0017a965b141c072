package memlane

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxExamined bounds the rows that one page reads: a page may be short or empty and still have a next one.
const maxExamined = 1000

// scope identifies a list: its method, environment, filter and order. A cursor carries the scope it was made for.
type scope uint64

func newScope(method string, name runlane.Environment, filter ...string) scope {
	h := fnv.New64a()
	for _, part := range append([]string{method, name.Name()}, filter...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return scope(h.Sum64())
}

// resume is where a page begins: behind an item of one of the parts that a list is made of. nil is the beginning.
type resume struct {
	part byte
	position
}

func (r *resume) place() *position {
	if r == nil {
		return nil
	}
	return &r.position
}

// cursor is opaque: version, part, instant, id, and a checksum of these and the scope, which also reveals an altered
// one.
func (s scope) cursor(part byte, p position) runlane.Cursor {
	b := make([]byte, 0, 18+len(p.id))
	b = append(b, 1, part)
	b = binary.BigEndian.AppendUint64(b, uint64(p.at))
	b = append(b, p.id...)
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(b, s.sum(b))))
}

func (s scope) sum(content []byte) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(s)))
	h.Write(content)
	return h.Sum64()
}

// openPage reads limit and cursor of a request.
func openPage(q *lane.PageQuery, s scope) (limit int, after *resume, err error) {
	if limit, err = q.PageLimit(); err != nil || q.After == "" {
		return limit, nil, err
	}
	b, err := base64.RawURLEncoding.DecodeString(string(q.After))
	after = &resume{}
	if end := len(b) - 8; err == nil && end >= 10 { // of the content
		*after = resume{b[1], position{millis(binary.BigEndian.Uint64(b[2:])), runlane.RunID(b[10:end])}}
	}
	if s.cursor(after.part, after.position) != q.After { // base64 has several texts for the same bytes
		return 0, nil, &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "the cursor is not one of this list",
			Cause:   err,
			Hint:    "pass the cursor with the same filter, order and environment, or begin without one",
		}
	}
	return limit, after, nil
}

// verdict is what a list does with a row.
type verdict int

const (
	take verdict = iota
	skip
	stop // neither this row nor any behind it
)

// fillPage takes rows until the page is full, the walk ends, judge says stop, or maxExamined rows were read.
func fillPage[T any](w *walk, s scope, limit int, part byte, judge func(item) (T, verdict)) *runlane.Page[T] {
	page := &runlane.Page[T]{}
	var last item
	for examined := 0; ; examined++ {
		next, ok := w.peek()
		if !ok {
			return page
		}
		row, v := judge(next)
		if v == stop {
			return page
		}
		if examined == maxExamined || v == take && len(page.Items) == limit {
			page.Next = s.cursor(part, last.position())
			return page
		}
		if v == take {
			page.Items = append(page.Items, row)
		}
		last = next
		w.advance()
	}
}
