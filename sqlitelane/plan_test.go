package sqlitelane_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// every list and scan that a runtime or an operator asks for.
func readEverything(t *testing.T, s *sqlitelane.Storage, w *sqlitelane.Transport) {
	t.Helper()
	ctx := t.Context()
	page := lane.PageQuery{Environment: deedsEnvironment}
	due := &lane.DueQuery{PageQuery: page, At: time.Now(), Bounded: []runlane.Queue{{Name: "bounded", Concurrency: 1}}}
	key := "customer"
	one := *due
	one.ConcurrencyKey, one.Limit = &key, 1
	for name, call := range map[string]func() error{
		"runnable":     func() error { _, err := s.ListRunnableRuns(ctx, due); return err },
		"delivery":     func() error { _, err := s.ListRunsNeedingDelivery(ctx, due); return err },
		"redelivery":   func() error { _, err := s.ListRunsNeedingRedelivery(ctx, due); return err },
		"dispatch":     func() error { _, err := s.ListRunsNeedingDispatch(ctx, due); return err },
		"one key":      func() error { _, err := s.ListRunsNeedingDispatch(ctx, &one); return err },
		"cancellation": func() error { _, err := s.ListRunsNeedingCancellationFinalization(ctx, due); return err },
		"runs":         func() error { _, err := s.ListRuns(ctx, &lane.RunQuery{PageQuery: page}); return err },
		"dead letters": func() error { _, err := s.ListDeadLetters(ctx, &lane.DeadLetterQuery{PageQuery: page}); return err },
		"schedules":    func() error { _, err := s.ListSchedules(ctx, &page); return err },
		"tasks":        func() error { _, err := s.ListTasks(ctx, &page); return err },
		"occurrences": func() error {
			_, err := s.ListScheduleOccurrences(ctx, &lane.OccurrenceQuery{PageQuery: page, ScheduleID: "nightly"})
			return err
		},
		"events": func() error {
			_, err := s.ListRunEvents(ctx, &lane.EventQuery{PageQuery: page, RunID: "run_00001"})
			return err
		},
		"key": func() error {
			_, err := s.GetRunByIdempotencyKey(ctx, lane.OwnerKey{Environment: deedsEnvironment, TaskID: lanetest.TaskID, Key: "none"})
			if runlane.CodeOf(err) == runlane.ErrRunNotFound {
				return nil
			}
			return err
		},
		"outbox": func() error {
			_, err := s.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
				Environment: deedsEnvironment, At: time.Now(), ClaimUntil: time.Now().Add(time.Hour), Without: []runlane.QueueName{"bounded"},
			})
			return err
		},
		"feed": func() error {
			after, err := s.BeginFeed(ctx)
			if err == nil {
				_, err = s.ReadFeed(ctx, &lane.FeedQuery{Environment: deedsEnvironment, After: after, Limit: 1})
			}
			return err
		},
		"environments": func() error { _, err := s.Environments(ctx); return err },
		"depth":        func() error { _, _, err := w.Depth(ctx, "wakeups"); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	receiving, cancel := context.WithCancel(ctx)
	err := w.Receive(receiving, []runlane.QueueName{"wakeups", "other"}, 1, func(context.Context, lane.Wakeup) error {
		cancel()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Every statement goes by an index, and none sorts: what a call reads does not grow with what is stored.
func TestStatements_GoByAnIndex(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	d := &deeds{t: t, s: s, w: deedsTransport(s), f: lanetest.NewFactory(deedsEnvironment), ack: func(string) {}}
	for name, deed := range kinds {
		if err := deed(d, 1); err != nil {
			t.Fatal(name, err)
		}
	}
	readEverything(t, s, d.w)
	if err := s.MultiplyFlows(deedsEnvironment, 10, flowsBegan); err != nil {
		t.Fatal(err)
	}
	for _, q := range flowLists(10) {
		behind(t, s, q, 1)
		q.After = behind(t, s, q, 2)
		behind(t, s, q, 1)
	}
	publish(t, ordered(t, s), "a", "1", "2")
	receiveAll(t, ordered(t, s), 2)
	plans, err := s.Plans()
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	whole := []string{ // read once by each process
		"SELECT env, queue FROM limited",                     // a row for each queue with a limit
		"SELECT name FROM epoch",                             // one row
		sqlitelane.SelectEnvironments,                        // a row for each environment and each queue
		"SELECT name FROM ordered_queues ORDER BY name",      // a row for each queue with an order
		"SELECT n, tag FROM commits ORDER BY n DESC LIMIT 1", // the last row by its number
	}
	for statement, plan := range plans {
		for _, step := range plan {
			reads := strings.HasPrefix(step, "SCAN") && step != "SCAN CONSTANT ROW"
			if (reads || strings.Contains(step, "TEMP B-TREE")) && !slices.Contains(whole, statement) {
				t.Errorf("%s\n\t%s", statement, strings.Join(plan, "\n\t"))
				break
			}
		}
	}
	for what, ofFlows := range sqlitelane.FlowLists {
		if len(plans[ofFlows]) == 0 {
			t.Errorf("%s were not listed", what)
		}
	}
	if len(plans) < 50 {
		t.Errorf("only %d statements were prepared", len(plans))
	}
	if err := d.w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
