package scenarios

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func operateEvents(t *testing.T, h Harness) {
	task, handler := job("scenario.events", nil, succeed)
	s := newScene(t, h, handler)
	run, other := s.trigger(task.With(jobPayload{}), nil), s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	records := s.history(run.ID)
	for i := range records {
		for _, descending := range []bool{false, true} {
			want := records[i+1:]
			if descending {
				want = slices.Clone(records[:i])
				slices.Reverse(want)
			}
			var got []runlane.EventRecord
			for record, err := range s.rt.Runs().Events(t.Context(), run.ID, &core.EventOptions{
				After: core.EventCursor(&records[i]), Descending: descending,
			}) {
				s.must(err)
				got = append(got, record)
			}
			if !slices.EqualFunc(got, want, func(a, b runlane.EventRecord) bool {
				return a.ID == b.ID && a.Sequence == b.Sequence
			}) {
				t.Errorf("behind event %d, descending %t: %d events, want %d", i+1, descending, len(got), len(want))
			}
		}
	}
	for _, err := range s.rt.Runs().Events(t.Context(), other.ID, &core.EventOptions{
		After: core.EventCursor(&records[0]),
	}) {
		s.wantCode(err, runlane.ErrValidationFailed)
	}
	failures := 0
	for _, err := range s.rt.Runs().Events(t.Context(), "run_absent", nil) {
		s.wantCode(err, runlane.ErrRunNotFound)
		failures++
	}
	if failures != 1 {
		t.Errorf("a run that does not exist made the feed say %d things", failures)
	}
}

func operateFollows(t *testing.T, h Harness) {
	task, handler := job("scenario.follow", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	var seen []string
	for record, err := range s.rt.Runs().Events(t.Context(), run.ID, &core.EventOptions{Follow: true}) {
		s.must(err)
		seen = append(seen, strings.TrimPrefix(string(record.Type()), "run."))
		if len(seen) == 2 { // all there is: what comes now has to be waited for
			s.execute(run)
		}
	}
	if got, want := strings.Join(seen, " "), "created delivery_requested lease_claimed started succeeded"; got != want {
		t.Fatalf("the feed told\n  %s\nwant\n  %s", got, want)
	}
	records := s.history(run.ID)
	for record, err := range s.rt.Runs().Events(t.Context(), run.ID, &core.EventOptions{
		Follow: true, After: core.EventCursor(&records[len(records)-1]),
	}) {
		t.Fatalf("behind the end of a run the feed says %+v, %v", record, err)
	}
}

func operateFeedEnds(t *testing.T, h Harness) {
	task, handler := job("scenario.feed-end", nil, succeed)
	s := newScene(t, h, handler)
	second, _ := s.second()
	for name, c := range map[string]struct {
		rt   *caller
		act  func(run *runlane.Run, stop context.CancelFunc)
		want runlane.ErrorCode
	}{
		"its context": {s.rt, func(_ *runlane.Run, stop context.CancelFunc) { stop() }, runlane.ErrOperationCancelled},
		"its runtime": {second, func(*runlane.Run, context.CancelFunc) {
			go func() { _ = second.Close(context.WithoutCancel(t.Context())) }() // waits for the feed
		}, runlane.ErrConfigurationInvalid},
		"its run": {s.rt, func(run *runlane.Run, _ context.CancelFunc) { // ends and is pruned between two reads
			s.execute(run)
			s.clock.Advance(time.Second)
			s.settle()
			s.must(errorOf(s.rt.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: time.Millisecond})))
		}, runlane.ErrRunNotFound},
	} {
		run := s.trigger(task.With(jobPayload{}), nil)
		ctx, stop := context.WithCancel(t.Context())
		events, last := 0, error(nil)
		for _, err := range c.rt.Runs().Events(ctx, run.ID, &core.EventOptions{Follow: true}) {
			if err != nil {
				last = err
				continue
			}
			if events++; events == 2 {
				c.act(run, stop)
			}
		}
		stop()
		if runlane.CodeOf(last) != c.want || events != 2 {
			t.Errorf("%s: %d events, then %v", name, events, last)
		}
	}
}

// errorOf leaves a call's other result.
func errorOf[T any](_ T, err error) error { return err }
