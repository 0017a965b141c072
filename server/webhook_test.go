package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// receiver takes webhooks without a network, so that time is virtual.
type receiver struct {
	mu     sync.Mutex
	down   bool
	bodies map[string]string // of requests that were taken, by the run that they tell of
	ids    map[string]string // likewise
	taken  int
	tried  int
	faults []error
}

func newReceiver() *receiver { return &receiver{bodies: map[string]string{}, ids: map[string]string{}} }

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried++
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var run struct {
		Kind  string `json:"kind"`
		RunID string `json:"runId"`
	}
	id := request.Header.Get("Webhook-Id")
	want, _ := server.Signature([]string{secret}, id, request.Header.Get("Webhook-Timestamp"), string(body))
	if json.Unmarshal(body, &run) != nil || run.Kind != "run" || request.Header.Get("Webhook-Signature") != want {
		r.faults = append(r.faults, fmt.Errorf("%v: %s", request.Header, body))
	}
	if before := r.ids[run.RunID]; before != "" && before != id {
		r.faults = append(r.faults, fmt.Errorf("%s comes as %s and %s", run.RunID, before, id))
	}
	r.ids[run.RunID] = id
	answer := &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody, Request: request}
	if !r.down {
		answer.StatusCode = 200
		r.bodies[run.RunID] = string(body)
		r.taken++
	}
	return answer, nil
}

func (r *receiver) body(run string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[run]
}

var ending = runlane.NewTask[string]("ending", nil)

// process is a runtime over a shared storage, which executes the task ending.
type process struct {
	*core.Runtime

	hooks *server.Webhooks
	stop  func() // ends the webhooks, and waits
}

// newProcess has the webhooks, unless there are none.
func newProcess(t *testing.T, storage lane.Storage, r *receiver, hooks ...server.Webhook) *process {
	t.Helper()
	p := &process{stop: func() {}}
	handlers := []runlane.Handler{ending.Handle(func(_ context.Context, a *runlane.Attempt, how string) error {
		if how == "fail" {
			return runlane.Permanent(errors.New("as it was asked to"))
		}
		return a.SetOutput("the output")
	})}
	if hooks != nil {
		var err error
		if p.hooks, err = server.NewWebhooksOver(runlane.Fixed(10*time.Second), r, hooks...); err != nil {
			t.Fatal(err)
		}
		p.hooks.Logger = discard
		handlers = append(handlers, p.hooks.Handlers()...)
	}
	l, err := lane.New(storage, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Runtime, err = core.Open(t.Context(), l, &core.Options{Handlers: handlers, Logger: discard}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// begin lets the webhooks run.
func (p *process) begin(t *testing.T) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.hooks.Run(ctx, p.Runtime) }() // ends with ctx
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, errDead) {
			t.Error(err)
		}
	})
	t.Cleanup(p.stop)
	synctest.Wait()
	return p
}

// end makes a run that ends, and lets it end.
func (p *process) end(t *testing.T, id runlane.RunID, how string) {
	t.Helper()
	options := &runlane.TriggerOptions{RunID: id}
	if how == "cancel" {
		options.Delay = 24 * time.Hour
	}
	if _, err := p.Trigger(t.Context(), ending.With(how), options); err != nil {
		t.Fatal(err)
	}
	if how == "cancel" {
		if _, err := p.Runs().Cancel(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	result, err := p.ExecuteDelivery(t.Context(), lane.Wakeup{RunKey: lane.RunKey{RunID: id}}, nil)
	if err != nil || result.Run == nil || !result.Run.Status.Terminal() {
		t.Fatalf("%+v %v", result, err)
	}
}

// lostTime is enough for ticks to find wakeups that were lost: each process has another transport in memory, with which
// they die.
const lostTime = time.Hour

var toldOf = server.Webhook{URL: "https://example.com/", Secrets: []string{secret}}

// show logs the runs of the webhooks.
func (p *process) show(t *testing.T) {
	t.Helper()
	for run, err := range p.Runs().All(context.Background(), nil) {
		if err != nil {
			t.Error(err)
			return
		}
		if run.TaskID == ending.Definition().ID {
			continue
		}
		t.Logf("%+v", run)
		full, err := p.Runs().Get(context.Background(), run.ID)
		t.Logf("%v: %+v", err, full.Failure)
		for event, err := range p.Runs().Events(context.Background(), run.ID, nil) {
			t.Logf("  %v: %s %s %s", err, event.OccurredAt, event.Type(), event.Actor)
		}
	}
}

// judge compares what came with what was to come, once each.
func (r *receiver) judge(t *testing.T, want int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bodies) != want || r.taken != want || len(r.faults) > 0 {
		t.Errorf("%d ends were told by %d requests, want %d: %v", len(r.bodies), r.taken, want, r.faults)
	}
}

func TestWebhooks_TwoProcesses_TellEachEndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, r := memlane.NewStorage(nil), newReceiver()
		one := newProcess(t, storage, r, toldOf).begin(t)
		two := newProcess(t, storage, r, toldOf).begin(t)
		for n := range 30 {
			[]*process{one, two}[n%2].end(t, runlane.RunID(fmt.Sprint("run-", n)), []string{"succeed", "fail", "cancel"}[n%3])
		}
		time.Sleep(3 * time.Hour) // runs that follow the feed end meanwhile, and others go on
		r.judge(t, 30)
		one.end(t, "late", "succeed")
		time.Sleep(time.Minute)
		r.judge(t, 31)
		if body := r.body("run-0"); !strings.Contains(body, `"status":"succeeded"`) || strings.Contains(body, "output") ||
			strings.Contains(body, "payload") || !strings.HasPrefix(body, `{"v":1,"kind":"run","runId":"run-0"`) {
			t.Errorf("the body is %s", body)
		}
		followed := 0
		for run, err := range one.Runs().All(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{TaskID: "runlane.webhook-feed"}}) {
			if err != nil || run.Status != runlane.StatusSucceeded && run.Status.Terminal() || run.Counters.Attempts != 1 {
				t.Errorf("%v: %+v", err, run)
			}
			followed++
		}
		if followed != 4 {
			t.Errorf("%d runs followed the feed for three hours", followed)
		}
	})
}

func TestWebhooks_KnowAnEventForEachTerminalStatus(t *testing.T) {
	t.Parallel()
	known := map[runlane.Status]bool{}
	for _, event := range runlane.EventTypes() {
		if status, ends := server.EndOf(event); ends {
			known[status] = true
		}
	}
	for _, status := range runlane.Statuses() {
		if known[status] != status.Terminal() {
			t.Errorf("an event leads to %s: %t", status, known[status])
		}
	}
}

func TestWebhooks_TellWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		other, failed := toldOf, toldOf
		other.Tasks = []runlane.TaskID{"other"}
		failed.Name, failed.Statuses, failed.Payload = "failed", []runlane.Status{runlane.StatusFailed}, true
		p := newProcess(t, memlane.NewStorage(nil), r, other, failed)
		p.end(t, "before", "fail")
		p.begin(t)
		for _, how := range []string{"succeed", "fail", "cancel"} {
			p.end(t, runlane.RunID(how), how)
		}
		time.Sleep(time.Minute)
		r.judge(t, 1)
		if body := r.body("fail"); !strings.Contains(body, `"payload":"fail"`) || !strings.Contains(body, `"code":"task_failed"`) {
			t.Errorf("the body is %s", body)
		}
	})
}

// What ends while no process has the webhooks is told by the next one, and a delivery that failed goes on there.
func TestWebhooks_ARestart_LosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, r := memlane.NewStorage(nil), newReceiver()
		r.down = true
		first := newProcess(t, storage, r, toldOf).begin(t)
		first.end(t, "tried", "succeed")
		time.Sleep(time.Minute)
		first.stop()
		time.Sleep(48 * time.Hour)
		between := newProcess(t, storage, r)
		between.end(t, "meanwhile", "fail")
		r.mu.Lock()
		tried := r.tried
		r.down = false
		r.mu.Unlock()
		if tried < 3 {
			t.Errorf("%d tries in a minute", tried)
		}
		newProcess(t, storage, r, toldOf).begin(t)
		time.Sleep(2 * time.Minute)
		r.judge(t, 2)
	})
}

// A process dies at any of its writes, and another one goes on.
func TestWebhooks_AProcessDiesAtAnyWrite_NothingIsLost(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		dies := 1 + random.Int64N(60)
		synctest.Test(t, func(t *testing.T) {
			shared, r := memlane.NewStorage(nil), newReceiver()
			newProcess(t, shared, r, toldOf).mustBegin(t)
			world := newProcess(t, shared, r)
			newProcess(t, &mortal{Storage: shared, dies: dies}, r, toldOf).begin(t)
			for n := range 8 {
				world.end(t, runlane.RunID(fmt.Sprint("run-", n)), "succeed")
				time.Sleep(time.Duration(n) * 700 * time.Millisecond)
			}
			newProcess(t, shared, r, toldOf).begin(t)
			time.Sleep(lostTime)
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.bodies) != 8 || len(r.faults) > 0 || r.taken > 8+8 {
				world.show(t)
				t.Errorf("dies at write %d: %d ends were told by %d requests: %v", dies, len(r.bodies), r.taken, r.faults)
			}
		})
	}
}

// mustBegin only begins, as a process that dies right then.
func (p *process) mustBegin(t *testing.T) {
	t.Helper()
	if err := p.hooks.Begin(t.Context(), p.Runtime); err != nil {
		t.Fatal(err)
	}
}

// A run that an outsider triggers tells an end again that is one, and nothing else.
func TestWebhooks_SignTrueEndsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		p := newProcess(t, memlane.NewStorage(nil), r, toldOf).begin(t)
		if _, err := p.Trigger(t.Context(), ending.With("x"), &runlane.TriggerOptions{RunID: "active", Delay: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		active, err := p.Runs().Get(t.Context(), "active")
		if err != nil {
			t.Fatal(err)
		}
		created, _ := json.Marshal(active.CreatedAt)
		for _, payload := range []string{
			`{"webhook":"default","run":"active","created":` + string(created) + `}`,
			`{"webhook":"default","run":"active","created":"2020-01-01T00:00:00Z"}`,
			`{"webhook":"default","run":"absent","body":"forged"}`,
		} {
			call, err := p.CallJSON("runlane.webhook", json.RawMessage(payload))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Trigger(t.Context(), call, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		r.judge(t, 0)
		for run, err := range p.Runs().All(t.Context(), &core.ListOptions{RunFilter: core.RunFilter{TaskID: "runlane.webhook"}}) {
			if err != nil || run.Status != runlane.StatusFailed || run.FailureCode != server.ErrWebhookNotDelivered {
				t.Errorf("%v: %+v", err, run)
			}
		}
	})
}

// forgetful is a storage whose feed keeps nothing from before now, once that is asked for.
type forgetful struct {
	lane.Storage

	from atomic.Int64
}

func (f *forgetful) ReadFeed(ctx context.Context, q *lane.FeedQuery) (*lane.FeedPage, error) {
	if q.After.Number < f.from.Load() {
		return nil, lane.FeedLost()
	}
	return f.Storage.ReadFeed(ctx, q)
}

func TestWebhooks_ACursorThatIsTooOld_LosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory, r := memlane.NewStorage(nil), newReceiver()
		storage := &forgetful{Storage: memory}
		first := newProcess(t, storage, r, toldOf).begin(t)
		first.end(t, "before", "succeed")
		time.Sleep(time.Minute)
		first.stop()
		between := newProcess(t, storage, r)
		for n := range 5 {
			between.end(t, runlane.RunID(fmt.Sprint("meanwhile-", n)), "fail")
		}
		now, err := memory.BeginFeed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		storage.from.Store(now.Number)
		next := newProcess(t, storage, r, toldOf).begin(t)
		next.end(t, "after", "cancel")
		time.Sleep(lostTime)
		r.judge(t, 7)
	})
}

func TestWebhooks_WithoutAFeed_DoNotBegin(t *testing.T) {
	t.Parallel()
	p := newProcess(t, withoutFeed{memlane.NewStorage(nil)}, newReceiver(), toldOf)
	err := p.hooks.Run(t.Context(), p.Runtime)
	if runlane.CodeOf(err) != runlane.ErrCapabilityUnsupported || !strings.Contains(err.Error(), "order of commits") {
		t.Errorf("%v", err)
	}
	if err := p.hooks.Begin(t.Context(), nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("%v", err)
	}
}
