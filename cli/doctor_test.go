package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/lane"
)

// ill is a storage with one fault.
type ill struct {
	*healthy
	denied     string // the method that is not permitted
	violations []lane.Violation
	forged     bool // runs are not what their histories say
	indexes    []lane.IndexState
}

func (s *ill) Indexes(context.Context) ([]lane.IndexState, error) {
	return s.indexes, s.refuse("describe")
}

// healthy has the methods that are not overridden.
type healthy = struct{ lane.Storage }

func (s *ill) refuse(method string) error {
	if s.denied != method {
		return nil
	}
	return &runlane.Error{
		Code: runlane.ErrStorageUnavailable, Message: method + ": access denied", Hint: "check the policy", Cause: errors.New("AccessDenied"),
	}
}

func (s *ill) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	if err := s.refuse("list"); err != nil {
		return nil, err
	}
	return s.Storage.ListRuns(ctx, q)
}

func (s *ill) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	if err := s.refuse("owner"); err != nil {
		return nil, err
	}
	return s.Storage.GetRunByIdempotencyKey(ctx, key)
}

func (s *ill) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := s.refuse("append"); err != nil {
		return nil, err
	}
	if s.denied == "nothing is judged" {
		return &lane.Commit{}, nil
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

func (s *ill) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	if err := s.refuse("put"); err != nil {
		return nil, err
	}
	return s.Storage.PutSchedule(ctx, c)
}

func (s *ill) ListDeadLetters(ctx context.Context, q *lane.DeadLetterQuery) (*runlane.Page[runlane.DeadLetter], error) {
	if err := s.refuse("given up"); err != nil {
		return nil, err
	}
	return s.Storage.ListDeadLetters(ctx, q)
}

func (s *ill) Check(_ context.Context, q *lane.PageQuery) (*runlane.Page[lane.Violation], error) {
	if err := s.refuse("check"); err != nil {
		return nil, err
	}
	if q.After == "" { // what is broken stands on the second page
		return &runlane.Page[lane.Violation]{Next: "2"}, nil
	}
	return &runlane.Page[lane.Violation]{Items: s.violations}, nil
}

func (s *ill) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, err := s.Storage.GetRun(ctx, key)
	if err == nil && s.forged {
		run.Counters.Attempts++
	}
	return run, err
}

func TestDoctor_FindsEachFault(t *testing.T) {
	t.Parallel()
	broken := []lane.Violation{{RunKey: lane.RunKey{RunID: "r"}, Rule: "owners", Detail: "without a run"}}
	for name, c := range map[string]struct {
		storage ill
		args    string
		change  func(*world)
		code    int
		finds   string
	}{
		"nothing":        {finds: "ok       histories: 1 history adds up", args: "--all"},
		"lists":          {storage: ill{denied: "list"}, code: cli.ExitUnavailable, finds: "failed   reading: list: access denied\n         cause: AccessDenied\n         fix: check the policy"},
		"owners of keys": {storage: ill{denied: "owner"}, code: cli.ExitUnavailable, finds: "failed   reading: owner: access denied"},
		"writes":         {storage: ill{denied: "append"}, code: cli.ExitUnavailable, finds: "failed   writing: append: access denied"},
		"schedules":      {storage: ill{denied: "put"}, code: cli.ExitUnavailable, finds: "failed   writing: put: access denied"},
		"conditions":     {storage: ill{denied: "nothing is judged"}, code: cli.ExitFailed, finds: "failed   writing: appending to a run that does not exist succeeded"},
		"dead letters":   {storage: ill{denied: "given up"}, code: cli.ExitUnavailable, finds: "failed   dead letters: given up: access denied"},
		"the checker":    {storage: ill{denied: "check"}, code: cli.ExitUnavailable, finds: "failed   invariants of the storage: check: access denied"},
		"a sample":       {storage: ill{violations: broken}, finds: "ok       invariants of the storage: all hold in a sample"},
		"invariants":     {storage: ill{violations: broken}, args: "--all", code: cli.ExitFailed, finds: `failed   invariants of the storage: 1 broken, the first of run "r": owners: without a run`},
		"histories":      {storage: ill{forged: true}, code: cli.ExitFailed, finds: `failed   histories: the history of run "some-run" does not add up to the run`},
		"no sample":      {storage: ill{forged: true}, args: "--sample 0", finds: "ok       histories: 0 histories add up"},
		"overdue work":   {change: func(w *world) { w.millis.Add((2 * time.Hour).Milliseconds()) }, finds: `warning  work that waits: a run of queue "emails" is due since 2026-03-01 13:00:00Z`},
		"a pause": {
			change: func(w *world) { mustRun(t, w, "tasks", "pause", "emails.flaky") },
			finds:  `ok       work that waits: 0 due, none for longer than 5m; task "emails.flaky" is paused`,
		},
		"a pause beside overdue work": {
			change: func(w *world) {
				mustRun(t, w, "queues", "pause", "default")
				mustRun(t, w, "trigger", "emails.flaky")
				w.millis.Add((2 * time.Hour).Milliseconds())
			},
			finds: `warning  work that waits: a run of queue "emails" is due since 2026-03-01 13:00:00Z`,
		},
		"indexes":        {storage: ill{indexes: indexStates(false, false, "")}, finds: "ok       indexes: 1 index answers; another version's: next"},
		"no description": {storage: ill{denied: "describe"}, code: cli.ExitUnavailable, finds: "failed   indexes: describe: access denied"},
		"an index that is made": {
			storage: ill{indexes: indexStates(true, false, runlane.ErrStorageUnavailable)}, code: cli.ExitUnavailable,
			finds: "failed   indexes: index due is so\n         fix: do that",
		},
		"an index that is missing": {
			storage: ill{indexes: indexStates(true, false, runlane.ErrConfigurationInvalid)}, code: cli.ExitUsage,
			finds: "failed   indexes: index due is so\n         fix: do that",
		},
		"an index that costs more": {
			storage: ill{indexes: indexStates(true, true, runlane.ErrConfigurationInvalid)},
			finds:   "warning  indexes: index due is so\n         fix: do that",
		},
		"publishing": {change: func(w *world) { w.refuse = true }, args: "--publish", code: cli.ExitUnavailable, finds: `failed   publishing: queue "default" refused a wakeup: too large`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			mustRun(t, w, "trigger", "emails.welcome", "--id", "some-run", "--delay", "1h")
			if c.change != nil {
				c.change(w)
			}
			w.wrap = func(s lane.Storage) lane.Storage {
				storage := c.storage
				storage.healthy = &healthy{s}
				return &storage
			}
			r := w.run(t.Context(), append([]string{"doctor"}, strings.Fields(c.args)...)...)
			if r.code != c.code || !strings.Contains(r.stdout, c.finds) {
				t.Errorf("exit %d, not %d, with %q in\n%s%s", r.code, c.code, c.finds, r.stdout, r.stderr)
			}
		})
	}
}

// indexStates are those of an index of this version, with a fault or without, and of another version's.
func indexStates(ill, readable bool, code runlane.ErrorCode) []lane.IndexState {
	due := lane.IndexState{Name: "due", Used: true, Readable: !ill || readable}
	if ill {
		due.Fault = &runlane.Error{Code: code, Message: "index due is so", Hint: "do that"}
	}
	return []lane.IndexState{due, {Name: "next", Readable: true}}
}
