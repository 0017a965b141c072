package costs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/data"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/tools/costs"
)

var update = flag.Bool("update", false, "write what was measured into docs/prices.md")

const document = "../../../docs/prices.md"

// many is how many runs a row is the average of, where runs are not alike or share something.
const many = 100

type payload struct {
	Text string `json:"text"`
}

var (
	once    = runlane.NewTask[payload]("costs.once", nil)
	twice   = runlane.NewTask("costs.twice", &runlane.TaskOptions[payload]{Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Minute), NoJitter: true}})
	later   = runlane.NewTask("costs.later", &runlane.TaskOptions[payload]{Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Hour), NoJitter: true}})
	waiting = runlane.NewTask[payload]("costs.waiting", nil)
	bounded = runlane.NewTask("costs.bounded", &runlane.TaskOptions[payload]{Queue: runlane.Queue{Name: "narrow", Concurrency: 1}})
	timed   = runlane.NewTask[payload]("costs.timed", nil)
	order   = runlane.NewTask[payload]("costs.order", nil)
	asking  = runlane.NewTask[payload]("costs.asking", nil)

	approved = runlane.NewSignal[payload]("approved")
)

// orderSteps is an order of five steps: two, an approval, a day of waiting, and three more.
func orderSteps(ctx context.Context, a *runlane.Attempt, _ payload) error {
	step := func(name string) error {
		_, err := runlane.Step(ctx, a, name, func(context.Context) (payload, error) { return small(name), nil })
		return err
	}
	for _, do := range []func() error{
		func() error { return step("reserve") },
		func() error { return step("ask") },
		func() error { _, err := approved.Wait(ctx, a, nil); return err },
		func() error { return a.Sleep(ctx, "cooling-off", 24*time.Hour) },
		func() error { return step("charge") },
		func() error { return step("ship") },
		func() error { return step("thank") },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func options() *core.Options {
	succeeds := func(context.Context, *runlane.Attempt, payload) error { return nil }
	failsOnce := func(_ context.Context, a *runlane.Attempt, _ payload) error {
		if a.Number == 1 {
			return errors.New("not yet")
		}
		return nil
	}
	return &core.Options{Handlers: append(callHandlers(),
		once.Handle(succeeds), twice.Handle(failsOnce), later.Handle(failsOnce), bounded.Handle(succeeds), timed.Handle(succeeds),
		waiting.Handle(func(_ context.Context, a *runlane.Attempt, _ payload) error {
			if a.Number == 1 {
				return runlane.Release(24*time.Hour, "not yet")
			}
			return nil
		}),
		order.Handle(orderSteps),
		asking.Handle(func(ctx context.Context, a *runlane.Attempt, _ payload) error {
			_, err := approved.Wait(ctx, a, nil)
			return err
		}),
		webhooks.Deliver.Handle(func(context.Context, *runlane.Attempt, webhooks.Delivery) error { return nil }),
	)}
}

// row is one line of the table.
type row struct {
	name    string
	runs    int // that the use is divided by
	options *core.Options
	play    func(w *world)
}

func small(text string) payload { return payload{Text: text} }

// ordinary triggers a run and executes it, with all that follows.
func ordinary(call runlane.Call, options *runlane.TriggerOptions) func(*world) {
	return func(w *world) {
		w.trigger(call, options)
		w.settle()
	}
}

func rows() []row {
	return []row{
		{"simple run", 1, nil, ordinary(once.With(small("hello")), nil)},
		{"with an idempotency key", 1, nil, ordinary(once.With(small("hello")), &runlane.TriggerOptions{IdempotencyKey: "a"})},
		{"with a singleton key, too", 1, nil, ordinary(once.With(small("hello")), &runlane.TriggerOptions{IdempotencyKey: "a", SingletonKey: "b"})},
		{"duplicate of a run", 1, nil, func(w *world) {
			o := &runlane.TriggerOptions{IdempotencyKey: "a"}
			w.trigger(once.With(small("hello")), o)
			w.used = costs.Use{}
			w.trigger(once.With(small("hello")), o)
		}},
		{"second wakeup of a run", 1, nil, func(w *world) {
			w.trigger(once.With(small("hello")), nil)
			again := w.wire.pending[0]
			w.settle()
			w.used = costs.Use{}
			w.deliver(again.wakeup)
		}},
		{"payload of 10 KB, hardly compressible", 1, nil, ordinary(once.With(small(incompressible(10<<10))), nil)},
		{"batch of 100, each", many, nil, func(w *world) {
			items := make([]core.BatchItem, many)
			for i := range items {
				items[i].Call = once.With(small("hello"))
			}
			w.measured(func() {
				results, err := w.rt.TriggerBatch(w.Context(), items)
				if err != nil {
					w.Fatal(err)
				}
				for _, result := range results {
					if result.Err != nil {
						w.Fatal(result.Err)
					}
				}
			})
			w.settle()
		}},
		{"delayed by 10 minutes", 1, nil, ordinary(once.With(small("hello")), &runlane.TriggerOptions{Delay: 10 * time.Minute})},
		{"delayed by a day", 1, nil, ordinary(once.With(small("hello")), &runlane.TriggerOptions{Delay: 24 * time.Hour})},
		{"deferred to the tick", 1, nil, ordinary(once.With(small("hello")), &runlane.TriggerOptions{Deferred: true})},
		{"one failure, again after a minute", 1, nil, ordinary(twice.With(small("hello")), nil)},
		{"one failure, again after an hour", 1, nil, ordinary(later.With(small("hello")), nil)},
		{"one release of a day", 1, nil, ordinary(waiting.With(small("hello")), nil)},
		{"five steps, an approval, a wait of a day", 1, nil, func(w *world) {
			id := w.trigger(order.With(small("hello")), nil)
			for wakeup, ok := w.wire.next(time.Minute); ok; wakeup, ok = w.wire.next(time.Minute) {
				w.deliver(wakeup)
			}
			w.approve(id)
			w.settle()
		}},
		{"an approval after a month", 1, nil, func(w *world) {
			id := w.trigger(asking.With(small("hello")), nil)
			for wakeup, ok := w.wire.next(time.Minute); ok; wakeup, ok = w.wire.next(time.Minute) {
				w.deliver(wakeup)
			}
			w.wire.reach(w.wire.Now().Add(30 * 24 * time.Hour))
			w.tick() // of a month without ticks: not what one of each minute costs
			for range 10 {
				w.wire.reach(w.wire.Now().Add(time.Minute))
				w.measured(w.tick)
				w.used.Reads -= w.idle.ReadUnits
				w.used.Requests -= float64(w.idle.Requests)
			}
			w.approve(id)
			w.settle()
		}},
		{"flow, 3 nodes in a row, each", 3, nil, func(w *world) {
			f := runlane.NewFlow("costs")
			build := f.Add("build", once.With(small("hello")), nil)
			test := f.Add("test", once.With(small("hello")), &runlane.NodeOptions{After: []runlane.Node{build}})
			f.Add("deploy", once.With(small("hello")), &runlane.NodeOptions{After: []runlane.Node{test}})
			w.measured(func() {
				if _, err := w.rt.StartFlow(w.Context(), f, nil); err != nil {
					w.Fatal(err)
				}
			})
			w.settle()
		}},
		{"flow, 99 nodes then one, each", 100, nil, join(100)},
		{"flow, 999 nodes then one, each", 1000, nil, join(1000)},
		{"cancelled while it waits", 1, nil, func(w *world) {
			id := w.trigger(once.With(small("hello")), &runlane.TriggerOptions{Delay: time.Hour})
			w.measured(func() {
				if _, err := w.rt.Runs().Cancel(w.Context(), id, nil); err != nil {
					w.Fatal(err)
				}
			})
			w.settle()
		}},
		{"bounded queue with room", 1, nil, ordinary(bounded.With(small("hello")), nil)},
		{"bounded queue, saturated, each", many, nil, func(w *world) {
			for range many {
				w.trigger(bounded.With(small("hello")), nil)
			}
			w.settle()
		}},
		{"run of a schedule", 1, scheduled(), func(w *world) {
			w.wire.reach(w.wire.Now().Add(time.Hour))
			w.measured(w.tick)
			w.used.Reads -= w.idle.ReadUnits
			w.used.Requests -= float64(w.idle.Requests)
			w.settle()
		}},
		{"real webhooks, each", 329, nil, func(w *world) {
			lines, err := data.GitHubWebhooks()
			if err != nil {
				w.Fatal(err)
			}
			for line := range webhooks.ReadDeliveries(lines) {
				if line.Err != nil {
					w.Fatal(line.Err)
				}
				w.trigger(webhooks.Deliver.With(line.Delivery), nil)
			}
			w.settle()
		}},
		{"pruned after its end, each", many, nil, func(w *world) {
			for range many {
				w.trigger(once.With(small("hello")), nil)
			}
			w.settle()
			w.wire.reach(w.wire.Now().Add(31 * 24 * time.Hour))
			w.used = costs.Use{}
			w.measured(func() {
				result, err := w.rt.Runs().Prune(w.Context(), &core.PruneOptions{OlderThan: 30 * 24 * time.Hour, Limit: many})
				if err != nil || result.Changed != many {
					w.Fatal(result, err)
				}
			})
		}},
	}
}

func scheduled() *core.Options {
	o := options()
	o.Schedules = []runlane.Schedule{{ID: "hourly", When: runlane.Cron("0 * * * *"), Call: timed.With(small("hello"))}}
	return o
}

// incompressible is text of a generator whose output zstd cannot shorten much.
func incompressible(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
	var b strings.Builder
	for state := uint64(1); b.Len() < n; {
		state = state*6364136223846793005 + 1442695040888963407
		b.WriteByte(letters[state>>58])
	}
	return b.String()
}

// TestCosts_AreWhatTheDocumentSays measures every row. A cell that gets worse fails, and one that gets better too: then write it down with
// go test ./internal/tools/costs -update.
func TestCosts_AreWhatTheDocumentSays(t *testing.T) { // the group of rows is waited for
	t.Parallel()
	awstest.DynamoDB(t) // not under -short
	all := slices.Concat(rows(), callRows())
	lines := make([]string, len(all))
	used := make([]costs.Use, len(all))
	t.Run("rows", func(t *testing.T) {
		for i, r := range all {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				if r.options == nil {
					r.options = options()
				}
				w := newWorld(t, r.options)
				r.play(w)
				u, n := w.used, float64(r.runs)
				each := costs.Use{Writes: u.Writes / n, Reads: u.Reads / n, Requests: u.Requests / n, Sends: u.Sends / n, Deliveries: u.Deliveries / n}
				used[i] = each
				lines[i] = fmt.Sprintf("| %s | %s | %s | %s | %s | %.2f |\n", r.name, amount(each.Writes), amount(each.Reads), amount(each.Requests),
					amount(each.Deliveries), each.Dollars(1))
			})
		}
	})
	hold(t, "measured", "| Run | Write units | Read units | DynamoDB requests | Wakeups | $ a million |\n|---|---|---|---|---|---|\n"+strings.Join(lines, ""))
	find := func(name string) costs.Use {
		for i, r := range all {
			if r.name == name {
				return used[i]
			}
		}
		t.Fatalf("no row %q", name)
		return costs.Use{}
	}
	hold(t, "compared", compared(find))
}

// minuteOfHeartbeats are the write units of a minute, docs/internals/layout.md, Budget; webhookKilobytes is the mean of the 329.
const (
	minuteOfHeartbeats = 15
	webhookKilobytes   = 9.9
)

// job is work that the alternatives can do as well, with what each charges for.
type job struct {
	name        string
	use         costs.Use
	transitions float64 // of a Step Functions Standard workflow: its states
	operations  float64 // of a Lambda durable function
	kilobytes   float64 // that its checkpoints write: for a million, as many GB
	table       float64 // write units of an idempotency table
	invocations float64
	actions     float64 // of Temporal Cloud
}

func compared(find func(string) costs.Use) string {
	hour := find("simple run")
	hour.Writes += 60 * minuteOfHeartbeats
	var b strings.Builder
	b.WriteString("| Work | Runlane | Step Functions | Durable functions | Temporal Cloud | SQS and a table |\n|---|---|---|---|---|---|\n")
	for _, j := range []job{
		{"one step, at once", find("simple run"), 1, 2, 1, 2, 1, 2},
		{"one step, in batches of 100", find("batch of 100, each"), 1, 2, 1, 2, 1, 2},
		{"a real webhook", find("real webhooks, each"), 1, 2, webhookKilobytes, 2, 1, 2},
		{"one step that fails once", find("one failure, again after a minute"), 2, 3, 1, 3, 2, 3},
		{"one step and a wait of a day", find("one release of a day"), 3, 4, 1, 0, 2, 3},
		{"five steps, an approval, a wait of a day", find("five steps, an approval, a wait of a day"), 7, 10, 5, 0, 3, 8},
		{"one step of an hour, with heartbeats", hour, 1, 0, 0, 0, 0, 62},
	} {
		steps := j.transitions*costs.StepFunctionsTransition + j.invocations*costs.LambdaInvocation
		durable := "no"
		if j.operations > 0 {
			durable = fmt.Sprintf("%.2f", j.operations*costs.DurableOperation+j.kilobytes*costs.DurableGigabyte+j.invocations*costs.LambdaInvocation)
		}
		plain := "no"
		if j.table > 0 {
			plain = fmt.Sprintf("%.2f", costs.Use{Writes: j.table, Sends: 1, Deliveries: j.invocations}.Dollars(1))
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s | %.2f | %s |\n", j.name, j.use.Dollars(1), steps, durable, j.actions*costs.TemporalAction, plain)
	}
	return b.String()
}

func TestPrices_AreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	wakeup := costs.Use{Deliveries: 1}
	for _, says := range []string{
		fmt.Sprintf("A write unit is %g, a read unit %g, an SQS request %.2f and an invocation %.2f for a million.",
			costs.WriteUnit, costs.ReadUnit, costs.SQSRequest, costs.LambdaInvocation),
		fmt.Sprintf("Batches of ten wakeups save %.2f for each.", wakeup.Dollars(1)-wakeup.Dollars(costs.BatchSize)),
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
			t.Errorf("%s does not say %q", document, says)
		}
	}
}

// amount is a number with at most two digits behind the point.
func amount(n float64) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), "."), "-0")
}

// hold compares a part of the document with what it should be, or writes it.
func hold(t *testing.T, name, want string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no part %q", document, name)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s, %s (-document +measured)\n%s", document, name, diff)
	}
}
