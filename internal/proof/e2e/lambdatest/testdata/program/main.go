// Command program is a function whose runs do what breaks functions. Its environment and its tasks are described in
// package lambdatest.
package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

func main() { functions.Start(open) }

func open(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	return core.Open(ctx, l, &core.Options{Handlers: []runlane.Handler{lambdatest.Play.Handle(play)}})
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
	case a.Number > 1:
		return nil
	}
	switch act.Do {
	case lambdatest.Ignore:
		select {}
	case lambdatest.Wait, lambdatest.Linger:
		<-ctx.Done()
		return ctx.Err()
	case lambdatest.Die:
		die()
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
