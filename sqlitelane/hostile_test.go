package sqlitelane_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/hostiletest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Handlers that do what no handler should end their own runs in the file, and nothing else.
func TestHandlers_SQLite_EachEndsItsOwnRunAndNothingElse(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	hostiletest.OpenProgram(t, s, &core.Options{Logger: slog.New(slog.DiscardHandler)}).Attack()
}

func TestEnvironments_SQLite_ReachNothingOfEachOther(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	s.SetClock(hostiletest.Noon)
	hostiletest.AttackAcross(t, s)
}

// Hostile texts, in every place that a call has for one, get the answer that the lane in memory gives.
func TestHostileTexts_HaveTheAnswersOfMemory(t *testing.T) {
	t.Parallel()
	memory, onDisk := memlane.NewStorage(nil), started(t, newPath(t), 0)
	tried := 0
	for _, input := range hostiletest.Inputs() {
		for place, ask := range askers(input.Text) {
			tried++
			want, got := runlane.CodeOf(ask(memory)), runlane.CodeOf(ask(onDisk))
			if got != want {
				t.Errorf("%s as %s: %q, in memory %q", input.Name, place, got, want)
			}
		}
	}
	t.Logf("%d inputs tried", tried)
	if fault, err := onDisk.Sound(); err != nil || fault != "" {
		t.Error(fault, err)
	}
}

// askers are calls with one text each.
func askers(text string) map[string]func(lane.Storage) error {
	ctx := context.Background()
	page := lane.PageQuery{Environment: "default", After: runlane.Cursor(text)}
	key := lane.RunKey{Environment: "default", RunID: runlane.RunID(text)}
	named := lane.PageQuery{Environment: runlane.Environment(text)}
	return map[string]func(lane.Storage) error{
		"a run's id": func(s lane.Storage) error { _, err := s.GetRun(ctx, key); return err },
		"one of ids": func(s lane.Storage) error {
			return second(s.GetRuns(ctx, &lane.RunsQuery{Environment: "default", IDs: []runlane.RunID{key.RunID}}))
		},
		"an inspection": func(s lane.Storage) error { return second(s.InspectRun(ctx, &lane.InspectQuery{RunKey: key})) },
		"a key": func(s lane.Storage) error {
			return second(s.GetRunByIdempotencyKey(ctx, lane.OwnerKey{Environment: "default", TaskID: "t", Key: text}))
		},
		"a task": func(s lane.Storage) error {
			return second(s.GetRunBySingletonKey(
				ctx,
				lane.OwnerKey{Environment: "default", TaskID: runlane.TaskID(text), Key: "k"},
			))
		},
		"a key that is reset": func(s lane.Storage) error {
			return s.ResetIdempotencyKey(ctx, lane.OwnerKey{Environment: "default", TaskID: "t", Key: text})
		},
		"a cursor of runs": func(s lane.Storage) error { return second(s.ListRuns(ctx, &lane.RunQuery{PageQuery: page})) },
		"a cursor of events": func(s lane.Storage) error {
			return second(s.ListRunEvents(ctx, &lane.EventQuery{PageQuery: page, RunID: "r"}))
		},
		"a cursor of a scan": func(s lane.Storage) error {
			return second(s.ListRunnableRuns(ctx, &lane.DueQuery{PageQuery: page, At: time.Now()}))
		},
		"a cursor of plans": func(s lane.Storage) error { return second(s.ListSchedules(ctx, &page)) },
		"a cursor of letters": func(s lane.Storage) error {
			return second(s.ListDeadLetters(ctx, &lane.DeadLetterQuery{PageQuery: page}))
		},
		"an environment": func(s lane.Storage) error { return second(s.ListRuns(ctx, &lane.RunQuery{PageQuery: named})) },
		"a schedule": func(s lane.Storage) error {
			return second(s.GetSchedule(ctx, lane.ScheduleKey{Environment: "default", ScheduleID: runlane.ScheduleID(text)}))
		},
		"a filter by a queue": func(s lane.Storage) error {
			return second(s.ListRuns(
				ctx,
				&lane.RunQuery{PageQuery: lane.PageQuery{Environment: "default"}, Queue: runlane.QueueName(text)},
			))
		},
		"a queue of a scan": func(s lane.Storage) error {
			return second(s.ListRunnableRuns(ctx, &lane.DueQuery{
				PageQuery: lane.PageQuery{Environment: "default"},
				At:        time.Now(),
				Queues:    []runlane.QueueName{runlane.QueueName(text)},
			}))
		},
		"a row of the outbox": func(s lane.Storage) error {
			return second(s.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
				Environment: "default",
				IDs:         []string{text},
				At:          time.Now(),
				ClaimUntil:  time.Now().Add(time.Minute),
				Limit:       1,
			}))
		},
		"a letter to requeue": func(s lane.Storage) error {
			return second(s.RequeueDeadLetters(
				ctx,
				&lane.RequeueCommand{Environment: "default", IDs: []string{text}, At: time.Now()},
			))
		},
		"a row that was sent": func(s lane.Storage) error {
			return s.MarkOutboxMessagesPublished(ctx, &lane.MarkPublishedCommand{
				Environment: "default",
				At:          time.Now(),
				Messages:    []lane.OutboxRef{{ID: text}},
			})
		},
		"a pruning's cursor": func(s lane.Storage) error {
			return second(s.PruneRuns(ctx, &lane.PruneCommand{PageQuery: page, OlderThan: time.Now()}))
		},
		"a token of a release": func(s lane.Storage) error {
			return s.ReleaseRunLease(
				ctx,
				&lane.ReleaseCommand{RunKey: lane.RunKey{Environment: "default", RunID: "r"}, LeaseToken: text},
			)
		},
	}
}

func second[T any](_ T, err error) error { return err }
