package core

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// The order in which a handler's error is read, with the rows that are easily got wrong.
func TestJudge_ReadsErrorsInOrder(t *testing.T) {
	t.Parallel()
	live := context.Background()
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	timedOut, cancel := context.WithTimeoutCause(context.Background(), 0, runlane.ErrTimeout)
	defer cancel()
	<-timedOut.Done()
	client := &url.Error{Op: "Get", URL: "http://example.com", Err: context.DeadlineExceeded}
	broken := errors.New("broken")
	declined := &runlane.Error{Code: "card_declined", Message: "declined", Retryable: false, Meta: map[string]string{"card": "4"}}

	for _, c := range []struct {
		name  string
		ctx   context.Context // a row
		err   error
		kind  verdictKind
		final bool
		delay time.Duration
		code  runlane.ErrorCode
		cause error
	}{
		{"nil", live, nil, verdictSucceeded, false, 0, "", nil},
		{"nil after a requested cancellation: the work was done", ended(runlane.ErrCancelRequested), nil, verdictSucceeded, false, 0, "", nil},
		{"nil after the timeout", timedOut, nil, verdictSucceeded, false, 0, "", nil},
		{"the context's error", ended(runlane.ErrShutdown), context.Canceled, verdictStopped, false, 0, "", runlane.ErrShutdown},
		{
			"the context's error, wrapped", ended(runlane.ErrShutdown), fmt.Errorf("x: %w", context.Canceled),
			verdictStopped, false, 0, "", runlane.ErrShutdown,
		},
		{"the cause", ended(runlane.ErrLeaseLost), runlane.ErrLeaseLost, verdictStopped, false, 0, "", runlane.ErrLeaseLost},
		{"a client's error of the ended context", timedOut, client, verdictStopped, false, 0, "", runlane.ErrTimeout},
		{
			"permanent around the ended context: the runtime ended it", ended(runlane.ErrShutdown), runlane.Permanent(context.Canceled),
			verdictStopped, false, 0, "", runlane.ErrShutdown,
		},
		{"another error after the end", ended(runlane.ErrShutdown), broken, verdictFailed, false, 0, runlane.ErrTaskFailed, nil},
		{"a client's own timeout while the context lives", live, client, verdictFailed, false, 0, runlane.ErrTaskFailed, nil},
		{"a context error while the context lives", live, context.Canceled, verdictFailed, false, 0, runlane.ErrTaskFailed, nil},
		{"permanent", live, runlane.Permanent(broken), verdictFailed, true, 0, runlane.ErrTaskFailed, nil},
		{
			"permanent around a release", live, runlane.Permanent(runlane.Release(time.Hour, "")),
			verdictFailed, true, 0, runlane.ErrTaskFailed, nil,
		},
		{
			"permanent around a delay", live, runlane.Permanent(runlane.RetryAfter(time.Hour, broken)),
			verdictFailed, true, 0, runlane.ErrTaskFailed, nil,
		},
		{"a release", live, runlane.Release(time.Hour, "why"), verdictReleased, false, time.Hour, "", nil},
		{"a release, wrapped", live, fmt.Errorf("x: %w", runlane.Release(time.Hour, "")), verdictReleased, false, time.Hour, "", nil},
		{
			"a release beside a cleanup error", live, errors.Join(broken, runlane.Release(time.Hour, "")),
			verdictReleased, false, time.Hour, "", nil,
		},
		{
			"a release inside a delay: release is read first", live, runlane.RetryAfter(time.Minute, runlane.Release(time.Hour, "")),
			verdictReleased, false, time.Hour, "", nil,
		},
		{"a release for nothing", live, runlane.Release(0, ""), verdictFailed, false, 0, runlane.ErrValidationFailed, nil},
		{
			"a release for too long", live, runlane.Release(runlane.MaxReleaseDelay+1, ""),
			verdictFailed, false, 0, runlane.ErrValidationFailed, nil,
		},
		{"a delay", live, runlane.RetryAfter(time.Minute, declined), verdictFailed, false, time.Minute, "card_declined", nil},
		{"a negative delay", live, runlane.RetryAfter(-time.Minute, broken), verdictFailed, false, 0, runlane.ErrTaskFailed, nil},
		{"an error keeps its code and stays retryable", live, fmt.Errorf("x: %w", declined), verdictFailed, false, 0, "card_declined", nil},
		{"a bare code", live, runlane.ErrStorageUnavailable, verdictFailed, false, 0, runlane.ErrStorageUnavailable, nil},
		{"an error without a code", live, &runlane.Error{Message: "odd"}, verdictFailed, false, 0, runlane.ErrTaskFailed, nil},
		{"no error at all inside", live, runlane.Permanent(nil), verdictSucceeded, false, 0, "", nil},
	} {
		v := verdictOf(c.ctx, c.err, errorTexts{})
		if v.kind != c.kind || v.final != c.final || v.delay != c.delay || v.failure.Code != c.code || !errors.Is(v.cause, c.cause) {
			t.Errorf("%s: verdict is %+v", c.name, v)
		}
	}
}

func TestJudge_FailureTexts(t *testing.T) {
	t.Parallel()
	own := &runlane.Error{Code: "card_declined", Message: "declined", Hint: "ask", Meta: map[string]string{"card": "4"}}
	for _, c := range []struct {
		name string
		err  error
		open bool
		want string
	}{
		{"a foreign error", errors.New("password is 1234"), false, foreignFailure},
		{"a foreign error of a task that opted in", errors.New("payment 17 refused"), true, "payment 17 refused"},
		{"our own error", fmt.Errorf("password is 1234: %w", own), false, "declined"},
		{"a long text is cut", &runlane.Error{Code: "x", Message: strings.Repeat("é", 2000)}, false, strings.Repeat("é", 510) + "…"},
	} {
		f := verdictOf(context.Background(), c.err, errorTexts{whole: c.open}).failure
		if f.Message != c.want || len(f.Message) > runlane.MaxFailureMessageBytes {
			t.Errorf("%s: message is %q (%d bytes)", c.name, f.Message, len(f.Message))
		}
	}
	if f := failedWith(own, errorTexts{}).failure; f.Meta["card"] != "4" {
		t.Errorf("meta is %v", f.Meta)
	}
	if reason := clipReason(strings.Repeat("é", 200)); len(reason) > runlane.MaxReasonBytes || !strings.HasSuffix(reason, "é…") {
		t.Errorf("reason is %q", reason)
	}
}

func TestRetryDelay_JitterStaysWithinTwentyPercent(t *testing.T) {
	t.Parallel()
	const seed = 7
	rt := &Runtime{world: (&World{Rand: seeded(seed)}).withDefaults()}
	task := &runlane.Definition{Retry: runlane.Retry{MaxAttempts: 9, Backoff: runlane.Fixed(10 * time.Second)}}
	lowest, highest := time.Hour, time.Duration(0)
	for range 2000 {
		d := rt.retryDelay(task, verdict{}, 1)
		lowest, highest = min(lowest, d), max(highest, d)
	}
	if lowest < 8*time.Second || highest > 12*time.Second {
		t.Errorf("seed %d: delays from %s to %s, want 10 s ± 20 %%", seed, lowest, highest)
	}
	if lowest > 8200*time.Millisecond || highest < 11800*time.Millisecond {
		t.Errorf("seed %d: delays from %s to %s do not use the range", seed, lowest, highest)
	}
	task.Retry.NoJitter = true
	if d := rt.retryDelay(task, verdict{}, 1); d != 10*time.Second {
		t.Errorf("without jitter: %s", d)
	}
	if d := rt.retryDelay(task, verdict{chosen: true, delay: time.Minute}, 1); d != time.Minute {
		t.Errorf("a chosen delay: %s", d)
	}
	task.Retry.Backoff = runlane.BackoffFunc(func(int) time.Duration { return 1 << 62 })
	if d := rt.retryDelay(task, verdict{}, 1); d != runlane.MaxReleaseDelay {
		t.Errorf("an endless backoff: %s", d)
	}
	task.Retry.Backoff = runlane.BackoffFunc(func(int) time.Duration { panic("bug") })
	if d := rt.retryDelay(task, verdict{}, 3); d != 4*time.Second {
		t.Errorf("a backoff that panics: %s, want the default's", d)
	}
}
