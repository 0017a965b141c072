package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// repeats is how often a caller repeats a call before it gives up.
const repeats = 20

// caller is a runtime as its users call it. If faults are injected, it does what users are told to do: it repeats the
// call, with an id that names the run. Scenarios demand the same with faults and without; all differences for a caller
// are in this type and in the helpers for wakeups.
type caller struct {
	*core.Runtime

	s *scene
}

func (s *scene) caller(rt *core.Runtime) *caller { return &caller{Runtime: rt, s: s} }

// again repeats the call until no planned fault hits it.
func again[T any](c *caller, call func() (T, error)) (T, error) {
	for range repeats {
		if value, err := call(); !c.s.faults.planned(err) {
			return value, err
		}
	}
	return call()
}

// named are the options with an id for the run, so that the same call can be made twice.
func (c *caller) named(options *runlane.TriggerOptions) *runlane.TriggerOptions {
	o := runlane.TriggerOptions{}
	if options != nil {
		o = *options
	}
	if o.RunID == "" {
		o.RunID = runlane.RunID(fmt.Sprintf("run_%026x", rand.Uint64())) // a name, not a choice
	}
	return &o
}

// claims sets the outcome to created if an earlier try made the run and its answer was lost.
func (c *caller) claims(id runlane.RunID, result *runlane.TriggerResult) {
	if result != nil && result.Run.ID == id && c.s.faults.make(id) {
		result.Outcome = runlane.TriggerCreated
	}
}

// Trigger repeats under one run id.
func (c *caller) Trigger(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	if c.s.faults == nil {
		return c.Runtime.Trigger(ctx, call, options)
	}
	options = c.named(options)
	result, err := again(c, func() (*runlane.TriggerResult, error) { return c.Runtime.Trigger(ctx, call, options) })
	c.claims(options.RunID, result)
	return result, err
}

// RunNow repeats under one run id.
func (c *caller) RunNow(
	ctx context.Context, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	if c.s.faults == nil {
		return c.Runtime.RunNow(ctx, call, options)
	}
	options = c.named(options)
	result, err := again(c, func() (*runlane.TriggerResult, error) { return c.Runtime.RunNow(ctx, call, options) })
	c.claims(options.RunID, result)
	return result, err
}

// TriggerBatch repeats the items that failed.
func (c *caller) TriggerBatch(ctx context.Context, items []core.BatchItem) ([]core.BatchResult, error) {
	if c.s.faults == nil {
		return c.Runtime.TriggerBatch(ctx, items)
	}
	items = slices.Clone(items)
	todo := make([]int, len(items))
	for i := range items {
		items[i].Options = c.named(items[i].Options)
		todo[i] = i
	}
	results := make([]core.BatchResult, len(items))
	for range repeats {
		batch := make([]core.BatchItem, len(todo))
		for n, i := range todo {
			batch[n] = items[i]
		}
		part, err := c.Runtime.TriggerBatch(ctx, batch)
		var failed []int
		for n, i := range todo {
			results[i] = part[n]
			if c.s.faults.planned(part[n].Err) {
				failed = append(failed, i)
			}
			c.claims(items[i].Options.RunID, part[n].Result)
		}
		if todo = failed; len(todo) == 0 {
			if c.s.faults.planned(err) {
				err = nil
			}
			return results, err
		}
	}
	return results, errors.New("the same went wrong again and again")
}

// ExecuteDelivery is what a transport does with a wakeup that was handed back.
func (c *caller) ExecuteDelivery(
	ctx context.Context, w lane.Wakeup, o *core.DeliveryOptions,
) (*core.DeliveryResult, error) {
	return again(c, func() (*core.DeliveryResult, error) { return c.Runtime.ExecuteDelivery(ctx, w, o) })
}

// ExecuteNext asks again.
func (c *caller) ExecuteNext(ctx context.Context, o *core.DeliveryOptions) (*core.DeliveryResult, error) {
	return again(c, func() (*core.DeliveryResult, error) { return c.Runtime.ExecuteNext(ctx, o) })
}

// PublishWakeups adds up what the tries did.
func (c *caller) PublishWakeups(ctx context.Context, ids []string) (core.StageResult, error) {
	total := core.StageResult{}
	_, err := again(c, func() (struct{}, error) {
		_, before := c.s.faults.unheard()
		result, err := c.Runtime.PublishWakeups(ctx, ids)
		_, after := c.s.faults.unheard()
		c.addStage(&total, result, after-before)
		return struct{}{}, err
	})
	return total, err
}

// Work drains again if a fault hit it.
func (c *caller) Work(ctx context.Context, options *core.WorkOptions) error {
	if c.s.faults == nil || options == nil || !options.Drain {
		return c.Runtime.Work(ctx, options)
	}
	for {
		before := c.s.faults.count()
		_, err := again(c, func() (struct{}, error) { return struct{}{}, c.Runtime.Work(ctx, options) })
		if err != nil || c.s.faults.count() == before {
			return err
		}
	}
}

// Wait goes on waiting.
func (c *caller) Wait(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	for {
		run, err := c.Runtime.Wait(ctx, id)
		if !c.s.faults.planned(err) || ctx.Err() != nil {
			return run, err
		}
	}
}

// Tick is the next tick, a moment later. The result is that of all of them. Where the scenario sets no deadline, there
// is time enough: how many requests a storage answers in a minute is no scenario's matter.
func (c *caller) Tick(ctx context.Context, given *core.TickOptions) (*core.TickResult, error) {
	options := &core.TickOptions{}
	if given != nil {
		*options = *given
	}
	if options.Deadline.IsZero() {
		options.Deadline = c.s.clock.Now().Add(time.Hour)
	}
	if c.s.faults == nil {
		return c.Runtime.Tick(ctx, options)
	}
	total := &core.TickResult{}
	var others error // of stages that failed beside one whose failure was planned
	_, err := again(c, func() (struct{}, error) {
		changed, sent := c.s.faults.unheard()
		result, err := c.Runtime.Tick(ctx, options)
		if result == nil {
			return struct{}{}, err
		}
		changedAfter, sentAfter := c.s.faults.unheard()
		into := tickStages(total)
		for i, stage := range tickStages(result) {
			unheard := changedAfter - changed
			if stage == &result.Flushed {
				unheard = sentAfter - sent
			}
			c.addStage(into[i], *stage, unheard)
			if c.s.faults.planned(err) && !c.s.faults.planned(stage.Err) {
				others = errors.Join(others, stage.Err)
			}
		}
		total.More = result.More
		return struct{}{}, err
	})
	return total, errors.Join(err, others)
}

func tickStages(r *core.TickResult) []*core.StageResult {
	return []*core.StageResult{
		&r.Cancelled, &r.Abandoned, &r.Told, &r.Delivered, &r.Redelivered, &r.Woken, &r.Scheduled, &r.Dispatched,
		&r.Flushed, &r.Pruned,
	}
}

// addStage counts as done also what was carried out while its answer was lost.
func (c *caller) addStage(into *core.StageResult, result core.StageResult, unheard int) {
	into.Done += result.Done
	into.Skipped += result.Skipped
	into.More = result.More
	if c.s.faults.planned(result.Err) {
		into.Done += min(result.Failed, unheard)
		return
	}
	into.Failed += result.Failed
	into.Err = errors.Join(into.Err, result.Err)
}
