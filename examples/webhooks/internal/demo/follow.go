package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
)

// runNoOps measures the smallest runs there are, on the same way as the webhooks.
func (d *demo) runNoOps(ctx context.Context, application, look *core.Runtime) error {
	if d.Resume || len(d.meter.read()) == 0 {
		return nil
	}
	return d.follow(ctx, look, "measuring no-op runs", d.noOps, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(triggersAtOnce)
		for range d.NoOps {
			group.Go(func() error {
				result, err := trigger(ctx, application, d.noOp.With(struct{}{}), nil)
				if err == nil {
					d.noOps.triggered("", result)
				}
				return err
			})
		}
		return group.Wait()
	})
}

// runWebhooks triggers every line while workers already deliver. The id of a delivery is its idempotency key: a resumed
// demo repeats all triggers and makes no run twice.
func (d *demo) runWebhooks(ctx context.Context, application, look *core.Runtime) error {
	return d.follow(ctx, look, "delivering webhooks", d.webhooks, func(ctx context.Context) error {
		var group errgroup.Group
		group.SetLimit(triggersAtOnce)
		good := 0
		_, err := d.input.each(func(line webhooks.Line) bool {
			if line.Err != nil {
				return ctx.Err() == nil // reported already
			}
			good++
			options := &runlane.TriggerOptions{Deferred: d.Engine.DeferEvery > 0 && good%d.Engine.DeferEvery == 0}
			group.Go(func() error {
				result, err := trigger(ctx, application, d.deliver.With(line.Delivery), options)
				if err != nil {
					d.notTriggeredLine(ctx, line.Number, err)
					return nil // the other lines do not suffer
				}
				d.webhooks.triggered(line.Delivery.ID, result)
				return nil
			})
			return ctx.Err() == nil
		})
		return errors.Join(err, group.Wait())
	})
}

// follow shows how far the runs of a board are, and returns when triggering is over and all have ended: see await.
func (d *demo) follow(
	ctx context.Context, look *core.Runtime, what string, b *board, triggering func(context.Context) error,
) error {
	stop := d.showProgress(ctx, what, b)
	defer stop()
	group, following := errgroup.WithContext(ctx)
	var complete atomic.Bool
	group.Go(func() error {
		defer complete.Store(true)
		return triggering(following)
	})
	group.Go(func() error { return d.await(following, look, b, &complete) })
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // interrupted, whatever else that may have caused
}

func (d *demo) notTriggeredLine(ctx context.Context, number int, err error) {
	if ctx.Err() != nil {
		return // interrupted: this one will be resumed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notTriggered = append(d.notTriggered, fmt.Errorf("line %d: %w", number, err))
}

// trigger repeats what the storage says may succeed later. With an idempotency key that is safe whatever became of the
// first try.
func trigger(
	ctx context.Context, rt *core.Runtime, call runlane.Call, options *runlane.TriggerOptions,
) (*runlane.TriggerResult, error) {
	for try := 1; ; try++ {
		result, err := rt.Trigger(ctx, call, options)
		if e, ok := errors.AsType[*runlane.Error](err); !ok || !e.Retryable || try == 5 ||
			!pause(ctx, time.Duration(try)*backoffBase) {
			return result, err
		}
	}
}

// await looks at runs until the board is complete and all have ended, until nothing has happened for as long as the
// engine's patience (what is open then, is lost), or until ctx ends.
func (d *demo) await(ctx context.Context, look *core.Runtime, b *board, complete *atomic.Bool) error {
	for swept := time.Now(); ; {
		done := complete.Load() // before the board is read
		f := b.figures()
		if done && f.open == 0 || f.quiet > d.Engine.Patience {
			return nil
		}
		all := time.Since(swept) >= d.Engine.SweepEvery
		if all {
			swept = time.Now()
		}
		for _, id := range b.toInspect(all) {
			run, err := look.Runs().Get(ctx, id)
			switch {
			case err == nil:
				b.seen(run)
			case errors.Is(err, runlane.ErrRunNotFound), errors.Is(err, runlane.ErrStorageUnavailable):
				// It stays open, and is lost unless that passes.
			case ctx.Err() == nil:
				return err
			}
		}
		if !pause(ctx, d.Engine.PollEvery) {
			return nil
		}
	}
}

// pause reports whether the time passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
