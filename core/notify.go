package core

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// notifyRounds limits the tries on conflicts with other processes: some three seconds.
	notifyRounds = 60
	// notifyBackoff is the pause before the second round; it doubles, up to notifyPause.
	notifyBackoff = 2 * time.Millisecond
	notifyPause   = 50 * time.Millisecond
)

// notifyIfPending notifies the runs that depend on an ended run. After a failure the tick does it.
func (rt *Runtime) notifyIfPending(ctx context.Context, commit *lane.Commit, run *runlane.Run) {
	if commit == nil || !commit.NotificationPending {
		return
	}
	limited := afterCommit(ctx)
	defer limited.stop()
	if _, err := rt.notify(limited, run); err != nil {
		rt.logRun(ctx, run, "the end of the run was not reported; the tick reports it", err)
	}
}

// notify notifies the runs that depend on an ended run: the next runs of its flow, its children if it was cancelled,
// and then its caller. Any number of processes may do so; the end counts once. done is false if another process did it.
func (rt *Runtime) notify(ctx context.Context, run *runlane.Run) (done bool, err error) {
	wait := notifyBackoff
	for round := range notifyRounds {
		if round > 0 && !pause(ctx, rt.world.around(wait)) {
			return false, cancelled(ctx, run.ID)
		}
		wait = min(2*wait, notifyPause)
		if run.Source.Type == runlane.SourceFlow { // first: a cascade may take minutes
			if err := rt.flows.Notify(ctx, run); err != nil {
				return false, err
			}
		}
		if round > 0 || run.Status == runlane.StatusCancelled {
			passed, err := rt.cascade(ctx, run)
			if passed || err != nil {
				return false, err
			}
		}
		var commit *lane.Commit
		commit, err = rt.notifyCaller(ctx, run)
		switch {
		case isConflict(err, runlane.ConflictWait), isConflict(err, runlane.ConflictEventSequence):
			continue
		case err != nil:
			return false, err
		}
		rt.cascades.forget(run)
		if commit != nil {
			rt.resumed(ctx, commit)
		}
		return true, nil
	}
	return false, err
}

// notifyCaller counts the end in the caller's call. Calls of one process take turns to avoid conflicts.
func (rt *Runtime) notifyCaller(ctx context.Context, run *runlane.Run) (*lane.Commit, error) {
	if source := run.Source; source.Type == runlane.SourceCall {
		end := rt.callTurns.begin(ctx, source.RunID, source.Call)
		if end == nil {
			return nil, cancelled(ctx, run.ID)
		}
		defer end()
	}
	c, err := rt.notifyCommand(ctx, run)
	if err != nil {
		return nil, err
	}
	return rt.storage().NotifyEnd(ctx, c)
}

// turns admits one goroutine per call. Safe for concurrent use.
type turns struct {
	mu   sync.Mutex
	held map[turn]chan struct{} // closed when the turn ends
}

type turn struct {
	caller runlane.RunID
	call   string
}

// begin waits for the turn. It returns nil if the context ends first.
func (t *turns) begin(ctx context.Context, caller runlane.RunID, call string) (end func()) {
	key := turn{caller, call}
	for {
		t.mu.Lock()
		held := t.held[key]
		if held == nil {
			break
		}
		t.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil
		}
	}
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = map[turn]chan struct{}{}
	}
	mine := make(chan struct{})
	t.held[key] = mine
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.held, key)
		close(mine)
	}
}

// notifyCommand is the command that notifies the caller in its current state. A caller that has ended, is missing, or
// is another run of that id counts no end.
func (rt *Runtime) notifyCommand(ctx context.Context, run *runlane.Run) (*lane.NotifyCommand, error) {
	c := &lane.NotifyCommand{
		RunKey:    lane.RunKey{Environment: rt.environment, RunID: run.ID},
		CreatedAt: run.CreatedAt,
	}
	source := run.Source
	if source.Type != runlane.SourceCall {
		return c, nil
	}
	read, err := rt.storage().ReadCalls(ctx, &lane.CallQuery{
		RunKey: lane.RunKey{Environment: rt.environment, RunID: source.RunID}, Name: source.Call,
	})
	switch {
	case isNotFound(err):
		return c, nil
	case err != nil:
		return nil, err
	}
	caller := read.Run
	if caller.Status.Terminal() || !caller.CreatedAt.Equal(source.CreatedAt) || len(read.Calls) == 0 ||
		read.Calls[0].Whole() {
		return c, nil
	}
	call := &read.Calls[0]
	c.To = &lane.CallRead{
		RunID:     caller.ID,
		CreatedAt: caller.CreatedAt,
		Name:      call.Name,
		Count:     call.Count,
		Ended:     call.Ended,
	}
	switch {
	case !c.To.Last() || caller.Waiting == nil:
	case waitsForCall(caller.Waiting, call.Name):
		body := &runlane.RunResumed{By: runlane.WaitingChildren, Name: call.Name, ID: string(run.ID)}
		c.Resume, err = rt.resumption(caller, rt.now(), runlane.SystemActor, body)
	default:
		c.To.Wait = caller.EventSequence
	}
	return c, err
}

// waitsForCall reports whether the last end of the call ends the wait.
func waitsForCall(w *runlane.Waiting, name string) bool {
	return w.Has(runlane.WaitingAnything) || w.Has(runlane.WaitingChildren) && slices.Contains(w.Names, name)
}
