package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// An owner that is over is replaced by one of those who want its key, never by two.
func overRace(t *testing.T, b *bundle) {
	now := time.Now()
	ttl := runlane.KeyRetention{TTL: time.Hour}
	idempotent, single := runlane.ConflictIdempotencyKey, runlane.ConflictSingletonKey
	for name, c := range map[string]struct {
		o    RunOptions
		made time.Time
		end  runlane.Status
		kind runlane.ConflictKind
	}{
		"a failed run's": {
			RunOptions{IdempotencyKey: "failed", Retention: ttl},
			now,
			runlane.StatusFailed,
			idempotent,
		},
		"one past its time": {
			RunOptions{IdempotencyKey: "past", Retention: ttl},
			now.Add(-2 * time.Hour),
			runlane.StatusSucceeded,
			idempotent,
		},
		"a finished singleton's": {RunOptions{SingletonKey: "single"}, now, runlane.StatusSucceeded, single},
	} {
		lookup := b.storage.GetRunByIdempotencyKey
		if c.kind == single {
			lookup = b.storage.GetRunBySingletonKey
		}
		b.end(b.create(c.made, c.o), c.made, c.end)
		commands := make([]*lane.AppendCommand, callers)
		for i := range commands {
			commands[i] = b.Creation(t, now, c.o)
		}
		won, lost := race(callers, func(i int) (*lane.Commit, error) {
			return b.storage.AppendRunEvents(b.ctx(), commands[i])
		})
		if len(won) != 1 {
			t.Fatalf("%s key: %d of %d creations took it; errors: %v", name, len(won), callers, lost)
		}
		b.remember(won[0].Run)
		for _, err := range lost {
			wantConflict(t, err, c.kind, won[0].Run.ID)
		}
		key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: c.o.IdempotencyKey + c.o.SingletonKey}
		equal(t, name+" key: owner", won[0].Run, must(lookup(b.ctx(), key))(t))
	}
}

func everyActiveHolds(t *testing.T, b *bundle) {
	now := time.Now()
	end := now.Add(time.Minute)
	for status, next := range map[runlane.Status]func(run *runlane.Run) []runlane.EventBody{
		runlane.StatusQueued:    func(*runlane.Run) []runlane.EventBody { return nil },
		runlane.StatusScheduled: nil,
		runlane.StatusRunning:   func(*runlane.Run) []runlane.EventBody { return nil },
		runlane.StatusRetrying: func(run *runlane.Run) []runlane.EventBody {
			return []runlane.EventBody{Retried(run, end)}
		},
		runlane.StatusReleased: func(run *runlane.Run) []runlane.EventBody {
			return []runlane.EventBody{Released(run, end)}
		},
		runlane.StatusCancellationRequested: func(*runlane.Run) []runlane.EventBody {
			return []runlane.EventBody{&runlane.RunCancellationRequested{}}
		},
	} {
		o := RunOptions{
			IdempotencyKey: string(status),
			SingletonKey:   string(status),
			Retention:      runlane.KeyRetention{WhileActive: true},
		}
		if status == runlane.StatusScheduled {
			o.RunAt = end
		}
		run := b.create(now, o)
		if status != runlane.StatusQueued && status != runlane.StatusScheduled {
			run = b.claim(run, now, end)
			if bodies := next(run); bodies != nil {
				run = b.push(run, now, bodies...)
			}
		}
		equal(t, "status", status, run.Status)
		key := lane.OwnerKey{Environment: b.env, TaskID: TaskID, Key: string(status)}
		equal(
			t,
			"idempotency owner that is "+string(status),
			run,
			must(b.storage.GetRunByIdempotencyKey(b.ctx(), key))(t),
		)
		equal(t, "singleton owner that is "+string(status), run, must(b.storage.GetRunBySingletonKey(b.ctx(), key))(t))
		wantConflict(t, b.storage.ResetIdempotencyKey(b.ctx(), key), runlane.ConflictIdempotencyKey, run.ID)
		_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, RunOptions{SingletonKey: string(status)}))
		wantConflict(t, err, runlane.ConflictSingletonKey, run.ID)
		_, err = b.storage.AppendRunEvents(
			b.ctx(),
			b.Creation(t, now, RunOptions{IdempotencyKey: string(status), Retention: o.Retention}),
		)
		wantConflict(t, err, runlane.ConflictIdempotencyKey, run.ID)
	}
}

func lookupsOfOwners(t *testing.T, b *bundle) {
	now := time.Now()
	o := func(key string) RunOptions {
		return RunOptions{IdempotencyKey: key, SingletonKey: key, Retention: runlane.KeyRetention{TTL: time.Hour}}
	}
	for key, run := range map[string]*runlane.Run{
		"active":   b.create(now, o("active")),
		"retained": b.end(b.create(now, o("retained")), now, runlane.StatusCancelled),
	} {
		before := b.snapshot(run.ID)
		for range 3 {
			equal(t, "owner", run, must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner(key)))(t))
			_, err := b.storage.GetRunBySingletonKey(b.ctx(), b.owner(key))
			if (err == nil) != run.Status.Active() {
				t.Fatalf("singleton owner of a %s run: %v", run.Status, err)
			}
		}
		equal(t, "run after lookups", before, b.snapshot(run.ID))
		_, err := b.storage.AppendRunEvents(b.ctx(), b.Creation(t, now, o(key)))
		wantConflict(t, err, runlane.ConflictIdempotencyKey, run.ID)
	}
}

// A reset clears the owner that it saw, never the one that took the key meanwhile.
func resetRace(t *testing.T, b *bundle) {
	now := time.Now()
	o := RunOptions{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}}
	first := b.end(b.create(now, o), now, runlane.StatusSucceeded)
	commands := make([]*lane.AppendCommand, callers)
	for i := range commands {
		commands[i] = b.Creation(t, now, o)
	}
	won, lost := race(callers, func(i int) (*lane.Commit, error) {
		if i%2 == 0 {
			return nil, b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key"))
		}
		return b.storage.AppendRunEvents(b.ctx(), commands[i])
	})
	var owner *runlane.Run
	for _, commit := range won {
		switch {
		case commit == nil: // a reset
		case owner != nil:
			t.Fatalf("%s and %s both took the key", owner.ID, commit.Run.ID)
		default:
			owner = commit.Run
			b.remember(owner)
		}
	}
	for _, err := range lost {
		if runlane.CodeOf(err) == runlane.ErrRunNotFound { // a reset that came second
			continue
		}
		wantConflict(t, err, runlane.ConflictIdempotencyKey, "")
		if e, _ := asError(err); e.RunID != first.ID && (owner == nil || e.RunID != owner.ID) {
			t.Fatalf("the conflict names %s", e.RunID)
		}
	}
	if owner == nil { // every creation came before the first reset
		owner = b.create(now, o)
	}
	equal(t, "owner", owner, must(b.storage.GetRunByIdempotencyKey(b.ctx(), b.owner("key")))(t))
	wantConflict(t, b.storage.ResetIdempotencyKey(b.ctx(), b.owner("key")), runlane.ConflictIdempotencyKey, owner.ID)
}
