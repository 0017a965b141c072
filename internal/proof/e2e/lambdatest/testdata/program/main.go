// Command program is a function whose runs do what breaks functions. Its environment and its tasks are described in
// package lambdatest.
package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/lane"
)

func main() { functions.Start(open) }

func open(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	if file := os.Getenv(lambdatest.CrashVariable); file != "" {
		l.Transport = &crashing{Transport: l.Transport, file: file}
	}
	options := &core.Options{}
	if text := os.Getenv(lambdatest.ClockVariable); text != "" {
		ahead, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		options.World = &core.World{Now: func() time.Time { return time.Now().Add(ahead) }}
	}
	for _, task := range []*runlane.Task[lambdatest.Act]{lambdatest.Play, lambdatest.Other} {
		if string(task.Definition().ID) != os.Getenv(lambdatest.WithoutVariable) {
			options.Handlers = append(options.Handlers, task.Handle(play))
		}
	}
	return core.Open(ctx, l, options)
}

// crashing dies where a commit is durable and its wakeups are not sent.
type crashing struct {
	lane.Transport

	file string
}

func (c *crashing) Unwrap() lane.Transport { return c.Transport }

func (c *crashing) PublishWakeups(ctx context.Context, command *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if os.Remove(c.file) == nil {
		die()
	}
	return c.Transport.PublishWakeups(ctx, command)
}

// die leaves no time for anything.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func play(ctx context.Context, a *runlane.Attempt, act lambdatest.Act) error {
	ledger := os.Getenv(lambdatest.LedgerVariable)
	entry := lambdatest.Entry{Name: act.Name, Attempt: a.Number, Process: os.Getpid()}
	if err := entry.Write(ledger); err != nil {
		return err
	}
	switch {
	case act.Do == lambdatest.Poison:
		if a.Number == 1 {
			if err := meet(ctx, ledger, act.Party); err != nil {
				return err
			}
		}
		die()
	case a.Number > 1 && act.Do == lambdatest.Linger:
		time.Sleep(300 * time.Millisecond) // a neighbour that dies would take it along
		return nil
	case a.Number > 1 && act.Do != lambdatest.Follow:
		return nil
	}
	switch act.Do {
	case lambdatest.Fail:
		return errors.New("as asked")
	case lambdatest.Ignore:
		select {}
	case lambdatest.Wait, lambdatest.Linger:
		<-ctx.Done()
		return ctx.Err()
	case lambdatest.Die:
		die()
	case lambdatest.Follow:
		_, err := a.Trigger(ctx, lambdatest.Play.With(lambdatest.Act{Name: act.Name + "'s"}),
			&runlane.TriggerOptions{IdempotencyKey: act.Name})
		return err
	case lambdatest.Meet:
		return meet(ctx, ledger, act.Party)
	}
	return nil
}

// meet waits until so many attempts have begun.
func meet(ctx context.Context, ledger string, party int) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		entries, err := lambdatest.ReadLedger(ledger)
		if err != nil {
			return err
		}
		if len(entries) >= party {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
