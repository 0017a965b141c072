package cli

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// devPeer is a running session of dev, as a client sees it.
type devPeer struct {
	record *devRecord
	link   *link
}

// leaveToDev lets a session of dev do this call where one runs, and else chooses the file that one left. An environment
// that was given has to be the session's, and chooses no file.
func (s *session) leaveToDev(ctx context.Context) (done bool, err error) {
	found, err := s.findDev(ctx)
	switch {
	case err != nil:
		return false, err
	case found != nil && (s.choice == "" || string(found.record.Environment) == s.getenv(lane.EnvironmentVariable)):
		return true, s.forward(ctx, found)
	case found != nil:
		s.note("the session of dev in %s is not asked: its environment is %s, and %s says another",
			found.record.Folder, found.record.Environment, s.choice)
		return false, found.link.connection.Close()
	case s.choice != "":
		return false, nil
	}
	if err = s.findDevState(); err == nil && s.choice != "" {
		s.note("no session of dev is running: this works on %s", s.choice)
	}
	return false, err
}

// forward lets a session of dev do this call, as if it ran here.
func (s *session) forward(ctx context.Context, peer *devPeer) error {
	defer peer.link.connection.Close()
	call := &remoteCall{Name: s.name, Args: s.args, Environment: map[string]string{}}
	for _, name := range remoteEnvironment {
		call.Environment[name] = s.getenv(name)
	}
	call.Stdin, _ = s.width(s.stdin)
	call.Stdout, _ = s.width(s.stdout)
	call.Stderr, _ = s.width(s.stderr)
	if err := peer.link.send(&frame{Call: call}); err != nil {
		return peer.lost()
	}
	unhook := context.AfterFunc(ctx, func() { _ = peer.link.send(&frame{Cancel: true}) })
	defer unhook()
	wishes := make(chan *inputWish)
	defer close(wishes)
	go s.answer(peer.link, wishes) // reads input: ends with wishes, once the read in progress has ended
	for {
		f, err := peer.link.receive()
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return peer.lost()
		case f.Exit != nil && *f.Exit == ExitOK:
			return nil
		case f.Exit != nil:
			return &told{code: *f.Exit}
		case f.Input != nil:
			select {
			case wishes <- f.Input:
			case <-ctx.Done(): // the read in progress may never end
			}
		case f.Stderr != nil:
			if _, err := s.stderr.Write(f.Stderr); err != nil {
				return err
			}
		default:
			_, _ = s.results.Write(f.Stdout)
			if err := s.results.Flush(); err != nil {
				return nil // the writer keeps it, and it is told at the end
			}
		}
	}
}

// lost reports that a session ended before the command did.
func (p *devPeer) lost() error {
	return &runlane.Error{
		Code:    runlane.ErrTransportUnavailable,
		Message: "the session of dev in " + p.record.Folder + " ended before the command did",
		Hint:    "start it again; runs that it kept in memory are gone",
	}
}

// answer reads input when a session asks for it. One wish comes at a time.
func (s *session) answer(to *link, wishes <-chan *inputWish) {
	files := map[int]io.ReadCloser{}
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	for wish := range wishes {
		var answer inputAnswer
		switch file, known := files[wish.Stream]; {
		case wish.Open != "":
			opened, err := s.input(wish.Open)
			if err != nil {
				answer.Error = err.Error()
			} else {
				files[wish.Stream] = opened
			}
		case wish.Close && known:
			_ = file.Close()
			delete(files, wish.Stream)
		case wish.Close:
			answer.Error = "no such stream"
		case wish.Stream == 0:
			answer = read(s.stdin, wish.Bytes)
		case known:
			answer = read(file, wish.Bytes)
		default:
			answer.Error = "no such stream"
		}
		_ = to.send(&frame{Answer: &answer}) // a broken connection ends the receiving side
	}
}

// maxRead bounds one answer.
const maxRead = 64 << 10

func read(from io.Reader, most int) inputAnswer {
	data := make([]byte, min(max(most, 1), maxRead))
	n, err := from.Read(data)
	answer := inputAnswer{Data: data[:n]}
	if errors.Is(err, io.EOF) {
		answer.End = true
	} else if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

// remoteInput is input that the client of a command reads.
type remoteInput struct {
	ask    func(*inputWish) (*inputAnswer, error)
	stream int

	ended bool
}

// Read implements io.Reader.
func (r *remoteInput) Read(p []byte) (int, error) {
	if r.ended {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	answer, err := r.ask(&inputWish{Stream: r.stream, Bytes: len(p)})
	if err != nil {
		return 0, err
	}
	n := copy(p, answer.Data)
	switch {
	case answer.Error != "":
		return n, errors.New(answer.Error)
	case answer.End:
		r.ended = true
		return n, io.EOF
	default:
		return n, nil
	}
}

// Close implements io.Closer.
func (r *remoteInput) Close() error {
	_, err := r.ask(&inputWish{Stream: r.stream, Close: true})
	return err
}

// remoteFiles opens files at the client.
func remoteFiles(ask func(*inputWish) (*inputAnswer, error)) func(name string) (io.ReadCloser, error) {
	var mu sync.Mutex
	stream := 0
	return func(name string) (io.ReadCloser, error) {
		mu.Lock()
		stream++
		file := &remoteInput{ask: ask, stream: stream}
		mu.Unlock()
		answer, err := ask(&inputWish{Stream: file.stream, Open: name})
		if err == nil && answer.Error != "" {
			err = errors.New(answer.Error)
		}
		if err != nil {
			return nil, err
		}
		return file, nil
	}
}
