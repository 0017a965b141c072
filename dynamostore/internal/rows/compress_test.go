package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Streamed is a frame that does not say how long its content is.
func Streamed(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 { // in parts: a short content would be written with its length
		n := min(len(content), 1<<20)
		if _, err := w.Write(content[:n]); err != nil {
			t.Fatal(err)
		}
		content = content[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Claiming is a frame of a few bytes whose header claims so many.
func Claiming(size uint64) []byte {
	b := binary.LittleEndian.AppendUint64(append(bytes.Clone(zstdMagic), 0xE0), size) // a single segment, 8 bytes of size
	return append(b, 0x03, 0x00, 0x00, 0x00)                                          // one block, the last: a run of no bytes
}

// What is stored may have been written by anybody who can write the table. However it expands, reading it takes bounded memory.
// Not parallel: it counts what is allocated.
func TestDecompress_BytesThatExpandWithoutBound_AreRefusedInBoundedMemory(t *testing.T) {
	zeros := make([]byte, maxOpenedBytes+1)
	for name, b := range map[string][]byte{
		"one byte too much":            zstdEncoder().EncodeAll(zeros, nil),
		"one byte too much, untold":    Streamed(t, zeros),
		"frames one behind another":    bytes.Repeat(zstdEncoder().EncodeAll(zeros[:1<<20], nil), 200),
		"untold frames, one by one":    bytes.Repeat(Streamed(t, zeros[:2<<20]), 100),
		"very many small frames":       bytes.Repeat(zstdEncoder().EncodeAll(zeros[:1<<10], nil), 13_000),
		"claims a gigabyte":            Claiming(1 << 30),
		"claims more than memory has":  Claiming(1 << 62),
		"claims all that can be said":  Claiming(1<<64 - 1),
		"an event list that is a bomb": zstdEncoder().EncodeAll(bytes.Repeat([]byte(" "), maxOpenedBytes+1), nil),
	} {
		if len(b) > maxStoredBytes {
			t.Fatalf("%s: an item could not hold %d bytes", name, len(b))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decompress(b)
		runtime.ReadMemStats(&after)
		checkRefused(t, name, err)
		if took := after.TotalAlloc - before.TotalAlloc; took > 6*maxOpenedBytes {
			t.Errorf("%s: %d bytes allocated %d MiB", name, len(b), took>>20)
		}
		_, err = decodeEvents(b)
		checkRefused(t, name+" as events", err)
	}
}

func checkRefused(t *testing.T, name string, err error) {
	t.Helper()
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrInvariantViolation || e.Error() != "invariant_violation: stored bytes do not decompress" {
		t.Errorf("%s: %v", name, err)
	}
}

// What can be written can be read: the bound of reading holds for writing too.
func TestCompress_WhatCouldNotBeReadAgain_IsNotWritten(t *testing.T) {
	t.Parallel()
	largest := bytes.Repeat([]byte("x"), maxOpenedBytes)
	p, stored := place(largest, 0)
	if got, err := Open(p, stored); err != nil || !bytes.Equal(got, largest) {
		t.Errorf("the largest is not read: %v", err)
	}
	for what, body := range map[string]runlane.EventBody{
		"payload": &runlane.RunCreated{TaskID: "t", Queue: "q", Payload: append(largest, 'x')},
		"output":  &runlane.RunSucceeded{Attempt: 1, Output: append(largest, 'x')},
	} {
		item := &Run{PK: RunPK(lane.RunKey{Environment: "test", RunID: "run_1"}), SK: RunSK}
		_, err := item.placeBulk(&Change{Transition: &lane.Transition{Events: []runlane.Event{{Body: body}}}})
		if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrValidationFailed || e.RunID != "run_1" || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
