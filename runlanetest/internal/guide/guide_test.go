package guide_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/runlanetest"
	"github.com/runlane/runlane-go/runlanetest/internal/guide"
)

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// mail is a Mailer whose mailboxes are there after a number of questions, and whose server fails a number of times.
type mail struct {
	notReady, failures int
	sent               []string
}

func (m *mail) Ready(string) bool {
	m.notReady--
	return m.notReady < 0
}

func (m *mail) Send(_ context.Context, userID string) error {
	if m.failures--; m.failures >= 0 {
		return errors.New("connection reset")
	}
	m.sent = append(m.sent, userID)
	return nil
}

// bank answers one error after the other, then takes the money.
type bank struct {
	errs    []error
	charges map[string]int64
}

func (b *bank) Charge(_ context.Context, key string, cents int64) (string, error) {
	if len(b.errs) > 0 {
		err := b.errs[0]
		b.errs = b.errs[1:]
		return "", err
	}
	if b.charges == nil {
		b.charges = map[string]int64{}
	}
	b.charges[key] = cents
	return "receipt of " + key, nil
}

func TestSendWelcome_WaitsForTheMailbox_AndRetriesTheServer(t *testing.T) {
	t.Parallel()
	m := &mail{notReady: 1, failures: 1}
	app := &guide.App{Mail: m}
	run := runlanetest.Run(t, guide.SendWelcome.Handle(app.SendWelcome), guide.SendWelcome.With(guide.Welcome{Tenant: "a", UserID: "u_1"}))
	runlanetest.RequireTransitions(t, run,
		"triggered", "attempt 1 started", "attempt 1 released for 10m: mailbox is not provisioned",
		"attempt 2 started", "attempt 2 failed: task_failed, retry in 10s",
		"attempt 3 started", "attempt 3 succeeded")
	if !slices.Equal(m.sent, []string{"u_1"}) || run.ConcurrencyKey != "a" || run.Failure.Message != "" {
		t.Errorf("sent %q, run %+v", m.sent, run.Run)
	}
}

func TestChargeCard_Outcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs []error
		want []string
	}{
		"declined": {[]error{guide.ErrDeclined}, []string{"triggered", "attempt 1 started", "attempt 1 failed: card_declined"}},
		"busy": {[]error{fmt.Errorf("later: %w", guide.ErrBusy)}, []string{
			"triggered", "attempt 1 started", "attempt 1 failed: task_failed, retry in 1m", "attempt 2 started", "attempt 2 succeeded",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := &guide.App{Bank: &bank{errs: c.errs}}
			run := runlanetest.Run(t, guide.ChargeCard.Handle(app.ChargeCard), guide.ChargeCard.With(guide.Charge{OrderID: "o_1", Cents: 5}))
			runlanetest.RequireTransitions(t, run, c.want...)
		})
	}
}

func TestCharge_OldPayloads_AreStillRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]guide.Charge{
		`{"orderId":"o_1","euros":12}`:   {OrderID: "o_1", Cents: 1200},
		`{"orderId":"o_1","cents":1250}`: {OrderID: "o_1", Cents: 1250},
	} {
		got, err := guide.ChargeCard.Decode([]byte(text))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if _, err := guide.ChargeCard.Decode([]byte(`{"orderId":7}`)); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("another type: %v", err)
	}
}

func TestImportFile_IsAChain_WhoseStepsHappenOnce(t *testing.T) {
	t.Parallel()
	var steps []int
	crash := true
	app := &guide.App{Lines: func(_ context.Context, _ string, from int) (int, error) {
		steps = append(steps, from)
		if from == 200 {
			return 0, nil
		}
		return from + 100, nil
	}}
	rt := runlanetest.New(t, &runlanetest.Options{
		Handlers: app.Handlers(),
		Middleware: []runlane.Middleware{func(ctx context.Context, a *runlane.Attempt, next func(context.Context) error) error {
			err := next(ctx)
			if crash && err == nil {
				crash = false
				return errors.New("the outcome was lost: everything was done, and is done again")
			}
			return err
		}},
	})
	rt.MustTrigger(guide.ImportFile.With(guide.Import{File: "a.csv"}), nil)
	rt.FinishAll()
	if !slices.Equal(steps, []int{0, 100, 200, 0}) { // the first step is retried a second later, when all others are done
		t.Errorf("steps were %v", steps)
	}
	if runs := rt.Histories("files.import"); len(runs) != 3 {
		t.Errorf("%d runs", len(runs))
	}
}

func TestImportFile_Cancelled_CleansUp(t *testing.T) {
	t.Parallel()
	var rt *runlanetest.Runtime
	app := &guide.App{Lines: func(ctx context.Context, _ string, _ int) (int, error) {
		if _, err := rt.Runs().Cancel(ctx, runlane.AttemptFrom(ctx).Run.ID, &core.ChangeOptions{Reason: "wrong file"}); err != nil {
			return 0, err
		}
		<-ctx.Done()
		return 0, ctx.Err()
	}}
	rt = runlanetest.New(t, &runlanetest.Options{Handlers: app.Handlers()})
	run := rt.Finish(rt.MustTrigger(guide.ImportFile.With(guide.Import{File: "a.csv"}), nil).ID)
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "cancellation requested: wrong file", "cancelled")
}

func TestCloseMonth_WaitsForItsChild(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: new(guide.App).Handlers()})
	run := rt.Finish(rt.MustTrigger(guide.CloseMonth.With("2026-01"), nil).ID)
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started",
		"attempt 1 released until children months.report: waits for a run of months.report", "resumed by children months.report",
		"attempt 2 started", "attempt 2 succeeded")
	if string(run.Output) != "7" || len(run.Children) != 1 || run.Children[0].TaskID != "months.report" {
		t.Errorf("output %s, children %+v", run.Output, run.Children)
	}
}

func TestCloseMonth_WhoseReportFails_FailsWithoutAskingForAnother(t *testing.T) {
	t.Parallel()
	app := &guide.App{}
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{
		guide.CloseMonth.Handle(app.CloseMonth),
		guide.MakeReport.Handle(func(context.Context, *runlane.Attempt, string) (int, error) {
			return 0, runlane.Permanent(errors.New("no figures"))
		}),
	}})
	run := rt.Finish(rt.MustTrigger(guide.CloseMonth.With("2026-01"), nil).ID)
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started",
		"attempt 1 released until children months.report: waits for a run of months.report", "resumed by children months.report",
		"attempt 2 started", "attempt 2 failed: run_failed")
	if n := len(rt.Histories("months.report")); n != 1 {
		t.Errorf("%d reports", n)
	}
}

func TestQueueMail_AdmitsFourOfATenant(t *testing.T) {
	t.Parallel()
	m := &mail{}
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: (&guide.App{Mail: m}).Handlers()})
	reserved := 0
	for i := range 6 {
		run := rt.MustTrigger(guide.SendWelcome.With(guide.Welcome{Tenant: "a", UserID: fmt.Sprint(i)}), nil)
		if !run.DispatchExpiresAt.IsZero() {
			reserved++
		}
	}
	if reserved != guide.Mail.Concurrency {
		t.Errorf("%d slots were reserved", reserved)
	}
	rt.FinishAll()
	if len(m.sent) != 6 {
		t.Errorf("sent %q", m.sent)
	}
}

func TestImportFile_WhoseWorkerStops_IsPutBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(runlane.ErrShutdown)
	app := &guide.App{Lines: func(ctx context.Context, _ string, _ int) (int, error) { return 0, ctx.Err() }}
	a := runlanetest.NewAttempt(t, nil)
	if err := app.ImportFile(ctx, a.Attempt, guide.Import{File: "a.csv"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
