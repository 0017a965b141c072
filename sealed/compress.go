package sealed

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxOpenedBytes limits decompressed bytes, as in storages: four times the largest payload.
const maxOpenedBytes = 16 << 20

// zstd's coders are safe for concurrent EncodeAll and DecodeAll. Creating one costs more than using it.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(
			nil,
			zstd.WithEncoderConcurrency(2),
			zstd.WithAllLitEntropyCompression(true),
			zstd.WithEncoderCRC(false),
		)
		if err != nil {
			panic(err) // the options are constant
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxOpenedBytes))
		if err != nil {
			panic(err)
		}
		return d
	})
)

func compress(b []byte) []byte { return encoder().EncodeAll(b, make([]byte, 0, len(b))) }

var errTooLong = errors.New("the bytes expand to more than 16 MiB")

// decompress reverses compress. The tag was checked, so any other input comes from a holder of the key.
func decompress(b []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, err
	}
	length := uint64(0) // short frames do not have the length of their content
	if h.HasFCS {
		length = h.FrameContentSize
	}
	if length > maxOpenedBytes {
		return nil, errTooLong
	}
	return decoder().DecodeAll(b, make([]byte, 0, length))
}
