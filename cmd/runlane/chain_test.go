package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqlitelane"
)

var (
	chainKeyed = runlane.NewTask("chain.keyed", &runlane.TaskOptions[string]{
		IdempotencyKey: func(s string) string { return s }, IdempotencyTTL: 24 * time.Hour,
	})
	chainBad  = runlane.NewTask[string]("chain.bad", nil)
	chainLine = runlane.NewTask("chain.line", &runlane.TaskOptions[string]{
		Queue: runlane.Queue{Name: "line", Concurrency: 1}, SingletonKey: func(s string) string { return s },
	})
	chainAsks   = runlane.NewTask[string]("chain.asks", nil)
	chainChild  = runlane.NewFunc[int, int]("chain.child", nil)
	chainCaller = runlane.NewTask[string]("chain.caller", nil)

	chainFirst = runlane.NewSignal[string]("first")
	chainThen  = runlane.NewSignal[string]("then")
)

// stop is a lane of the chain, with the program on it.
type stop struct {
	*core.Runtime

	t     *testing.T
	ahead atomic.Int64 // of its clock
}

func (p *stop) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

func (p *stop) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func newStop(t *testing.T, open func(now func() time.Time) (*lane.Lane, error)) *stop {
	t.Helper()
	p := &stop{t: t}
	l, err := open(p.now)
	p.must(err)
	p.Runtime, err = core.Open(t.Context(), l, &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		World:  &core.World{Now: p.now},
		Handlers: []runlane.Handler{
			chainKeyed.Handle(func(ctx context.Context, a *runlane.Attempt, s string) error {
				n, err := runlane.Step(ctx, a, "count", func(context.Context) (int, error) { return len(s), nil })
				return errors.Join(err, a.SetOutput(n))
			}),
			chainBad.Handle(func(context.Context, *runlane.Attempt, string) error {
				return runlane.Permanent(errors.New("bad"))
			}),
			chainLine.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
			chainAsks.Handle(asksTwice),
			chainChild.Handle(func(_ context.Context, a *runlane.Attempt, n int) (int, error) {
				if n == 2 && a.Number == 1 {
					return 0, runlane.Release(time.Hour, "later")
				}
				return n, nil
			}),
			chainCaller.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
				numbers, err := runlane.CallAll(ctx, a, chainChild, []int{1, 2}, nil)
				if err != nil {
					return err
				}
				return a.SetOutput(numbers[0].Value + numbers[1].Value)
			}),
		},
		Schedules: []runlane.Schedule{{
			ID: "yearly", When: runlane.Every(365 * 24 * time.Hour), Call: chainKeyed.With("yearly"),
		}},
	})
	p.must(err)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// asksTwice waits for two signals, one after the other.
func asksTwice(ctx context.Context, a *runlane.Attempt, _ string) error {
	first, err := chainFirst.Wait(ctx, a, nil)
	if err != nil {
		return err
	}
	then, err := chainThen.Wait(ctx, a, nil)
	if err != nil {
		return err
	}
	return a.SetOutput(first + " and " + then)
}

func inMemory(now func() time.Time) (*lane.Lane, error) {
	l := memlane.New()
	l.Storage = memlane.NewStorage(&memlane.StorageOptions{Now: now})
	return l, nil
}

func (p *stop) trigger(id runlane.RunID, call runlane.Call, options runlane.TriggerOptions) {
	p.t.Helper()
	options.RunID = id
	_, err := p.Trigger(p.t.Context(), call, &options)
	p.must(err)
}

// drain executes what can be, and ticks between.
func (p *stop) drain() {
	p.t.Helper()
	for range 3 {
		_, err := p.Tick(p.t.Context(), nil)
		p.must(err)
		p.must(p.Work(p.t.Context(), &core.WorkOptions{Drain: true, NoTick: true}))
	}
}

// fill makes runs of every kind that no attempt executes.
func (p *stop) fill() {
	p.t.Helper()
	p.trigger("kept", chainKeyed.With("kept"), runlane.TriggerOptions{})
	p.trigger("reset", chainKeyed.With("reset"), runlane.TriggerOptions{})
	p.trigger("failed", chainBad.With("x"), runlane.TriggerOptions{})
	p.trigger("asks", chainAsks.With(""), runlane.TriggerOptions{})
	p.trigger("caller", chainCaller.With(""), runlane.TriggerOptions{})
	over := runlane.NewFlow("over")
	bad := over.Add("bad", chainBad.With("x"), nil)
	over.Add("undo", chainKeyed.With("z"), &runlane.NodeOptions{After: []runlane.Node{bad}, If: runlane.IfFailed})
	open := runlane.NewFlow("open")
	asks := open.Add("asks", chainAsks.With(""), nil)
	open.Add("after", chainKeyed.With("after"), &runlane.NodeOptions{After: []runlane.Node{asks}})
	for _, f := range []*runlane.Flow{over, open} {
		_, err := p.StartFlow(p.t.Context(), f, nil)
		p.must(err)
	}
	p.drain()
	p.must(p.Signal(p.t.Context(), "asks", chainFirst.With("a"), nil))
	p.drain()
	p.must(p.IdempotencyKeys().Reset(p.t.Context(), "chain.keyed", "reset"))
	p.trigger("queued", chainKeyed.With("queued"), runlane.TriggerOptions{})
	p.trigger("later", chainBad.With("later"), runlane.TriggerOptions{Delay: 2 * time.Hour})
	p.trigger("line 1", chainLine.With("1"), runlane.TriggerOptions{})
	p.trigger("line 2", chainLine.With("2"), runlane.TriggerOptions{})
}

// export is what the place has, folded, a line each, without when that was.
func (p *stop) export() (file []byte, lines []string) {
	p.t.Helper()
	var to bytes.Buffer
	_, err := p.Export(p.t.Context(), &to, nil)
	p.must(err)
	lines = strings.Split(strings.TrimSpace(to.String()), "\n")
	lines = lines[1 : len(lines)-1] // not the head and the end
	for i, line := range lines {    // each storage names events in its way
		lines[i] = eventID.ReplaceAllString(line, `{"sequence"`)
	}
	slices.Sort(lines) // runs of one millisecond have no order
	return to.Bytes(), lines
}

func (p *stop) imports(file []byte) {
	p.t.Helper()
	_, err := p.Import(p.t.Context(), bytes.NewReader(file))
	p.must(err)
	again, err := p.Import(p.t.Context(), bytes.NewReader(file))
	p.must(err)
	if again.Written != 0 {
		p.t.Errorf("a second import wrote %+v", again)
	}
	p.sound()
}

// sound wants every invariant of the storage held.
func (p *stop) sound() {
	p.t.Helper()
	page, err := p.Lane().Storage.Check(p.t.Context(), &lane.PageQuery{
		Environment: p.Environment(), Limit: runlane.MaxPageLimit,
	})
	if err != nil || len(page.Items) > 0 {
		p.t.Errorf("violations: %+v, %v", page, err)
	}
}

// goesOn answers everything, and wants everything to end as it would have where it began.
func (p *stop) goesOn() {
	p.t.Helper()
	for payload, owned := range map[string]bool{"kept": true, "reset": false, "queued": true} {
		made, err := p.Trigger(p.t.Context(), chainKeyed.With(payload), nil)
		p.must(err)
		if (made.Outcome == runlane.TriggerReturnedExisting) != owned || made.PayloadDiffers {
			p.t.Errorf("%s: %+v", payload, made)
		}
	}
	p.must(p.Signal(p.t.Context(), "asks", chainThen.With("b"), nil))
	for _, value := range []runlane.SignalValue{chainFirst.With("c"), chainThen.With("d")} {
		p.must(p.SignalNode(p.t.Context(), runlane.Node{Flow: "open", Name: "asks"}, value, nil))
	}
	for range 8 {
		p.drain()
		p.ahead.Add(int64(20 * time.Minute))
	}
	outputs := map[runlane.RunID]string{"asks": `"a and b"`, "caller": "3", "kept": "4", "queued": "6"}
	for run, err := range p.Runs().All(p.t.Context(), nil) {
		p.must(err)
		want := runlane.StatusSucceeded
		if run.TaskID == "chain.bad" {
			want = runlane.StatusFailed
		}
		if run.Status != want {
			p.t.Errorf("%s of %s is %s", run.ID, run.TaskID, run.Status)
		}
		whole, err := p.Runs().Get(p.t.Context(), run.ID)
		p.must(err)
		if output := outputs[run.ID]; output != "" && output != string(whole.Output) {
			p.t.Errorf("the output of %s is %s", run.ID, whole.Output)
		}
	}
	ends := map[runlane.FlowID]runlane.FlowStatus{"over": runlane.FlowFailed, "open": runlane.FlowCompleted}
	for id, want := range ends {
		state, err := p.Flows().Get(p.t.Context(), id)
		p.must(err)
		if state.Status != want {
			p.t.Errorf("flow %s is %s", id, state.Status)
		}
	}
	p.sound()
}

// An environment goes from memory to a file, to DynamoDB and back, and is the same at each place. There it goes on.
func TestMove_FromPlaceToPlaceAndBack_IsTheSame(t *testing.T) {
	t.Parallel()
	file := newStop(t, func(func() time.Time) (*lane.Lane, error) {
		return sqlitelane.Open(t.Context(), filepath.Join(t.TempDir(), "chain.db"), nil)
	})
	places := []*stop{file}
	if !testing.Short() {
		client := awstest.DynamoDB(t)
		table := awstest.Table(t, client)
		places = append(places, newStop(t, func(now func() time.Time) (*lane.Lane, error) {
			storage := dynamostore.New(client, table, &dynamostore.Options{
				Now: now, RequestTimeout: awstest.RequestTimeout,
			})
			return lane.New(storage, memlane.NewTransport(nil), nil)
		}))
	}
	places = append(places, newStop(t, func(func() time.Time) (*lane.Lane, error) {
		return sqlitelane.Open(t.Context(), filepath.Join(t.TempDir(), "back.db"), nil)
	}), newStop(t, inMemory))

	from := newStop(t, inMemory)
	from.fill()
	text, before := from.export()
	for n, to := range places {
		to.imports(text)
		var lines []string
		text, lines = to.export()
		same := lines
		if n == 0 { // who waits for runs that it called goes on where it is imported, to call again
			same = withoutResumption(t, lines, "caller")
			before = withoutReservations(before)
		}
		for i := range max(len(before), len(same)) {
			if i >= len(before) || i >= len(same) || before[i] != same[i] {
				t.Fatalf("place %d has %d lines of %d, and another line %d:\n%s", n, len(same), len(before), i,
					strings.Join(slices.Concat(before[i:min(i+1, len(before))], same[i:min(i+1, len(same))]), "\n"))
			}
		}
		before = lines
	}
	places[len(places)-1].goesOn()
}

var eventID = regexp.MustCompile(`\{"id":"[^"]*","sequence"`)

var reservation = regexp.MustCompile(`,"dispatchExpiresAt":"[^"]*"`)

// withoutReservations are runs that leave the slots behind which are reserved for them.
func withoutReservations(lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		lines[i] = reservation.ReplaceAllString(line, "")
	}
	return lines
}

// withoutResumption takes the last two events from a run's line, which have to be that it goes on.
func withoutResumption(t *testing.T, lines []string, id runlane.RunID) []string {
	t.Helper()
	lines = slices.Clone(lines)
	for i := range lines {
		var line struct {
			Run struct {
				ID     runlane.RunID     `json:"runId"`
				Events []json.RawMessage `json:"events"`
			} `json:"run"`
		}
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
			t.Fatal(err)
		}
		if line.Run.ID != id {
			continue
		}
		for _, want := range []string{"run.delivery_requested", "run.resumed"} {
			last := string(line.Run.Events[len(line.Run.Events)-1])
			if !strings.Contains(last, want) {
				t.Errorf("the last event of %s is %s, not %s", id, last, want)
			}
			lines[i] = strings.Replace(lines[i], ","+last, "", 1)
			line.Run.Events = line.Run.Events[:len(line.Run.Events)-1]
		}
	}
	return lines
}
