package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
)

// A record is a list of fields, each a number and a value. Readers skip unknown numbers, and writing a record again
// keeps them, so fields from newer programs survive older ones.
//
// The lowest bit of the encoded number is the type of the value: 0 is an integer, 1 is bytes with a length.

type writer struct{ b []byte }

func (w *writer) number(field int, n int64) {
	if n != 0 {
		w.b = binary.AppendUvarint(w.b, uint64(field)<<1)
		w.b = binary.AppendVarint(w.b, n)
	}
}

func (w *writer) flag(field int, is bool) {
	if is {
		w.number(field, 1)
	}
}

// bytes omits nil, but not an empty value.
func (w *writer) bytes(field int, b []byte) {
	if b != nil {
		w.b = binary.AppendUvarint(w.b, uint64(field)<<1|1)
		w.b = binary.AppendUvarint(w.b, uint64(len(b)))
		w.b = append(w.b, b...)
	}
}

func (w *writer) text(field int, s string) {
	if s != "" {
		w.b = binary.AppendUvarint(w.b, uint64(field)<<1|1)
		w.b = binary.AppendUvarint(w.b, uint64(len(s)))
		w.b = append(w.b, s...)
	}
}

// json writes a wait. Few runs have one.
func (w *writer) json(field int, wait *runlane.Waiting) {
	if wait == nil {
		return
	}
	data, err := json.Marshal(wait)
	if err != nil {
		panic(err) // it always marshals
	}
	w.bytes(field, data)
}

// texts distinguishes nil from an empty map.
func (w *writer) texts(field int, m map[string]string) {
	if m == nil {
		return
	}
	w.nested(field, func(in *writer) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			in.piece(name)
			in.piece(m[name])
		}
	})
}

func (w *writer) piece(s string) {
	w.b = binary.AppendUvarint(w.b, uint64(len(s)))
	w.b = append(w.b, s...)
}

// nested writes fields as the value of a field.
func (w *writer) nested(field int, fill func(*writer)) {
	var in writer
	fill(&in)
	if in.b == nil {
		in.b = []byte{}
	}
	w.bytes(field, in.b)
}

var errCut = errors.New("a stored record is cut off, or no record")

// reader iterates over the fields of a record.
type reader struct {
	b   []byte
	err error
}

// field has n or bytes, depending on its type.
type field struct {
	number int
	n      int64
	bytes  []byte
	raw    []byte // encoded
}

// next returns the next field, ok = false at the end or after an error.
func (r *reader) next() (f field, ok bool) {
	if r.err != nil || len(r.b) == 0 {
		return field{}, false
	}
	before := r.b
	head := r.unsigned()
	f.number = int(head >> 1) // only compared with known numbers
	if head&1 == 0 {
		n, size := binary.Varint(r.b)
		if size <= 0 {
			r.err = errCut
			return field{}, false
		}
		f.n, r.b = n, r.b[size:]
	} else {
		f.bytes = r.piece()
	}
	if r.err != nil {
		return field{}, false
	}
	f.raw = before[:len(before)-len(r.b)]
	return f, true
}

func (r *reader) unsigned() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.err = errCut
		return 0
	}
	r.b = r.b[size:]
	return n
}

// piece never returns nil.
func (r *reader) piece() []byte {
	size := r.unsigned()
	if r.err != nil || size > uint64(len(r.b)) {
		r.err = errCut
		return []byte{}
	}
	piece := r.b[:size:size]
	r.b = r.b[size:]
	return piece
}

func (r *reader) waiting(b []byte) *runlane.Waiting {
	w := &runlane.Waiting{}
	if err := json.Unmarshal(b, w); err != nil {
		r.err = err
	}
	return w
}

func (r *reader) textsIn(b []byte) map[string]string {
	in, m := reader{b: b}, map[string]string{}
	for len(in.b) > 0 && in.err == nil {
		name := string(in.piece())
		m[name] = string(in.piece())
	}
	if in.err != nil {
		r.err = in.err
	}
	return m
}
