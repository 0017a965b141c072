package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// FeedHarness says how to prove the feed of an environment.
type FeedHarness struct {
	// NewLane returns an empty lane, whose storage feeds commits.
	NewLane func(t testing.TB) *lane.Lane
	// Other returns another process's lane over the same state; nil: there is none.
	Other func(t testing.TB, l *lane.Lane) *lane.Lane
}

// RunFeed proves what [core.Runs.Feed] promises, where a storage keeps the order of commits: each event of each run
// comes once and in the order of its run, whatever changes at once and wherever a reader stops and resumes.
func RunFeed(t *testing.T, h FeedHarness) {
	t.Helper()
	t.Run("every event comes once, wherever a reader resumes", func(t *testing.T) { feedIsExact(t, h) })
	t.Run("it begins with what comes, and keeps environments apart", func(t *testing.T) { feedBegins(t, h) })
	t.Run("a commit of several events is resumed within", func(t *testing.T) { feedResumesWithin(t, h) })
	t.Run("events of pruned runs are left out", func(t *testing.T) { feedAfterPruning(t, h) })
	t.Run("cursors that lead nowhere are refused", func(t *testing.T) { feedCursors(t, h) })
}

// feedScene is a runtime that executes what it triggers.
type feedScene struct {
	*testing.T
	rt   *core.Runtime
	task *runlane.Task[int]
}

func newFeedScene(t *testing.T, l *lane.Lane, environment runlane.Environment) *feedScene {
	t.Helper()
	s := &feedScene{T: t, task: runlane.NewTask("feed", &runlane.TaskOptions[int]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Millisecond), NoJitter: true},
	})}
	var err error
	s.rt, err = core.Open(t.Context(), l, &core.Options{
		Environment: environment, Logger: discard(),
		Handlers: []runlane.Handler{s.task.Handle(func(_ context.Context, a *runlane.Attempt, n int) error {
			if n%3 == 0 {
				return fmt.Errorf("run %d fails", n)
			}
			return nil
		})},
	})
	s.must(err)
	t.Cleanup(func() { s.must(s.rt.Close(context.WithoutCancel(t.Context()))) })
	return s
}

func (s *feedScene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *feedScene) trigger(n int) *runlane.Run {
	s.Helper()
	id := runlane.RunID(fmt.Sprint("run-", n))
	result, err := s.rt.Trigger(s.Context(), s.task.With(n), &runlane.TriggerOptions{RunID: id})
	s.must(err)
	return result.Run
}

// settle executes runs until all have ended.
func (s *feedScene) settle() {
	s.Helper()
	deadline := time.Now().Add(patience.Limit)
	for time.Now().Before(deadline) {
		done, err := s.rt.ExecuteNext(s.Context(), nil)
		s.must(err)
		if done.Run != nil {
			continue
		}
		page, err := s.rt.Runs().List(s.Context(), &core.ListOptions{RunFilter: core.RunFilter{Statuses: active()}})
		s.must(err)
		if len(page.Items) == 0 {
			return
		}
	}
	s.Fatalf("runs have not ended after %s", patience.Limit)
}

func active() []runlane.Status {
	return slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool { return s.Terminal() })
}

// read reads so many records at most from a cursor, and returns that of the last one.
func (s *feedScene) read(after runlane.Cursor, most int) (found []core.FeedRecord, next runlane.Cursor) {
	s.Helper()
	next = after
	for record, err := range s.rt.Runs().Feed(s.Context(), &core.FeedOptions{After: after}) {
		s.must(err)
		found, next = append(found, record), record.Cursor
		if len(found) == most {
			break
		}
	}
	return found, next
}

// judge compares what a feed told with the histories of all runs.
func (s *feedScene) judge(told []core.FeedRecord, runs int) {
	s.Helper()
	histories := map[runlane.RunID][]string{}
	for i := range told {
		histories[told[i].RunID] = append(histories[told[i].RunID], told[i].ID)
	}
	if len(histories) != runs {
		s.Errorf("the feed told of %d runs, not of %d", len(histories), runs)
	}
	for id, got := range histories {
		var want []string
		for record, err := range s.rt.Runs().Events(s.Context(), id, nil) {
			s.must(err)
			want = append(want, record.ID)
		}
		if !slices.Equal(got, want) {
			s.Errorf("the feed told %v of a history %v", got, want)
		}
	}
}

func feedIsExact(t *testing.T, h FeedHarness) {
	const writers, each = 4, 40
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	l := h.NewLane(t)
	scenes := []*feedScene{newFeedScene(t, l, "")}
	if h.Other != nil {
		scenes = append(scenes, newFeedScene(t, h.Other(t, l), ""))
	}
	s := scenes[0]
	next, err := s.rt.Runs().FeedStart(t.Context())
	s.must(err)
	var all sync.WaitGroup
	for w := range writers {
		writer := scenes[w%len(scenes)]
		all.Go(func() {
			for n := range each {
				if _, err := writer.rt.Trigger(t.Context(), writer.task.With(w*each+n), nil); err != nil {
					t.Error(err)
				}
				if _, err := writer.rt.ExecuteNext(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { // ends with the writers
		all.Wait()
		close(ended)
	}()
	var told, more []core.FeedRecord
	for working := true; working; {
		select {
		case <-ended:
			working = false
		default:
		}
		more, next = s.read(next, 1+random.IntN(20))
		told = append(told, more...)
	}
	s.settle()
	more, _ = s.read(next, -1)
	s.judge(append(told, more...), writers*each)
}

func feedBegins(t *testing.T, h FeedHarness) {
	l := h.NewLane(t)
	s := newFeedScene(t, l, "")
	s.trigger(1)
	next, err := s.rt.Runs().FeedStart(t.Context())
	s.must(err)
	again, err := s.rt.Runs().FeedStart(t.Context())
	s.must(err)
	if next != again {
		t.Errorf("nothing happened between %s and %s", next, again)
	}
	other := newFeedScene(t, l, "another")
	other.trigger(2)
	s.trigger(3)
	told, _ := s.read(next, -1)
	if len(told) == 0 || told[0].RunID != "run-3" || told[0].Sequence != 1 {
		t.Fatalf("the feed begins with %+v", told)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for record, err := range s.rt.Runs().Feed(ctx, &core.FeedOptions{After: next, Follow: true}) {
		if err != nil {
			if runlane.CodeOf(err) != runlane.ErrOperationCancelled {
				t.Error(err)
			}
			break
		}
		if record.RunID == "run-4" {
			stop() // it followed
		} else if record.Sequence == 1 {
			s.trigger(4)
		}
	}
}

func feedResumesWithin(t *testing.T, h FeedHarness) {
	s := newFeedScene(t, h.NewLane(t), "")
	next, err := s.rt.Runs().FeedStart(t.Context())
	s.must(err)
	s.trigger(1)
	s.settle()
	s.trigger(2)
	var told []core.FeedRecord
	for {
		one, behind := s.read(next, 1)
		if len(one) == 0 {
			break
		}
		told, next = append(told, one...), behind
	}
	s.judge(told, 2)
}

func feedAfterPruning(t *testing.T, h FeedHarness) {
	s := newFeedScene(t, h.NewLane(t), "")
	next, err := s.rt.Runs().FeedStart(t.Context())
	s.must(err)
	s.trigger(1)
	s.settle()
	_, err = s.rt.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: 1, ReleaseOwners: true})
	s.must(err)
	s.trigger(1) // the id is used again
	s.trigger(2)
	told, _ := s.read(next, -1)
	s.judge(told, 2)
}

func feedCursors(t *testing.T, h FeedHarness) {
	s := newFeedScene(t, h.NewLane(t), "")
	_, err := s.rt.Runs().FeedStart(t.Context())
	s.must(err)
	run := s.trigger(1)
	far := newFeedScene(t, h.NewLane(t), "")
	_, err = far.rt.Runs().FeedStart(t.Context())
	s.must(err)
	for n := range 9 {
		far.trigger(n)
	}
	ahead, err := far.rt.Runs().FeedStart(t.Context())
	s.must(err)
	for name, cursor := range map[string]runlane.Cursor{
		"of a run":           core.EventCursor(&runlane.EventRecord{Sequence: 1, Event: runlane.Event{RunID: run.ID}}),
		"nonsense":           "x",
		"of another storage": ahead,
	} {
		for _, err := range s.rt.Runs().Feed(t.Context(), &core.FeedOptions{After: cursor}) {
			if runlane.CodeOf(err) != runlane.ErrValidationFailed {
				t.Errorf("a cursor %s: %v", name, err)
			}
		}
	}
}
