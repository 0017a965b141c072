package crashtest

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/waiting"
)

// waiter is a world, as the scenarios that the lanes share see it.
type waiter struct{ *world }

func (w waiter) Must(err error)               { w.t.Helper(); w.must(err) }
func (w waiter) Runtime() *core.Runtime       { return w.rt }
func (w waiter) Now() time.Time               { return w.now() }
func (w waiter) Advance(d time.Duration)      { w.advance(d) }
func (w waiter) Deliver()                     { w.deliver() }
func (w waiter) DeliverOnce()                 { w.deliverOnce() }
func (w waiter) Arguments() map[string]string { return w.arguments }
func (w waiter) Gone(id runlane.RunID)        { w.gone[id] = true }

func (w waiter) Trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	return w.trigger(call, options)
}

// waitScenarios have runs that wait: for a time, for a signal, for those that they called, as nodes of flows.
func waitScenarios() []scenario {
	var all []scenario
	for _, shared := range waiting.Scenarios() {
		s := scenario{name: shared.Name, act: invoke, atOnce: shared.AtOnce}
		if shared.Options != nil {
			s.options = func(p *program) *core.Options {
				o := p.options()
				shared.Options(o)
				return o
			}
		}
		if shared.Prepare != nil {
			s.prepare = func(w *world) { shared.Prepare(waiter{w}) }
		}
		if shared.Act != nil {
			s.act = func(ctx context.Context, c *child) error { return shared.Act(ctx, c.rt, c.Arguments) }
		}
		if shared.Repeat != nil {
			s.repeat = func(w *world) { shared.Repeat(waiter{w}) }
		}
		s.judge = func(a *account) {
			shared.Judge(&waiting.End{Runtime: a.w.rt, Runs: a.runs, Fault: a.fault})
			if len(a.w.gone) > 0 && len(a.runs) == 0 {
				a.noItems("run:")
				a.noItems("flow:")
			}
		}
		all = append(all, s)
	}
	return all
}
