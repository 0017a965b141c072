package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// endTime is how long a server may take to end before it is killed.
const endTime = 15 * time.Second

// readyTime is how long a server may take to answer.
const readyTime = 30 * time.Second

// child is a server that this program started and ends.
type child struct {
	command *exec.Cmd
	log     *os.File
	ended   chan struct{} // closed when it has
	err     error         // why, after ended
}

// startChild starts a server whose output goes to the file log in dir, as owner or, where that is nil, as us.
func startChild(dir string, owner *account, program string, arguments ...string) (*child, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	command := newCommand(owner, dir, program, arguments...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c := &child{command: command, log: log, ended: make(chan struct{})}
	go func() { // ends with the server
		c.err = command.Wait()
		close(c.ended)
	}()
	return c, nil
}

// newCommand is no command of a context: servers end when all that uses them has ended, not before.
func newCommand(owner *account, dir, program string, arguments ...string) *exec.Cmd {
	command := exec.Command(program, arguments...) //nolint:noctx // see above
	command.Dir = dir
	command.SysProcAttr = attributes(owner)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	return command
}

// await asks until the server answers, has ended, or has had its time.
func (c *child) await(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return fmt.Errorf("%s ended: %w: %s", filepath.Base(c.command.Path), errors.Join(err, c.err), c.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w: %s", filepath.Base(c.command.Path), err, c.lastLines())
		}
	}
}

// stop asks the server to end, in its fastest orderly way, and kills it if it does not.
func (c *child) stop() error {
	defer func() { _ = c.log.Close() }() // read only from here on
	if err := c.command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	select {
	case <-c.ended:
		return nil
	case <-timer.C:
	}
	err := c.command.Process.Kill()
	<-c.ended
	return errors.Join(fmt.Errorf("%s did not end within %s: killed", filepath.Base(c.command.Path), endTime), err)
}

func (c *child) lastLines() string {
	text, err := os.ReadFile(c.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

// findProgram looks in PATH and then in the given folders, which may hold wildcards; the last match is the newest
// version.
func findProgram(name string, folders ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, folder := range folders {
		matches, err := filepath.Glob(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		if len(matches) > 0 {
			return matches[len(matches)-1], nil
		}
	}
	return "", unavailable("the program %s is not on this machine", name)
}
