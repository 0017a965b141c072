package demo

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a demo to be played in a test.
type stage struct {
	Options
	stdout, stderr output
}

// output may be written to and read at once.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func newStage(t *testing.T, engine Engine, lines ...string) *stage {
	t.Helper()
	s := &stage{Options: Options{Engine: engine, Seed: 1, State: t.TempDir()}}
	s.Stdout, s.Stderr = &s.stdout, &s.stderr
	if lines != nil {
		s.Input = filepath.Join(t.TempDir(), "input.ndjson")
		if err := os.WriteFile(s.Input, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *stage) play(t *testing.T) *Summary {
	t.Helper()
	summary, err := Run(t.Context(), s.Options)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr.String())
	}
	return summary
}

func (s *stage) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(s.stdout.String(), "\n"), "\n")
	return lines[len(lines)-1]
}

func inMemory() Engine {
	return InMemory(func(context.Context) (*lane.Lane, error) { return memlane.New(), nil })
}

func webhook(id string) string {
	return fmt.Sprintf(`{"id":%q,"event":"push","payload":{"of": "%s"}}`, id, id)
}

func manyWebhooks(n int) (lines []string) {
	for i := range n {
		lines = append(lines, webhook(fmt.Sprint("delivery-", i)))
	}
	return lines
}

func TestRun_RealWebhooks_AreAllDelivered(t *testing.T) {
	t.Parallel()
	s := newStage(t, inMemory())
	summary := s.play(t)
	if want := "demo: 329 runs, 329 succeeded, 0 failed, 0 lost"; s.lastLine() != want || !summary.Complete() {
		t.Errorf("last line %q, want %q; %+v", s.lastLine(), want, summary)
	}
	// The seed decides what fails first; more may fail where the machine is too slow for the sender's patience.
	if r := summary.Receiver; r.Accepted != 329 || r.Unavailable < 20 || r.Throttled < 10 || r.Late < 10 || r.Duplicates < 10 {
		t.Errorf("receiver: %+v", r)
	}
	if !strings.Contains(s.stderr.String(), "329 triggered, 329 ended") {
		t.Errorf("progress:\n%s", s.stderr.String())
	}
}

func TestRun_BadLinesAreNamedAndStopNothing(t *testing.T) {
	t.Parallel()
	huge := `{"id":"huge","event":"push","payload":"` + strings.Repeat("x", runlane.MaxPayloadBytes) + `"}`
	s := newStage(t, inMemory(),
		webhook("a"), `{"id":"b"`, webhook("c"), webhook("a"), huge,
		`{"id":"d","event":"push","payload":  {"a": "<b>", "n": 1.0e2, "s": "\ud800"}  , "endpoint":"elsewhere"}`)
	summary := s.play(t)
	if summary.Runs != 3 || summary.Succeeded != 3 || summary.BadLines != 2 || summary.NotTriggered != 1 || summary.Complete() {
		t.Errorf("%+v", summary)
	}
	for _, want := range []string{
		"skipped: validation_failed: line 2 is not valid JSON", "skipped: validation_failed: line 4 has the id of line 1",
		"not triggered: line 5: validation_failed",
	} {
		if !strings.Contains(s.stderr.String(), want) {
			t.Errorf("%q is not in\n%s", want, s.stderr.String())
		}
	}
	if want := "demo: 3 runs, 3 succeeded, 0 failed, 0 lost"; s.lastLine() != want {
		t.Errorf("last line %q, want %q", s.lastLine(), want)
	}
}

func TestRun_CompressedInput(t *testing.T) {
	t.Parallel()
	s := newStage(t, inMemory(), "")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(webhook("a") + "\n" + webhook("b")))
	_ = w.Close()
	if err := os.WriteFile(s.Input, zipped.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if summary := s.play(t); summary.Succeeded != 2 || !summary.Complete() {
		t.Errorf("%+v", summary)
	}
}

func TestRun_InputThatCannotWork(t *testing.T) {
	t.Parallel()
	missing := newStage(t, inMemory())
	missing.Input = filepath.Join(t.TempDir(), "missing")
	for name, s := range map[string]*stage{
		"missing": missing, "empty": newStage(t, inMemory(), ""), "only bad lines": newStage(t, inMemory(), "bad", "worse"),
	} {
		_, err := Run(t.Context(), s.Options)
		if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrValidationFailed || e.Hint == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRun_RunsThatNeverEnd_AreLost(t *testing.T) {
	t.Parallel()
	idle := inMemory()
	idle.Patience = 50 * time.Millisecond
	idle.Work = func(ctx context.Context, _ *Workplace) error {
		<-ctx.Done()
		return nil
	}
	s := newStage(t, idle, manyWebhooks(3)...)
	if summary := s.play(t); summary.Lost != 3 || summary.Complete() {
		t.Errorf("%+v", summary)
	}
	if want := "demo: 3 runs, 0 succeeded, 0 failed, 3 lost"; s.lastLine() != want {
		t.Errorf("last line %q, want %q", s.lastLine(), want)
	}
}

func TestRun_WorkersThatStop_EndTheDemo(t *testing.T) {
	t.Parallel()
	broken := inMemory()
	broken.Work = func(context.Context, *Workplace) error { return runlane.ErrTransportUnavailable }
	if _, err := Run(t.Context(), newStage(t, broken, manyWebhooks(3)...).Options); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("got %v", err)
	}
}

// lasting is a lane in memory that outlives a runtime, as AWS does.
type lasting struct {
	storage   lastingStorage
	transport lastingTransport
}

type lastingStorage struct{ lane.Storage }

func (lastingStorage) Start(context.Context) error                      { return nil }
func (lastingStorage) Close(context.Context) error                      { return nil }
func (s lastingStorage) Unwrap() lane.Storage                           { return s.Storage }
func (lastingTransport) Start(context.Context, lane.StartOptions) error { return nil }
func (lastingTransport) Close(context.Context) error                    { return nil }
func (tr lastingTransport) Unwrap() lane.Transport                      { return tr.Transport }

type lastingTransport struct{ lane.Transport }

func newLasting(t *testing.T) *lasting {
	t.Helper()
	l := &lasting{lastingStorage{memlane.NewStorage(nil)}, lastingTransport{memlane.NewTransport(nil)}}
	if err := errors.Join(l.storage.Storage.Start(t.Context()), l.transport.Transport.Start(t.Context(), lane.StartOptions{})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = errors.Join(l.transport.Transport.Close(context.Background()), l.storage.Storage.Close(context.Background()))
	})
	return l
}

func (l *lasting) engine() Engine {
	e := inMemory()
	e.Name, e.Durable = "lasting", true
	e.Lane = func(context.Context) (*lane.Lane, error) { return lane.New(l.storage, l.transport, nil) }
	return e
}

func TestRun_Resumed_FinishesWhatWasInterrupted(t *testing.T) {
	t.Parallel()
	const runs = 60
	l := newLasting(t)
	first := newStage(t, l.engine(), manyWebhooks(runs)...)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	attempts := 0
	first.Engine.Work = func(ctx context.Context, w *Workplace) error {
		return w.Application.Work(ctx, &core.WorkOptions{Concurrency: 1})
	}
	first.Engine.Lane = func(context.Context) (*lane.Lane, error) {
		return lane.New(countingStorage{l.storage, func() {
			if attempts++; attempts == runs/2 {
				interrupt()
			}
		}}, l.transport, nil)
	}
	_, err := Run(ctx, first.Options)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrOperationCancelled || !strings.Contains(e.Hint, "RESUME=1") {
		t.Fatalf("interrupted: %v", err)
	}

	second := newStage(t, l.engine())
	second.State, second.Resume, second.Seed = first.State, true, 99 // seed and input are those of the first
	summary := second.play(t)
	if summary.Runs != runs || !summary.Complete() {
		t.Errorf("%+v\n%s", summary, second.stdout.String())
	}
	if r := summary.Receiver; r.Accepted != runs || r.Requests < runs*11/10 {
		t.Errorf("the receiver does not remember both parts: %+v", r)
	}
	here := 0
	for _, run := range summary.runs.ended {
		if run.here {
			here++
		}
	}
	if here == 0 || here > runs*3/4 {
		t.Errorf("the second part executed %d of %d runs", here, runs)
	}
}

// countingStorage calls claimed before each claim.
type countingStorage struct {
	lastingStorage
	claimed func()
}

func (s countingStorage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	s.claimed()
	return s.lastingStorage.ClaimRunLease(ctx, c)
}

func TestRun_AnewOnTheSameLane_DoesNotSeeOldRuns(t *testing.T) {
	t.Parallel()
	l := newLasting(t)
	first := newStage(t, l.engine(), manyWebhooks(5)...)
	first.play(t)
	second := newStage(t, l.engine())
	second.State, second.Input = first.State, first.Input
	summary := second.play(t)
	if r := summary.Receiver; !summary.Complete() || r.Accepted != 5 || len(summary.runs.ended) != 5 || !summary.runs.ended[0].here {
		t.Errorf("%+v", summary)
	}
}

func TestRun_ResumeThatCannotWork(t *testing.T) {
	t.Parallel()
	l := newLasting(t)
	other := newStage(t, l.engine(), manyWebhooks(2)...)
	other.play(t)
	if err := os.WriteFile(other.Input, []byte(webhook("new")), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := newStage(t, l.engine(), manyWebhooks(2)...)
	damaged.play(t)
	if err := os.WriteFile(filepath.Join(damaged.State, "lasting", stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stage *stage
		code  runlane.ErrorCode
	}{
		"in memory":     {newStage(t, inMemory()), runlane.ErrValidationFailed},
		"nothing there": {newStage(t, l.engine()), runlane.ErrConfigurationInvalid},
		"other input":   {other, runlane.ErrConfigurationInvalid},
		"damaged state": {damaged, runlane.ErrConfigurationInvalid},
	} {
		c.stage.Resume = true
		_, err := Run(t.Context(), c.stage.Options)
		if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != c.code || e.Hint == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRun_InTheFolderOfAnotherDemo_TouchesNothing(t *testing.T) {
	t.Parallel()
	l := newLasting(t)
	s := newStage(t, l.engine(), manyWebhooks(2)...)
	running := &demo{folder: filepath.Join(s.State, "lasting")}
	kept := filepath.Join(running.folder, ledgerFile)
	err := errors.Join(os.MkdirAll(running.folder, 0o750), os.WriteFile(kept, []byte("{}\n"), 0o600), running.holdFolder())
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), s.Options)
	if !errors.Is(err, runlane.ErrConfigurationInvalid) || !strings.Contains(err.Error(), "another demo runs") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	running.close()
	s.play(t)
}
