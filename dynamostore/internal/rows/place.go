package rows

import (
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Place says where the bytes of a payload or an output are, and in which form. The place is stored.
type Place int

// The places of a payload or an output.
const (
	Nowhere      Place = iota
	inline             // in the run item
	inlineZstd         // in the run item, compressed
	Separate           // in a separate item
	SeparateZstd       // in a separate item, compressed
)

// Separate reports a place in an item apart from the run.
func (p Place) Separate() bool { return p == Separate || p == SeparateZstd }

func (p Place) compressed() bool { return p == inlineZstd || p == SeparateZstd }

// place chooses the cheapest place for b when the run item has room for that many more bytes: raw in the run item,
// compressed in it, or in a separate item, compressed when that saves a write unit.
func place(b []byte, room int) (Place, []byte) {
	if b == nil {
		return Nowhere, nil
	}
	if len(b) <= room {
		return inline, b
	}
	small := compress(b)
	if len(small) <= room {
		return inlineZstd, small
	}
	return cheaper(b, small, separateKeys)
}

const separateKeys = 128 // of a separate item, roughly

// separate is the form of bytes in a separate item, whose other attributes have some size.
func separate(b []byte, others int) (Place, []byte) {
	if item.Units(len(b)+others) == 1 {
		return Separate, b
	}
	return cheaper(b, compress(b), others)
}

// cheaper compresses what saves a write unit.
func cheaper(b, small []byte, others int) (Place, []byte) {
	if item.Units(len(small)+others) < item.Units(len(b)+others) {
		return SeparateZstd, small
	}
	return Separate, b
}

// Open restores the bytes that were stored at a place.
func Open(p Place, b []byte) ([]byte, error) {
	if p.compressed() {
		return decompress(b)
	}
	return b, nil
}

// Bulk is a payload or an output in a separate item.
type Bulk struct {
	PK   string `dynamodbav:"pk"`
	SK   string `dynamodbav:"sk"`
	Body []byte `dynamodbav:"bo"`

	Commit string `dynamodbav:"ci,omitempty"` // that wrote it; items of older programs have none
}

// placeBulk puts payload (of a creation) and output (of a success) into the item, or returns the separate items that
// they need.
func (r *Run) placeBulk(t *lane.Transition) (bulk []Bulk, err error) {
	for _, e := range t.Events {
		switch body := e.Body.(type) {
		case *runlane.RunCreated:
			without, err := Marshal(r)
			if err != nil {
				return nil, err
			}
			room := inlineLimit - inlineReserve - item.Size(without)
			if err := tooLarge("payload", "", len(body.Payload), maxOpenedBytes, r.Key().RunID); err != nil {
				return nil, err
			}
			p, b := place(body.Payload, room)
			if r.PayloadPlace = p; p.Separate() {
				bulk = append(bulk, Bulk{PK: r.PK, SK: PayloadSK, Body: b})
			} else {
				r.Payload = b
			}
			if err := tooLarge("payload", " compressed", len(b), maxStoredBytes, r.Key().RunID); err != nil {
				return nil, err
			}
		case *runlane.RunSucceeded:
			p, b, err := PutOutput(r.Key().RunID, body.Output)
			if err != nil {
				return nil, err
			}
			if r.OutputPlace = p; p.Separate() {
				bulk = append(bulk, Bulk{PK: r.PK, SK: OutputSK, Body: b})
			} else {
				r.Output = b
			}
		}
	}
	return bulk, nil
}

// CheckPayload returns the error that a payload is too large for any item.
func CheckPayload(run runlane.RunID, payload []byte) error {
	if err := tooLarge("payload", "", len(payload), maxOpenedBytes, run); err != nil || len(payload) <= maxStoredBytes {
		return err
	}
	return tooLarge("payload", " compressed", len(compress(payload)), maxStoredBytes, run)
}

// PutOutput is where an output goes and its bytes there, or the error that it is too large.
func PutOutput(run runlane.RunID, output []byte) (Place, []byte, error) {
	if err := tooLarge("output", "", len(output), maxOpenedBytes, run); err != nil {
		return Nowhere, nil, err
	}
	p, b := place(output, inlineOutput)
	return p, b, tooLarge("output", " compressed", len(b), MaxOutputBytes, run)
}

func tooLarge(what, form string, size, limit int, run runlane.RunID) error {
	if size <= limit {
		return nil
	}
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		RunID:   run,
		Message: fmt.Sprintf("%s has %d bytes%s, more than %d", what, size, form, limit),
		Hint:    "store the bulk elsewhere and pass a reference",
	}
}
