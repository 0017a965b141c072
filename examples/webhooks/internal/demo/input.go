package demo

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/data"
)

// input is read twice, so that none of it has to be kept: before anything starts the receiver learns what to expect,
// since resumed runs arrive at once; then each line is triggered.
type input struct{ path string } // "" means the project's own data

// each calls fn for every line until it returns false, and returns a hash of what was read. An input that cannot be
// opened is [runlane.ErrValidationFailed].
func (in input) each(fn func(webhooks.Line) bool) (hash string, err error) {
	raw, closeInput, err := in.open()
	if err != nil {
		return "", &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: "input cannot be read",
			Hint:    "name a file of JSON lines, plain or gzip",
			Cause:   err,
		}
	}
	defer closeInput()
	sum := sha256.New()
	for line := range webhooks.ReadDeliveries(io.TeeReader(raw, sum)) {
		if !fn(line) {
			break
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (in input) open() (r io.Reader, closeInput func(), err error) {
	if in.path == "" {
		r, err = data.GitHubWebhooks()
		return r, func() {}, err
	}
	file, err := os.Open(in.path)
	if err != nil {
		return nil, nil, err
	}
	closeInput = func() { _ = file.Close() } // it was only read
	buffered := bufio.NewReader(file)
	if magic, _ := buffered.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, closeInput, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		closeInput()
		return nil, nil, err
	}
	return unzipped, closeInput, nil
}
