// Command tryout does what a new user does, from an empty folder: makes a project with runlane init, gives it a task in
// a queue of the task's name, bounds the queue, turns an alarm on, deploys to local AWS, triggers, changes the handler
// and deploys again; then adds SQS queues, standard and FIFO, and functions by command, and moves a queue from one
// function to another. For each step it says the seconds and the files that had to be edited by hand.
//
//	tryout [-keep]
//
// Deployment is that of `make local-deploy`: the pinned SAM command line builds, packages and deploys the project's
// template with the parameters of its samconfig.toml, and functions are local processes.
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
		fmt.Fprintln(os.Stderr, "tryout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	keep := flag.Bool("keep", false, "keep the project's folder and its stack")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	place, err := os.MkdirTemp("", "runlane-tryout")
	if err != nil {
		return err
	}
	u := &user{root: root, place: place, project: filepath.Join(place, "shop")}
	began := time.Now()
	err = u.walk(ctx, steps)
	fmt.Printf("%-62s %5.0f s\n", "together", time.Since(began).Seconds())
	if *keep {
		fmt.Fprintln(os.Stderr, "tryout: kept", u.project)
		return err
	}
	return errors.Join(err, u.leave(ctx), os.RemoveAll(place))
}

// walk takes the steps one after the other, and reports each.
func (u *user) walk(ctx context.Context, steps []step) error {
	fmt.Printf("%-62s %7s  %s\n", "step", "seconds", "files edited")
	for _, s := range steps {
		before, err := u.sources()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := s.do(ctx, u); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		after, err := u.sources()
		if err != nil {
			return err
		}
		edited := differences(before, after)
		if s.by == command {
			fmt.Printf("%-62s %7.1f  0 by hand, %d by the command\n", s.name, time.Since(began).Seconds(), len(edited))
			continue
		}
		fmt.Printf("%-62s %7.1f  %d %s\n", s.name, time.Since(began).Seconds(), len(edited), list(edited))
		if len(edited) > s.most {
			return fmt.Errorf("%s: %d files are edited, and at most %d should be", s.name, len(edited), s.most)
		}
	}
	return nil
}
