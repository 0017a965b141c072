package sqlitelane_test

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/waiting"
)

// waiter is a site, as the scenarios that the lanes share see it.
type waiter struct{ *site }

func (w waiter) Must(err error)               { w.t.Helper(); w.must(err) }
func (w waiter) Runtime() *core.Runtime       { return w.rt }
func (w waiter) Now() time.Time               { return w.now() }
func (w waiter) Advance(d time.Duration)      { w.advance(d) }
func (w waiter) Deliver()                     { w.deliver() }
func (w waiter) Arguments() map[string]string { return w.site.Arguments }
func (w waiter) Gone(id runlane.RunID)        { w.gone[id] = true }

func (w waiter) Trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	return w.trigger(call, options)
}

// DeliverOnce executes as many runs as there are wakeups now.
func (w waiter) DeliverOnce() {
	w.t.Helper()
	wakeups, _, err := w.sends.Depth(context.Background(), runlane.DefaultQueue.Name)
	w.must(err)
	for range wakeups {
		_, err := w.rt.ExecuteNext(context.Background(), &core.DeliveryOptions{Queues: unordered})
		w.must(err)
	}
}

// waits are the scenarios of runs that wait: for a signal, for those that they called, as nodes of flows.
func waits() map[string]crashScenario {
	scenarios := map[string]crashScenario{}
	for _, shared := range waiting.Scenarios() {
		c := crashScenario{options: shared.Options, act: delivered, atOnce: shared.AtOnce}
		if shared.Prepare != nil {
			c.prepare = func(s *site) { shared.Prepare(waiter{s}) }
		}
		if shared.Act != nil {
			c.act = func(ctx context.Context, s *site) error { return shared.Act(ctx, s.rt, s.Arguments) }
		}
		if shared.Repeat != nil {
			c.repeat = func(s *site) { shared.Repeat(waiter{s}) }
		}
		c.judge = func(s *site, runs map[runlane.RunID]*runlane.Run) {
			shared.Judge(&waiting.End{Runtime: s.rt, Runs: runs, Fault: s.fault})
		}
		scenarios[shared.Name] = c
	}
	return scenarios
}
