// Command upgrade deploys the program of the last recorded format to local AWS, gives it runs in every status, deploys
// today's over it, goes back, and forward again, with work going on all the time. What was acknowledged, and what
// handlers did, is written down outside of the table, and judged by that: nothing may be lost, and nothing stuck.
//
//	upgrade              does that
//	upgrade -broken      does it with a renamed attribute in today's program, and fails if that is not found out
//	upgrade -keep COMMIT makes the archive of the old sources anew, of that commit
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	commit := flag.String("keep", "", "make the archive of the old sources anew, of this commit")
	leave := flag.Bool("leave", false, "leave the stack and the folder as they are in the end")
	broken := flag.Bool("broken", false, "rename an attribute in today's program, which has to be found out")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if *commit != "" {
		return keep(ctx, root, *commit)
	}
	place, err := os.MkdirTemp("", "runlane-upgrade")
	if err != nil {
		return err
	}
	w := &world{
		root:   root,
		place:  place,
		name:   fmt.Sprintf("runlane-upgrade-%x", time.Now().UnixNano()),
		broken: *broken,
		out:    os.Stdout,
	}
	if w.log, err = os.Create(w.logFile()); err != nil {
		return errors.Join(err, os.RemoveAll(place))
	}
	err = w.walk(ctx)
	if *broken {
		err = w.foundOut(err)
	}
	if *leave {
		fmt.Fprintln(os.Stderr, "upgrade: left", place)
		return err
	}
	if err != nil { // what tools and programs said
		if said, failed := os.ReadFile(w.logFile()); failed == nil {
			const last = 20_000
			fmt.Fprintf(os.Stderr, "%s\n", said[max(0, len(said)-last):])
		}
	}
	return errors.Join(err, w.remove(context.WithoutCancel(ctx)))
}

// foundOut turns the failure of a broken program into a success.
func (w *world) foundOut(err error) error {
	if err == nil {
		return errors.New("today's program is broken, and nothing was amiss")
	}
	_, err = fmt.Fprintln(w.out, "found out:", err)
	return err
}

// remove takes away the stack, of which the log tells too, and the folder.
func (w *world) remove(ctx context.Context) error {
	var err error
	if w.serving != nil {
		err = w.serving.stack.Delete(ctx)
	}
	return errors.Join(err, w.log.Close(), os.RemoveAll(w.place))
}

func (w *world) logFile() string { return filepath.Join(w.place, "log") }
