package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// goodbyeTime bounds how long a session waits for a client to receive the end of its command.
const goodbyeTime = 2 * time.Second

// control runs the commands of other processes in this one.
type control struct {
	record   devRecord
	listener net.Listener
	owner    *session // of dev: its names and checks are those of the program

	ended sync.WaitGroup // the accepting goroutine and those of connections
}

// listen opens the control endpoint of a folder and announces it. Only this machine can reach it.
func (s *session) listen(ctx context.Context, folder string) (*control, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrTransportUnavailable,
			Message: "no port of this machine is free",
			Hint:    "repeat it",
			Cause:   err,
		}
	}
	var token [32]byte
	_, _ = rand.Read(token[:]) // never fails
	c := &control{listener: listener, owner: s, record: devRecord{
		Version: devVersion,
		Address: listener.Addr().String(),
		Token:   hex.EncodeToString(token[:]),
		PID:     os.Getpid(),
		Folder:  folder,
		Started: time.Now().UTC(),

		Environment: s.runtime.Environment(),
	}}
	err = announce(&c.record)
	if errors.Is(err, fs.ErrExist) { // of a session that ended without removing it, or of one that runs
		if err = s.alreadyRuns(ctx, folder); err == nil {
			err = announce(&c.record)
		}
		if errors.Is(err, fs.ErrExist) {
			err = usagef("unless a session begins there at this moment, remove it; then repeat the command",
				"%s exists, and belongs to no session that can be reached", devPath(folder))
		}
	}
	if err != nil {
		_ = listener.Close()
		if _, worded := errors.AsType[*fs.PathError](err); worded {
			return nil, refusesDev(folder, err)
		}
		if _, worded := errors.AsType[*os.LinkError](err); worded {
			return nil, refusesDev(folder, err)
		}
		return nil, err
	}
	return c, nil
}

// alreadyRuns is an error if a session of the folder runs.
func (s *session) alreadyRuns(ctx context.Context, folder string) error {
	peer, err := s.dialDev(ctx, folder)
	if err != nil || peer == nil {
		return err
	}
	_ = peer.link.connection.Close()
	return &stateError{cause: &runlane.Error{
		Code: runlane.ErrStorageConflict,
		Message: "a session of dev runs in " + folder + " already: process " + strconv.Itoa(peer.record.PID) +
			", since " + s.at(peer.record.Started),
		Hint: "use that one from any terminal, or stop it with an interrupt",
	}}
}

// serve runs commands until stop is called.
func (c *control) serve(ctx context.Context, rt *core.Runtime) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.ended.Go(func() {
		for {
			connection, err := c.listener.Accept()
			if err != nil {
				return // closed by stop
			}
			c.ended.Go(func() { c.handle(ctx, rt, connection) })
		}
	})
	return func() {
		forgetDev(c.record.Folder, c.record.Token)
		_ = c.listener.Close()
		cancel()
		c.ended.Wait()
	}
}

// handle runs one command. It ends with the context, or when the client disconnects.
func (c *control) handle(ctx context.Context, rt *core.Runtime, connection net.Conn) {
	defer connection.Close()
	unhook := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer unhook()
	if admit(connection, c.record.Token) != nil {
		return
	}
	l := newLink(connection)
	first, err := l.receive()
	if err != nil || first.Call == nil {
		return
	}
	// The end of the session closes the connection, and that ends the command. Its output after that, as if it had been
	// interrupted, is lost.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	answers := make(chan *inputAnswer)
	gone := make(chan struct{})
	go func() { // reads what the client sends: ends with the connection
		defer close(gone)
		defer cancel()
		for {
			f, err := l.receive()
			switch {
			case err != nil:
				return
			case f.Cancel:
				cancel()
			case f.Answer != nil:
				select {
				case answers <- f.Answer:
				case <-ctx.Done():
				}
			}
		}
	}()
	var one sync.Mutex // a wish at a time
	ask := func(wish *inputWish) (*inputAnswer, error) {
		one.Lock()
		defer one.Unlock()
		if err := errors.Join(ctx.Err(), l.send(&frame{Input: wish})); err != nil {
			return nil, err
		}
		select {
		case answer := <-answers:
			return answer, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	code := c.session(rt, first.Call, l, ask).run(ctx)
	_ = connection.SetDeadline(time.Now().Add(goodbyeTime))
	if l.send(&frame{Exit: &code}) == nil {
		<-gone // the client closes; to close before it could take the exit code away from it
	}
	_ = connection.Close()
	<-gone
}

// session is a command of another process.
func (c *control) session(
	rt *core.Runtime, call *remoteCall, l *link, ask func(*inputWish) (*inputAnswer, error),
) *session {
	stdin := &remoteInput{ask: ask}
	stdout := &remoteOutput{send: func(p []byte) error { return l.send(&frame{Stdout: p}) }}
	stderr := &remoteOutput{send: func(p []byte) error { return l.send(&frame{Stderr: p}) }}
	s := newSession(nil, &Options{
		Args:   append([]string{}, call.Args...),
		Name:   call.Name,
		Checks: c.owner.checks,
		Now:    c.owner.now,
		Stdin:  stdin,
		Stdout: stdout,
		Stderr: stderr,
		Getenv: func(name string) string { return call.Environment[name] },
		Setenv: func(string, string) error { return nil }, // the lane is chosen already
		terminal: func(stream any) (int, bool) {
			columns := map[any]int{stdin: call.Stdin, stdout: call.Stdout, stderr: call.Stderr}[stream]
			return columns, columns > 0
		},
	})
	s.variables, s.runtime, s.lent, s.input = c.owner.variables, rt, true, remoteFiles(ask)
	s.choice = "the session of dev in " + c.record.Folder
	return s
}

// remoteOutput is a stream of the client.
type remoteOutput struct{ send func(p []byte) error }

var _ io.Writer = (*remoteOutput)(nil)

// Write implements io.Writer.
func (r *remoteOutput) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}
