package embedded

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// MostExamined bounds the rows that one page reads. A page may be short, or empty, and still have a next one.
const MostExamined = 1000

// Scope identifies a list: method, environment, filter and order. A cursor is valid for one scope.
type Scope uint64

// NewScope returns the scope of a request.
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
	// Part is the part of a list made of several.
	Part byte
	// At is the time that orders the list, or a sequence.
	At Millis
	// ID orders rows of the same time.
	ID string
}

// Cursor encodes version, part, time, ID and a checksum over these and the scope, which also detects altered cursors.
func (s Scope) Cursor(p Position) runlane.Cursor {
	b := make([]byte, 0, 18+len(p.ID))
	b = append(b, 1, p.Part)
	b = binary.BigEndian.AppendUint64(b, uint64(p.At)) // the bits
	b = append(b, p.ID...)
	return runlane.Cursor(base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(b, s.sum(b))))
}

func (s Scope) sum(content []byte) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(s)))
	h.Write(content)
	return h.Sum64()
}

// OpenPage checks the limit and the cursor of a request. after is nil for the first page.
func OpenPage(q *lane.PageQuery, s Scope) (limit int, after *Position, err error) {
	if limit, err = q.PageLimit(); err != nil || q.After == "" {
		return limit, nil, err
	}
	b, err := base64.RawURLEncoding.DecodeString(string(q.After))
	after = &Position{}
	if end := len(b) - 8; err == nil && end >= 10 { // end of the content
		at := Millis(binary.BigEndian.Uint64(b[2:])) // the bits
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

// Verdict is a list's decision about a row.
type Verdict int

// Verdicts.
const (
	Take Verdict = iota
	Skip
	Stop // skip this row and all behind it
)

type placed interface{ Place(part byte) Position }

// FillPage takes rows until the page is full, the walk ends, judge returns Stop, or MostExamined rows were read.
func FillPage[I placed, T any](
	next func() (I, bool, error), s Scope, limit int, part byte, judge func(I) (T, Verdict, error),
) (*runlane.Page[T], error) {
	page := &runlane.Page[T]{}
	var last I
	for examined := 0; ; examined++ {
		i, ok, err := next()
		if err != nil || !ok {
			return page, err
		}
		row, v, err := judge(i)
		switch {
		case err != nil:
			return nil, err
		case v == Stop:
			return page, nil
		case examined == MostExamined || v == Take && len(page.Items) == limit:
			page.Next = s.Cursor(last.Place(part))
			return page, nil
		case v == Take:
			page.Items = append(page.Items, row)
		}
		last = i
	}
}

// The parts of the list of runs.
const (
	ActivePart byte = iota
	FinishedPart
)

// BehindAll is after every time in a list.
const BehindAll Millis = 1 << 62

// FillRuns fills a page of ListRuns: first active runs by when they next need attention, then finished runs, newest
// first. finished is false if there are certainly none.
func FillRuns(
	s Scope, limit int, after *Position, finished bool,
	fill func(part byte, after *Position, limit int) (*runlane.Page[runlane.RunSummary], error),
) (*runlane.Page[runlane.RunSummary], error) {
	if after != nil && after.Part == FinishedPart {
		return fill(FinishedPart, after, limit)
	}
	page, err := fill(ActivePart, after, limit)
	if err != nil || page.Next != "" || !finished {
		return page, err
	}
	if len(page.Items) == limit { // the finished runs begin on their own page
		page.Next = s.Cursor(Position{Part: FinishedPart, At: BehindAll})
		return page, nil
	}
	rest, err := fill(FinishedPart, nil, limit-len(page.Items))
	if err != nil {
		return nil, err
	}
	return &runlane.Page[runlane.RunSummary]{Items: append(page.Items, rest.Items...), Next: rest.Next}, nil
}
