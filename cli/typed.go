package cli

import (
	"context"
	"io"
)

// typed is stdin until the context ends: an interrupt does not wait until the user presses another key. A read in
// progress is abandoned, and ends with the process or its input.
func (s *session) typed(ctx context.Context) io.Reader {
	type reading struct {
		n   int
		err error
	}
	return readerFunc(func(p []byte) (int, error) {
		done, own := make(chan reading, 1), make([]byte, len(p)) // p is the caller's again when this returns
		go func() {                                              // ends with the reading
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
