package rows

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/runlane/runlane-go"
)

// maxOpenedBytes limits decompressed bytes: four times the largest payload, and more than any commit's events. A few
// kilobytes could expand to all of the memory.
const maxOpenedBytes = 16 << 20

// zstd's coders are safe for concurrent EncodeAll and DecodeAll. Creating one costs more than using it.
var (
	zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithAllLitEntropyCompression(true))
		if err != nil {
			panic(err) // the options are constant
		}
		return e
	})
	zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxOpenedBytes))
		if err != nil {
			panic(err)
		}
		return d
	})
)

func compress(b []byte) []byte { return zstdEncoder().EncodeAll(b, nil) }

func decompress(b []byte) ([]byte, error) {
	err := errNotOneFrame
	if oneFrame(b) {
		var out []byte
		if out, err = zstdDecoder().DecodeAll(b, nil); err == nil {
			return out, nil
		}
	}
	return nil, &runlane.Error{
		Code:    runlane.ErrInvariantViolation,
		Message: "stored bytes do not decompress",
		Cause:   err,
	}
}

var errNotOneFrame = errors.New("they are not one frame")

// oneFrame reports whether b is a single frame, like all output of compress. For many small frames the decoder copies
// its result once a frame, which takes minutes.
func oneFrame(b []byte) bool {
	var h zstd.Header
	if err := h.Decode(b); err != nil || h.Skippable {
		return false
	}
	const blockHeader, checksum, runOfOneByte = 3, 4, 1 // two lengths, and a block type
	at := h.HeaderSize
	for last := false; !last; {
		if len(b)-at < blockHeader {
			return false
		}
		block := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		size := block >> 3
		if block>>1&3 == runOfOneByte {
			size = 1
		}
		last, at = block&1 == 1, at+blockHeader+size
	}
	if h.HasCheckSum {
		at += checksum
	}
	return at == len(b)
}
