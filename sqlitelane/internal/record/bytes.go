package record

import (
	"github.com/klauspost/compress/zstd"
	"github.com/runlane/runlane-go"
)

// Place says where the bytes of a payload or an output are, and in which form. It is stored.
type Place int64

// The places of bytes.
const (
	Nowhere    Place = 0
	Inline     Place = 1 // in the record
	InlineZstd Place = 2
	Apart      Place = 3 // in a separate row
	ApartZstd  Place = 4
)

func (p Place) inline() bool { return p == Inline || p == InlineZstd }

// Apart reports bytes in a separate row.
func (p Place) Apart() bool { return p == Apart || p == ApartZstd }

const (
	// mostInline is what a record has room for: each commit of the run writes these bytes again.
	mostInline = 1 << 10
	// leastCompressed is where compression begins to be worth its time.
	leastCompressed = 512
	// mostOpened bounds the expanded size of stored bytes: four times the largest payload. Without it, a few kilobytes
	// could take all memory of the reader.
	mostOpened = 16 << 20
)

// zstd's coders are safe for concurrent EncodeAll and DecodeAll. They are made at once, since they have channels: one
// that is made in a test's bubble of virtual time is of no use outside.
var (
	encoder = func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
		if err != nil {
			panic(err) // the options are constant
		}
		e.EncodeAll([]byte{0}, nil) // which makes the channel
		return e
	}()
	decoder = func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(mostOpened))
		if err != nil {
			panic(err)
		}
		return d
	}()
)

// Shelve says where bytes belong, and what to store there. What does not become smaller, as what a codec made, is
// stored as it is.
func Shelve(b []byte) (Place, []byte) {
	if b == nil {
		return Nowhere, nil
	}
	plain, small := Inline, InlineZstd
	stored := b
	compressed := false
	if len(b) >= leastCompressed && len(b) <= mostOpened {
		if packed := encoder.EncodeAll(b, nil); len(packed) < len(b)*9/10 {
			stored, compressed = packed, true
		}
	}
	if len(stored) > mostInline {
		plain, small = Apart, ApartZstd
	}
	if compressed {
		return small, stored
	}
	return plain, stored
}

// Open restores bytes that Shelve placed.
func Open(p Place, b []byte) ([]byte, error) {
	switch p {
	case Nowhere:
		return nil, nil
	case Inline, Apart:
		if b == nil {
			b = []byte{}
		}
		return b, nil
	case InlineZstd, ApartZstd:
		out, err := decoder.DecodeAll(b, nil)
		if err == nil {
			return out, nil
		}
		return nil, &runlane.Error{
			Code: runlane.ErrInvariantViolation, Message: "stored bytes do not decompress", Cause: err,
			Hint: "restore a backup of the file",
		}
	default:
		return nil, &runlane.Error{
			Code: runlane.ErrInvariantViolation, Message: "bytes are stored in a form that this program does not know",
			Hint: "update this program",
		}
	}
}
