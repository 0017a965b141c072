package dynamostore

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/runlane/runlane-go"
)

// zstd's coders are safe for concurrent EncodeAll and DecodeAll; making one costs more than using it.
var (
	zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithAllLitEntropyCompression(true))
		if err != nil {
			panic(err) // the options are constant
		}
		return e
	})
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			panic(err)
		}
		return d
	})
)

func compress(b []byte) []byte { return zstdEncoder().EncodeAll(b, nil) }

func decompress(b []byte) ([]byte, error) {
	out, err := zstdDecoder().DecodeAll(b, nil)
	if err != nil {
		return nil, &runlane.Error{Code: runlane.ErrInvariantViolation, Message: "stored bytes do not decompress", Cause: err}
	}
	return out, nil
}

// place says where the bytes of a payload or an output are, and in which form. It is stored.
type place int

const (
	nowhere      place = iota
	inline             // in the run item
	inlineZstd         // in the run item, compressed
	separate           // in an item of its own
	separateZstd       // in an item of its own, compressed
)

func (p place) separate() bool   { return p == separate || p == separateZstd }
func (p place) compressed() bool { return p == inlineZstd || p == separateZstd }

// put chooses the cheapest place for b when the run item has room for so many bytes more: raw beside the run, compressed beside
// the run, or in its own item, compressed when that saves a write unit.
func put(b []byte, room int) (place, []byte) {
	if b == nil {
		return nowhere, nil
	}
	if len(b) <= room {
		return inline, b
	}
	small := compress(b)
	if len(small) <= room {
		return inlineZstd, small
	}
	const keys = 128 // what the item's keys take, roughly
	if units(len(small)+keys) < units(len(b)+keys) {
		return separateZstd, small
	}
	return separate, b
}

// open is the inverse of put.
func open(p place, b []byte) ([]byte, error) {
	if p.compressed() {
		return decompress(b)
	}
	return b, nil
}
