package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/runlane/runlane-go/examples/webhooks/internal/demo"
)

// killed plays the demo in two processes: the first dies in the middle, the second finishes what it left. It returns
// the second's exit status, or the first's if that ended in another way.
func killed(arguments []string, o *demo.Options) int {
	if !o.Engine.Durable || o.Resume {
		fmt.Fprintln(o.Stderr, "demo: -kill begins anew, on a lane that outlives the process")
		return 2
	}
	err := play(arguments, o, "-die")
	if died(err) {
		if o.Terminal {
			fmt.Fprintln(o.Stderr) // the line of progress has no end
		}
		fmt.Fprintf(o.Stderr, "demo: %v, in the middle of its deliveries: starting again\n", err)
		err = play(arguments, o, "-resume")
	}
	if err == nil {
		return 0
	}
	if _, exited := errors.AsType[*exec.ExitError](err); !exited || died(err) {
		fmt.Fprintln(o.Stderr, "demo:", err) // otherwise it has said so
	}
	return 1
}

// play is this program once more, with another flag.
func play(arguments []string, o *demo.Options, flag string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	arguments = slices.Concat(arguments, []string{"-kill=false", flag})
	c := exec.Command(self, arguments...) //nolint:noctx // this program, which is told to stop below
	c.Stdout, c.Stderr = o.Stdout, o.Stderr
	told, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(told, syscall.SIGTERM) // Ctrl-C reaches both processes by itself
	defer signal.Stop(told)
	if err := c.Start(); err != nil {
		return err
	}
	defer close(ended)
	go func() { // tells the other process to stop, too, until it has ended
		for {
			select {
			case s := <-told:
				_ = c.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	return c.Wait()
}

// died reports whether a process was ended by a signal.
func died(err error) bool {
	e, ok := errors.AsType[*exec.ExitError](err)
	return ok && !e.Exited()
}
