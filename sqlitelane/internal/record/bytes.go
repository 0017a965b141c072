package record

import (
	"github.com/klauspost/compress/zstd"
	"github.com/runlane/runlane-go"
)

// Place is where and how the bytes of a payload or output are stored. The numbers are stored.
type Place int64

// Places of bytes.
const (
	Nowhere    Place = 0
	Inline     Place = 1 // in the record
	InlineZstd Place = 2
	Apart      Place = 3 // in a separate row
	ApartZstd  Place = 4
)

func (p Place) inline() bool { return p == Inline || p == InlineZstd }

// Apart reports whether the bytes are in a separate row.
func (p Place) Apart() bool { return p == Apart || p == ApartZstd }

const (
	// mostInline is the most bytes in a record, which each commit of the run rewrites.
	mostInline = 1 << 10
	// leastCompressed is the size from which compression pays.
	leastCompressed = 512
	// mostOpened bounds decompression at four times the largest payload. Otherwise a few kilobytes could fill the
	// reader's memory.
	mostOpened = 16 << 20
)

// The coders are safe for concurrent EncodeAll and DecodeAll. They have channels, so they are created here: a coder
// created in a test's synctest bubble is unusable outside.
var (
	encoder = func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
		if err != nil {
			panic(err) // the options are valid
		}
		e.EncodeAll([]byte{0}, nil) // creates the channel
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

// Shelve decides where bytes belong and returns what to store. Incompressible bytes, such as those of a codec, stay
// unchanged.
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

// Open is the inverse of Shelve.
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
