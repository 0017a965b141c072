package memlane

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxExamined bounds the rows one page looks at: a page may be short or empty and still have a next one.
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

// cursor is opaque: version, scope, part, instant, id.
func (s scope) cursor(part byte, p position) runlane.Cursor {
	b := make([]byte, 0, 18+len(p.id))
	b = append(b, 1)
	b = binary.BigEndian.AppendUint64(b, uint64(s))
	b = append(b, part)
	b = binary.BigEndian.AppendUint64(b, uint64(p.at))
	b = append(b, p.id...)
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// openPage reads limit and cursor of a request.
func openPage(q *lane.PageQuery, s scope) (limit int, after *resume, err error) {
	if limit, err = q.PageLimit(); err != nil || q.After == "" {
		return limit, nil, err
	}
	b, err := base64.RawURLEncoding.DecodeString(string(q.After))
	if err != nil || len(b) < 18 || b[0] != 1 || scope(binary.BigEndian.Uint64(b[1:])) != s {
		return 0, nil, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: "the cursor is not one of this list", Cause: err,
			Hint: "pass the cursor with the same filter, order and environment, or begin without one",
		}
	}
	return limit, &resume{b[9], position{millis(binary.BigEndian.Uint64(b[10:])), runlane.RunID(b[18:])}}, nil
}

// verdict is what a list does with a row.
type verdict int

const (
	take verdict = iota
	skip
	stop // neither this row nor any behind it
)

// fillPage takes rows until the page is full, the walk or its end is reached, or enough was looked at.
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
