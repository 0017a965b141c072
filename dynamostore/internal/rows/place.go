package rows

import (
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Place is where a payload or an output is stored, and in which form. It is part of the stored format.
type Place int

const (
	Nowhere      Place = iota
	inline             // in the run item
	inlineZstd         // in the run item, compressed
	Separate           // in a separate item
	SeparateZstd       // in a separate item, compressed
)

// Separate reports a place in an item of its own.
func (p Place) Separate() bool { return p == Separate || p == SeparateZstd }

func (p Place) compressed() bool { return p == inlineZstd || p == SeparateZstd }

// place chooses the cheapest place for b: the run item if it has room bytes left, raw or compressed, else a separate
// item, compressed if that saves a write unit.
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
	return compressIfCheaper(b, small, separateKeys)
}

const separateKeys = 128 // other bytes of a separate item, roughly

// placeSeparately chooses the form of b in a separate item with some other bytes.
func placeSeparately(b []byte, others int) (Place, []byte) {
	if item.Units(len(b)+others) == 1 {
		return Separate, b
	}
	return compressIfCheaper(b, compress(b), others)
}

func compressIfCheaper(b, small []byte, others int) (Place, []byte) {
	if item.Units(len(small)+others) < item.Units(len(b)+others) {
		return SeparateZstd, small
	}
	return Separate, b
}

func Open(p Place, b []byte) ([]byte, error) {
	if p.compressed() {
		return decompress(b)
	}
	return b, nil
}

type Bulk struct {
	PK   string `dynamodbav:"pk"`
	SK   string `dynamodbav:"sk"`
	Body []byte `dynamodbav:"bo"`

	Commit string `dynamodbav:"ci,omitempty"` // that wrote it; none in items of older programs
}

// placePayload puts a payload into the run item, or appends a separate item for it. A payload that later triggers may
// replace names its commit: run and item are not read at one instant.
func (r *Run) placePayload(payload []byte, commit string, bulk []Bulk) ([]Bulk, error) {
	r.Payload, r.PayloadPlace, r.PayloadCommit = nil, Nowhere, ""
	if r.DebounceTriggers > 0 {
		r.PayloadCommit = commit
	}
	without, err := Marshal(r)
	if err != nil {
		return nil, err
	}
	room := inlineLimit - inlineReserve - item.Size(without)
	if err := tooLarge("payload", "", len(payload), maxOpenedBytes, r.Key().RunID); err != nil {
		return nil, err
	}
	p, b := place(payload, room)
	if r.PayloadPlace = p; p.Separate() {
		bulk = append(bulk, Bulk{PK: r.PK, SK: PayloadSK, Body: b})
	} else {
		r.Payload = b
	}
	return bulk, tooLarge("payload", " compressed", len(b), maxStoredBytes, r.Key().RunID)
}

// placeBulk puts a new payload and a success's output into the run item, or returns separate items for them.
func (r *Run) placeBulk(c *Change) (bulk []Bulk, err error) {
	if c.Replaced != nil {
		return r.placePayload(c.Replaced, c.ID, nil)
	}
	for _, e := range c.Events {
		switch body := e.Body.(type) {
		case *runlane.RunCreated:
			if bulk, err = r.placePayload(body.Payload, c.ID, bulk); err != nil {
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

// CheckPayload returns an error for a payload that no item can hold.
func CheckPayload(run runlane.RunID, payload []byte) error {
	if err := tooLarge("payload", "", len(payload), maxOpenedBytes, run); err != nil || len(payload) <= maxStoredBytes {
		return err
	}
	return tooLarge("payload", " compressed", len(compress(payload)), maxStoredBytes, run)
}

// PutOutput returns the place of an output and the bytes to store, or an error if it is too large.
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
