package hostiletest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/fault/front"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqstransport"
)

// secret is a payload that is confidential as a whole.
type secret struct {
	Text string `json:"text"`
}

// clock is moved by hand.
type clock struct{ millis atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.millis.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }

// stage is a runtime whose tasks handle secrets, and do everything that a handler can do.
type stage struct {
	*core.Runtime
	t      *testing.T
	clock  *clock
	watch  *watch
	logger *slog.Logger
	tasks  map[string]*runlane.Task[secret]
	ids    []runlane.RunID
}

func newStage(t *testing.T, hide bool, storage func(now func() time.Time) lane.Storage) *stage {
	t.Helper()
	s := &stage{t: t, clock: &clock{}, watch: &watch{}, tasks: map[string]*runlane.Task[secret]{}}
	s.clock.millis.Store(noon.UnixMilli())
	s.logger = slog.New(slog.NewTextHandler(s.watch, &slog.HandlerOptions{Level: slog.LevelDebug}))
	transport := lanetest.FaultyTransport(memlane.NewTransport(nil), lanetest.NewFaultPlan(t, 0,
		lanetest.FaultRule{Kind: lanetest.FaultThrottle, Method: "PublishWakeups", Rate: 0.2},
		lanetest.FaultRule{Kind: lanetest.FaultLoss, Method: "PublishWakeups", Rate: 0.2}))
	l, err := lane.New(storage(s.clock.now), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Runtime, err = core.Open(t.Context(), l, &core.Options{
		Handlers: s.handlers(), Logger: s.logger, Metrics: s.watch, World: &core.World{Now: s.clock.now},
		Hooks:        []core.Hook{func(core.Change) { panic("hook " + mark) }},
		MaxAbandoned: 2, HideErrorTexts: hide,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// handlers are one of each kind of ending. Each sets an output, leaves a note and fails to trigger something first.
func (s *stage) handlers() []runlane.Handler {
	endings := map[string]func(ctx context.Context, a *runlane.Attempt) error{
		"success": func(context.Context, *runlane.Attempt) error { return nil },
		"failure": func(context.Context, *runlane.Attempt) error { return errors.New("foreign " + mark) },
		"permanent": func(context.Context, *runlane.Attempt) error {
			return runlane.Permanent(fmt.Errorf("permanent %s", mark))
		},
		"coded": func(context.Context, *runlane.Attempt) error {
			return &runlane.Error{Code: "card_declined", Message: "coded " + mark, Meta: map[string]string{"card": mark}, Cause: errors.New(mark)}
		},
		"later": func(_ context.Context, a *runlane.Attempt) error {
			if a.Run.Counters.Retries == 0 {
				return runlane.RetryAfter(time.Minute, errors.New("later "+mark))
			}
			return nil
		},
		"release": func(_ context.Context, a *runlane.Attempt) error {
			if a.Run.Counters.Releases == 0 {
				return runlane.Release(time.Minute, "released "+mark)
			}
			return nil
		},
		"panic":       func(context.Context, *runlane.Attempt) error { panic("panic " + mark) },
		"panic error": func(context.Context, *runlane.Attempt) error { panic(errors.New("panic " + mark)) },
		"timeout": func(ctx context.Context, _ *runlane.Attempt) error {
			<-ctx.Done()
			return fmt.Errorf("timeout %s: %w", mark, ctx.Err())
		},
		"cancel": func(ctx context.Context, a *runlane.Attempt) error {
			_, err := s.Runs().Cancel(ctx, a.Run.ID, &core.ChangeOptions{Reason: "reason " + mark})
			s.watch.failed(err)
			return errors.New("cancelled " + mark)
		},
		"bad output": func(_ context.Context, a *runlane.Attempt) error {
			err := a.SetOutput(json.RawMessage(`{"` + mark))
			s.watch.failed(err)
			return err
		},
		"undecodable": func(context.Context, *runlane.Attempt) error { return nil },
	}
	var handlers []runlane.Handler
	for name, end := range endings {
		o := &runlane.TaskOptions[secret]{
			IdempotencyKey: func(p secret) string { return "idempotency " + p.Text },
			ConcurrencyKey: func(p secret) string { return "concurrency " + p.Text },
			SingletonKey:   func(p secret) string { return "singleton " + p.Text },
			Retry:          runlane.Retry{MaxAttempts: 2, Backoff: runlane.BackoffFunc(func(int) time.Duration { return time.Minute })},
			Queue:          runlane.Queue{Name: "secrets", Concurrency: 50},
		}
		if name == "timeout" {
			o.Timeout = 20 * time.Millisecond
		}
		task := runlane.NewTask(runlane.TaskID("secret."+strings.ReplaceAll(name, " ", "-")), o)
		s.tasks[name] = task
		handlers = append(handlers, task.Handle(func(ctx context.Context, a *runlane.Attempt, p secret) error {
			if !strings.Contains(p.Text, mark) {
				s.t.Errorf("%s got %q", name, p.Text)
			}
			a.Logger().InfoContext(ctx, "handled", "attempt", a.Number)
			s.watch.failed(a.SetOutput(secret{"output " + mark}))
			s.watch.failed(a.Progress(ctx, "note "+mark))
			return end(ctx, a)
		}))
	}
	return handlers
}

// options carry marks wherever an application may put its own text.
func options() *runlane.TriggerOptions {
	return &runlane.TriggerOptions{
		Meta: map[string]string{"meta": "meta " + mark}, TraceCarrier: map[string]string{"traceparent": "trace " + mark, "key " + mark: "x"},
	}
}

func (s *stage) trigger(task *runlane.Task[secret], text string, o *runlane.TriggerOptions) *runlane.TriggerResult {
	s.t.Helper()
	for range 20 { // an answer that gets lost is asked for again: the key makes it the same run
		result, err := s.Trigger(s.t.Context(), task.With(secret{text}), o)
		if err == nil {
			s.ids = append(s.ids, result.Run.ID)
			return result
		}
		s.watch.failed(err)
		if !errors.Is(err, runlane.ErrStorageUnavailable) && !errors.Is(err, runlane.ErrStorageConflict) {
			s.t.Fatal(err)
		}
	}
	s.t.Fatal("nothing could be triggered")
	return nil
}

// cancel cancels a run that waits. A fault may come before the commit, and then it is done again.
func (s *stage) cancel(id runlane.RunID) {
	s.t.Helper()
	for range 20 {
		_, err := s.Runs().Cancel(s.t.Context(), id, &core.ChangeOptions{Reason: "not any more " + mark})
		s.watch.failed(err)
		run, err := s.Runs().Get(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if run.Status == runlane.StatusCancelled {
			return
		}
	}
	s.t.Fatal("nothing could be cancelled")
}

// refusals are calls that cannot be accepted.
func (s *stage) refusals() {
	t, ctx, ok := s.t, s.t.Context(), s.tasks["success"]
	raw := runlane.NewTask[json.RawMessage]("secret.raw", nil)
	try := func(what string, call runlane.Call, o *runlane.TriggerOptions) {
		t.Helper()
		_, err := s.Trigger(ctx, call, o)
		s.watch.refused(t, what, err)
	}
	try("a payload that is no JSON", raw.With(json.RawMessage(`{"`+mark+`":`)), nil)
	try("a payload that is too long", raw.With(json.RawMessage(`"`+strings.Repeat(mark, 1<<20)+`"`)), nil)
	try("a key with a control character", ok.With(secret{mark + "\x00"}), nil)
	try("a key that is too long", ok.With(secret{strings.Repeat(mark, 200)}), nil)
	try("meta that is no UTF-8", ok.With(secret{mark}), &runlane.TriggerOptions{Meta: map[string]string{mark: mark + "\xff"}})
	try("meta that is too long", ok.With(secret{mark}), &runlane.TriggerOptions{Meta: map[string]string{mark: strings.Repeat(mark, 1000)}})
	try("a trace that is no UTF-8", ok.With(secret{mark}), &runlane.TriggerOptions{TraceCarrier: map[string]string{"a": mark + "\xff"}})
	held := s.trigger(s.tasks["release"], "held "+mark, nil)
	try("a singleton key that is held", s.tasks["release"].With(secret{"held " + mark}), &runlane.TriggerOptions{IdempotencyKey: "another " + mark})
	try("a payload that differs", s.tasks["release"].With(secret{"other " + mark}),
		&runlane.TriggerOptions{IdempotencyKey: "idempotency held " + mark, StrictPayload: true})
	_, err := s.Runs().Cancel(ctx, held.Run.ID, &core.ChangeOptions{Reason: mark + "\xff"})
	s.watch.refused(t, "a reason that is no UTF-8", err)
	_, err = s.Runs().List(ctx, &core.ListOptions{After: runlane.Cursor(mark)})
	s.watch.refused(t, "a cursor", err)
	_, err = s.Runs().FindActive(ctx, ok.Definition().ID, "not held "+mark)
	s.watch.refused(t, "a key that no run holds", err)
	_, err = s.Runs().FindCurrent(ctx, ok.Definition().ID, mark+"\x00")
	s.watch.refused(t, "a key that cannot be", err)
	_, err = s.tasks["success"].Decode([]byte(`{"text":{"` + mark + `":1}}`))
	s.watch.refused(t, "a payload that does not decode", err)
}

// messages are what another program put into the queue.
func (s *stage) messages() {
	const poison = `{"v":1,"environment":"default","runId":"run_1","queue":"secrets","requestedAt":"` + mark + `","traceCarrier":{"` + mark + `":"` + mark + `"}}`
	_, err := sqstransport.ParseMessage(poison)
	s.watch.refused(s.t, "a poison message", err)
	w := lane.Wakeup{
		RunKey: lane.RunKey{Environment: "elsewhere", RunID: s.ids[0]}, Queue: "secrets", RequestedAt: noon,
		TraceCarrier: map[string]string{"traceparent": mark},
	}
	_, err = s.ExecuteDelivery(s.t.Context(), w, nil)
	s.watch.refused(s.t, "a wakeup of another environment", err)
	response, err := functions.Bridge(s.Runtime)(s.t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "poison", Body: poison, EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:secrets"},
		{MessageId: "text", Body: mark, EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:secrets"},
	}})
	if err != nil || len(response.BatchItemFailures) != 2 {
		s.t.Errorf("poison messages were answered with %v, %v", response, err)
	}
}

// finish works until no run moves any more.
func (s *stage) finish() {
	for range 40 {
		_, err := s.Tick(s.t.Context(), nil)
		s.watch.failed(err)
		s.watch.failed(s.Work(s.t.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
		page, err := s.Runs().List(s.t.Context(), &core.ListOptions{RunFilter: core.RunFilter{Statuses: active()}})
		s.watch.failed(err)
		if err == nil && len(page.Items) == 0 {
			return
		}
		s.clock.advance(2 * time.Minute)
	}
	s.t.Error("there are runs that do not end")
}

func active() (statuses []runlane.Status) {
	for _, status := range runlane.Statuses() {
		if status.Active() {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// failures are what is recorded of foreign errors, which an operator is shown too.
func (s *stage) failures() (ended map[runlane.Status]int) {
	ended = map[runlane.Status]int{}
	for _, id := range s.ids {
		run, err := s.Runs().Get(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		ended[run.Status]++
		if !bytes.Contains(run.Payload, []byte(mark)) {
			s.t.Errorf("%s has lost its payload", id)
		}
		if run.TaskID != s.tasks["coded"].Definition().ID { // whose text the handler chose for the record
			s.watch.failed(fmt.Errorf("%s %+v", run.TaskID, run.Failure))
		}
		explained, err := s.Runs().Explain(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		s.watch.failed(fmt.Errorf("%+v", explained.Wait))
	}
	return ended
}

// perform is a whole life of every kind of run, and everything that can be refused.
func (s *stage) perform() map[runlane.Status]int {
	for name, task := range s.tasks {
		if name == "undecodable" {
			for range 2 {
				raw := runlane.NewTask[json.RawMessage](task.Definition().ID, &runlane.TaskOptions[json.RawMessage]{Queue: task.Definition().Queue})
				result, err := s.Trigger(s.t.Context(), raw.With(json.RawMessage(`{"text":["`+mark+`"]}`)), options())
				s.watch.failed(err)
				if err == nil {
					s.ids = append(s.ids, result.Run.ID)
				}
			}
			continue
		}
		s.trigger(task, "payload "+mark, options())
	}
	waits := options()
	waits.Delay = time.Hour
	waiting := s.trigger(s.tasks["success"], "waits "+mark, waits)
	s.refusals()
	s.messages()
	s.cancel(waiting.Run.ID)
	s.finish()
	return s.failures()
}

func check(t *testing.T, hide bool, storage func(now func() time.Time) lane.Storage) {
	t.Helper()
	s := newStage(t, hide, storage)
	slog.SetDefault(s.logger) // where package functions logs
	ended := s.perform()
	for _, status := range []runlane.Status{runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled} {
		if ended[status] == 0 {
			t.Errorf("no run is %s: %v", status, ended)
		}
	}
	kept := s.Lane().Storage.Capabilities().ProcessLocalState
	told := 0
	for _, line := range s.watch.found() {
		if !hide && (ofOutcome(line) || kept && ofRecord(line)) {
			told++
			continue
		}
		t.Errorf("a mark was found: %.300s", line)
	}
	if !hide && told == 0 {
		t.Error("no outcome was logged with the text of its error")
	}
	lines := s.watch.lines.String()
	for _, message := range []string{"run failed", "attempt ended", "handled", "cannot change their visibility"} {
		if !strings.Contains(lines, message) {
			t.Errorf("nothing was logged of %q", message)
		}
	}
	if len(s.watch.errors) < 30 || len(s.watch.metrics) < 50 {
		t.Errorf("only %d errors and %d metrics were seen", len(s.watch.errors), len(s.watch.metrics))
	}
	t.Logf("%d log lines, %d errors, %d metrics, runs %v were looked through", strings.Count(lines, "\n"), len(s.watch.errors), len(s.watch.metrics), ended)
}

// ofOutcome is a log line of an outcome whose attribute error alone has a mark.
func ofOutcome(line string) bool {
	before, _, ok := strings.Cut(line, " error=")
	return ok && !strings.Contains(before, mark) && (strings.Contains(before, `msg="run failed"`) || strings.Contains(before, `msg="attempt ended"`))
}

// ofRecord is what failures notes of a run's failure.
func ofRecord(line string) bool { return strings.HasPrefix(line, "secret.") }

func faultyMemory(t *testing.T) func(now func() time.Time) lane.Storage {
	t.Helper()
	return func(now func() time.Time) lane.Storage {
		return lanetest.FaultyStorage(memlane.NewStorage(&memlane.StorageOptions{Now: now}), lanetest.NewFaultPlan(t, 0,
			lanetest.FaultRule{Kind: lanetest.FaultAfter, Method: "AppendRunEvents", Rate: 0.1, Times: 10},
			lanetest.FaultRule{Kind: lanetest.FaultBefore, Method: "AppendRunEvents", Rate: 0.1, Times: 10},
			lanetest.FaultRule{Kind: lanetest.FaultConflict, Method: "ClaimRunLease", Rate: 0.1, Times: 10},
			lanetest.FaultRule{Kind: lanetest.FaultAfter, Method: "ClaimRunLease", Rate: 0.1, Times: 3}))
	}
}

func faultyTable(t *testing.T) func(now func() time.Time) lane.Storage {
	t.Helper()
	table := awstest.Table(t, awstest.DynamoDB(t))
	_, client := awstest.Front(t, &front.Options{Prompt: true, Refused: 0.1, Lost: 0.1})
	return func(now func() time.Time) lane.Storage {
		return awstest.Unlimited{Storage: dynamostore.New(client, table, &dynamostore.Options{Now: now, RequestTimeout: awstest.RequestTimeout})}
	}
}

// Not parallel, like the next ones: package functions logs to the default logger, which is one for the whole process.
//
// With the texts of errors hidden there is no mark anywhere.
func TestMarks_Memlane_NothingConfidentialIsLoggedOrToldOrCounted(t *testing.T) {
	check(t, true, faultyMemory(t))
}

func TestMarks_DynamoDB_NothingConfidentialIsLoggedOrToldOrCounted(t *testing.T) {
	check(t, true, faultyTable(t))
}

// By default the line of an outcome has the text of its error, and so has the run where this process alone has the state. Nothing else
// confidential is anywhere, and on DynamoDB no run has such a text.
func TestMarks_Memlane_ErrorTextsStandInLinesOfOutcomesAndInRunsAlone(t *testing.T) {
	check(t, false, faultyMemory(t))
}

func TestMarks_DynamoDB_ErrorTextsStandInLinesOfOutcomesAlone(t *testing.T) {
	check(t, false, faultyTable(t))
}

// A program that encrypts its payloads does not want them quoted: its errors are hidden, on the embedded lane and in the log too.
func TestMarks_WithACodec_ErrorTextsAreHidden(t *testing.T) {
	t.Parallel()
	w := &watch{}
	task := runlane.NewTask[string]("quoting", nil)
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
		Codec: hostileCodec{}, Logger: slog.New(slog.NewTextHandler(w, nil)),
		Handlers: []runlane.Handler{task.Handle(func(_ context.Context, _ *runlane.Attempt, payload string) error { return errors.New(payload) })},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	result, err := rt.RunNow(t.Context(), task.With(mark), nil)
	if err != nil || result.Run.Failure.Message != "Task failed." || len(w.found()) > 0 || !strings.Contains(w.lines.String(), "run failed") {
		t.Errorf("%+v, %v, log %q", result, err, w.lines.String())
	}
}
