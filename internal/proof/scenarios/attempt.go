package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func deliveryDeadline(t *testing.T, h Harness) {
	var sooner, later time.Duration
	var began time.Time
	task, handler := job("scenario.deadline", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			return runlane.Permanent(runlane.ErrTaskFailed)
		}
		sooner, later = time.Until(deadline), deadline.Sub(began)
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	deadline := s.clock.Now().Add(100 * time.Second)
	began = time.Now()
	result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), &core.DeliveryOptions{
		Deadline: deadline,
		WorkerID: "lambda-1",
	})
	s.must(err)
	s.wantStatus(result.Run, runlane.StatusSucceeded)
	claimed, _ := s.history(run.ID)[2].Body.(*runlane.RunLeaseClaimed)
	end := claimed.Lease.ExpiresAt.Sub(deadline)
	if end < 5*time.Second || end > 5*time.Second+time.Millisecond || claimed.Lease.WorkerID != "lambda-1" {
		t.Fatalf("lease %+v ends %s after the deadline, want 5 s", claimed.Lease, end)
	}
	// 5 % of 100 s are kept free, from some moment between the call and its handler
	if sooner > 95*time.Second || later < 95*time.Second {
		t.Fatalf("the handler had %s to %s, want 95 s", sooner, later)
	}
}

func deliveryNoTime(t *testing.T, h Harness) {
	task, handler := job("scenario.hurry", &runlane.TaskOptions[jobPayload]{Timeout: 20 * time.Second}, succeed)
	plain, plainHandler := job("scenario.plain", nil, succeed)
	s := newScene(t, h, handler, plainHandler)
	for name, c := range map[string]struct {
		run  *runlane.Run
		left time.Duration
	}{
		"less than the timeout": {s.trigger(task.With(jobPayload{}), nil), 21 * time.Second},
		"less than 5 s":         {s.trigger(plain.With(jobPayload{}), nil), 6 * time.Second},
		"nothing":               {s.trigger(plain.With(jobPayload{}), nil), time.Second},
	} {
		_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(c.run), &core.DeliveryOptions{
			Deadline: s.clock.Now().Add(c.left),
		})
		if !errors.Is(err, core.ErrNoTime) || runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Errorf("%s: error is %v, want core.ErrNoTime", name, err)
		}
		s.wantStatus(s.get(c.run.ID), runlane.StatusQueued)
	}
	if n := len(s.storage.claimed()); n != 0 {
		t.Errorf("%d claims were tried", n)
	}
}

// deliveryFollows has 57 s for a handler in an invocation of a minute. Without a timeout a task needs nine tenths of
// that behind others.
func deliveryFollows(t *testing.T, h Harness) {
	task, handler := job("scenario.bounded", &runlane.TaskOptions[jobPayload]{Timeout: 20 * time.Second}, succeed)
	plain, plainHandler := job("scenario.plain", nil, succeed)
	s := newScene(t, h, handler, plainHandler)
	for name, c := range map[string]struct {
		call   runlane.Call
		used   time.Duration
		behind bool
		begins bool
	}{
		"behind little":                           {plain.With(jobPayload{}), 2 * time.Second, true, true},
		"behind more":                             {plain.With(jobPayload{}), 10 * time.Second, true, false},
		"as much gone, with none before":          {plain.With(jobPayload{}), 10 * time.Second, false, true},
		"behind more, with a timeout that fits":   {task.With(jobPayload{}), 30 * time.Second, true, true},
		"behind more, with one that fits no more": {task.With(jobPayload{}), 40 * time.Second, true, false},
	} {
		run := s.trigger(c.call, nil)
		began := s.clock.Now().Add(-c.used)
		result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), &core.DeliveryOptions{
			Began: began, Deadline: began.Add(time.Minute), Follows: c.behind,
		})
		switch {
		case c.begins && (err != nil || result.Run.Status != runlane.StatusSucceeded):
			t.Errorf("%s: %+v, error %v", name, result, err)
		case !c.begins && !errors.Is(err, core.ErrNoTime):
			t.Errorf("%s: error is %v, want core.ErrNoTime", name, err)
		}
	}
}

func deliveryNeverFits(t *testing.T, h Harness) {
	task, handler := job("scenario.long", &runlane.TaskOptions[jobPayload]{Timeout: 2 * time.Minute}, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	_, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), &core.DeliveryOptions{
		Began: s.clock.Now(), Deadline: s.clock.Now().Add(time.Minute),
	})
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || errors.Is(err, core.ErrNoTime) {
		t.Errorf("error is %v", err)
	}
	for _, err := range []error{err, s.rt.CheckInvocation(time.Minute)} {
		for _, want := range []string{`"scenario.long"`, "2m", "1m", "56s"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %s", err, want)
			}
		}
	}
	s.must(s.rt.CheckInvocation(128 * time.Second))
	s.wantStatus(s.get(run.ID), runlane.StatusQueued)
	if n := len(s.storage.claimed()); n != 0 || len(s.logs.lines(t, "task fits into no invocation here")) != 1 {
		t.Errorf("%d claims were tried; the log does not say it once", n)
	}
}

func deliveryMiddleware(t *testing.T, h Harness) {
	type tag struct{}
	var order []string
	layer := func(name string) runlane.Middleware {
		return func(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
			order = append(order, name+" before "+string(a.Run.TaskID))
			err := next(context.WithValue(ctx, tag{}, name))
			order = append(order, name+" after")
			return err
		}
	}
	task, handler := job("scenario.layers", nil, func(ctx context.Context, a *runlane.Attempt) error {
		order = append(order, "handler in "+ctx.Value(tag{}).(string))
		if runlane.AttemptFrom(ctx) != a {
			return runlane.Permanent(runlane.ErrInternal)
		}
		return nil
	})
	s := openScene(t, h, core.Options{
		Handlers: []runlane.Handler{handler}, Middleware: []runlane.Middleware{layer("outer"), layer("inner")},
	}, nil)
	s.wantStatus(s.execute(s.trigger(task.With(jobPayload{}), nil)), runlane.StatusSucceeded)
	want := "outer before scenario.layers, inner before scenario.layers, handler in inner, inner after, outer after"
	if got := strings.Join(order, ", "); got != want {
		t.Fatalf("order is\n  %s\nwant\n  %s", got, want)
	}
}

func deliveryLogger(t *testing.T, h Harness) {
	task, handler := job("scenario.logger", nil, func(_ context.Context, a *runlane.Attempt) error {
		a.Logger().Info("from the handler", "extra", 1)
		a.Logger().With("extra", 1).Info("from the handler")
		a.Logger().WithGroup("group").Info("from the handler", "inside", 1)
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.execute(run)
	lines := s.logs.lines(t, "from the handler")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for n, got := range lines {
		if got["run_id"] != string(run.ID) || got["task"] != "scenario.logger" || got["queue"] != "default" ||
			got["attempt"] != 1.0 ||
			got["worker_id"] == nil || n < 2 && got["extra"] != 1.0 {
			t.Fatalf("attributes of line %d are %v", n+1, got)
		}
	}
}

func deliveryLogsNoPayload(t *testing.T, h Harness) {
	const secret = "s3cr3t-and-unique"
	task := runlane.NewTask("scenario.secret", &runlane.TaskOptions[json.RawMessage]{
		Retry: runlane.Retry{MaxAttempts: 2},
	})
	handler := task.Handle(func(_ context.Context, _ *runlane.Attempt, p json.RawMessage) error {
		return errors.New("cannot use " + string(p))
	})
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, HideErrorTexts: true}, nil)
	s.transport.OnPublish(refused(runlane.ErrTransportPublishFailed, false))
	run := s.trigger(task.With(json.RawMessage(`"`+secret+`"`)), nil)
	s.execute(run)
	s.clock.Advance(time.Hour)
	final := s.execute(run)
	s.wantStatus(final, runlane.StatusFailed)
	if s.logs.contains(secret) || strings.Contains(final.Failure.Message, secret) {
		t.Fatal("a payload was quoted")
	}
	failed := s.logs.lines(t, "run failed")
	if len(failed) != 1 || failed[0]["code"] != string(runlane.ErrTaskFailed) || failed[0]["run_id"] != string(run.ID) {
		t.Fatalf("log lines are %v", failed)
	}
}

func deliveryProgress(t *testing.T, h Harness) {
	var s *scene
	task, handler := job("scenario.progress", nil, func(ctx context.Context, a *runlane.Attempt) error {
		if a.Run.Meta["silent"] != "" {
			return nil
		}
		for _, note := range []string{"began", "half", "nearly"} {
			if err := a.Progress(ctx, note); err != nil {
				return runlane.Permanent(err)
			}
		}
		seen, err := s.rt.Runs().Progress(ctx, a.Run.ID)
		if err != nil || seen == nil || seen.Note == "" { // which one is there depends on how fast they came
			return runlane.Permanent(errors.Join(runlane.ErrInternal, err))
		}
		return nil
	})
	s = newScene(t, h, handler)
	if !s.lane.Storage.Capabilities().KeepsProgress {
		_, err := s.rt.Runs().Progress(t.Context(), "run_any")
		s.wantCode(err, runlane.ErrCapabilityUnsupported)
		return
	}
	run := s.execute(s.trigger(task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusSucceeded)
	last, err := s.rt.Runs().Progress(t.Context(), run.ID)
	s.must(err)
	if last == nil || last.Note != "nearly" || last.Attempt != 1 || !last.At.Equal(runlane.UTCMillis(s.clock.Now())) {
		t.Fatalf("the last note is %+v", last)
	}
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started succeeded") // notes are no events
	silent := s.execute(s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{
		Meta: map[string]string{"silent": "yes"},
	}))
	if note, err := s.rt.Runs().Progress(t.Context(), silent.ID); note != nil || err != nil {
		t.Fatalf("a silent run has the note %+v, %v", note, err)
	}
}
