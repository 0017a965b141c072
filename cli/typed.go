package cli

import (
	"context"
	"io"
)

// typed reads stdin until the context ends, so that an interrupt need not wait for a key. A read in progress is
// abandoned.
func (s *session) typed(ctx context.Context) io.Reader {
	type reading struct {
		n   int
		err error
	}
	return readerFunc(func(p []byte) (int, error) {
		done, own := make(chan reading, 1), make([]byte, len(p)) // p belongs to the caller again after return
		go func() {                                              // ends with the read
			n, err := s.stdin.Read(own)
			done <- reading{n, err}
		}()
		select {
		case r := <-done:
			return copy(p, own[:r.n]), r.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
