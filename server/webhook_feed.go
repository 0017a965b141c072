package server

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	// feedTime is how long a run follows a feed. Then a new run continues, so that no history grows forever.
	feedTime = time.Hour
	// feedPause delays a run after its process stopped, before another process continues it.
	feedPause    = time.Second
	feedMarkName = "feed"
	// feedMargin is subtracted from the time of the last read event when searching for missed ends, since clocks
	// differ.
	feedMargin = 10 * time.Minute
)

type feedPayload struct {
	Webhook string   `json:"webhook"`
	From    feedMark `json:"from"`
}

// feedMark is a position in the feed, with the time of the event before it.
type feedMark struct {
	Cursor runlane.Cursor `json:"cursor"`
	At     time.Time      `json:"at"`
}

// ensureFeed ensures that a run follows the feed for a webhook: the active one, or a new one from where the latest
// ended, the first from from. Concurrent calls are safe: the singleton key admits one run, and a run that starts too
// early triggers deliveries that already exist.
func (w *Webhooks) ensureFeed(ctx context.Context, rt *core.Runtime, name string, from feedMark) error {
	active, err := rt.Runs().FindActive(ctx, webhookFeedTask, name)
	if active != nil || err != nil && runlane.CodeOf(err) != runlane.ErrRunNotFound {
		return err
	}
	options := &core.ListOptions{
		RunFilter: core.RunFilter{TaskID: webhookFeedTask, Statuses: runlane.TerminalStatuses()},
		Limit:     2 * len(w.hooks),
	}
	for summary, err := range rt.Runs().All(ctx, options) {
		if err != nil {
			return err
		}
		mark, found, err := markOf(ctx, rt, summary.ID, name)
		if err != nil {
			return err
		}
		if found {
			from = mark
			break
		}
	}
	_, err = rt.Trigger(ctx, w.feed.With(feedPayload{Webhook: name, From: from}),
		&runlane.TriggerOptions{ReturnActive: true})
	return err
}

// markOf returns the last mark of an ended run, if it followed the feed for the webhook and still exists.
func markOf(ctx context.Context, rt *core.Runtime, id runlane.RunID, name string) (feedMark, bool, error) {
	run, err := rt.Runs().Get(ctx, id)
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		return feedMark{}, false, nil
	}
	if err != nil {
		return feedMark{}, false, err
	}
	var p feedPayload
	if err := json.Unmarshal(run.Payload, &p); err != nil || p.Webhook != name {
		return feedMark{}, false, nil //nolint:nilerr // it belongs to another webhook, or is encrypted for other programs
	}
	records, err := rt.Runs().Steps(ctx, id)
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		return feedMark{}, false, nil
	}
	if err != nil {
		return feedMark{}, false, err
	}
	for i := range records {
		if records[i].Name == feedMarkName {
			err = json.Unmarshal(records[i].Result, &p.From)
		}
	}
	return p.From, err == nil, nil
}

type reader struct {
	rt      *core.Runtime
	hook    *hook
	send    *runlane.Task[delivery]
	attempt *runlane.Attempt
	mark    feedMark
}

// readFeed creates a delivery for each end that the webhook wants, and saves its position.
func (w *Webhooks) readFeed(ctx context.Context, a *runlane.Attempt, p feedPayload) error {
	r := &reader{rt: w.rt.Load(), hook: w.hooks[p.Webhook], send: w.send, attempt: a, mark: p.From}
	if _, err := a.Restore(ctx, feedMarkName, &r.mark); err != nil {
		return err
	}
	following, cancel := context.WithTimeout(ctx, feedTime)
	defer cancel()
	defer context.AfterFunc(w.running, cancel)() // Run ends it, too
	err := r.read(following)
	if runlane.CodeOf(err) == runlane.ErrValidationFailed { // the feed no longer has the events after the cursor
		a.Logger().WarnContext(
			ctx,
			"the feed no longer has the events since the webhook's last one: searching the list of runs for ends",
			"webhook", r.hook.Name, "since", r.mark.At,
		)
		if err = r.search(following); err == nil {
			err = r.read(following)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case following.Err() == nil:
		return err
	case w.running.Err() != nil:
		return runlane.Release(feedPause, "the process stops")
	default:
		return nil // feedTime is over
	}
}

func (r *reader) read(ctx context.Context) error {
	options := &core.FeedOptions{After: r.mark.Cursor, Follow: true}
	for record, err := range r.rt.Runs().Feed(ctx, options) {
		if err != nil {
			return err
		}
		if status, ends := endOf(record.Type()); ends && slices.Contains(r.hook.Statuses, status) {
			if err := r.triggerDelivery(ctx, record.RunID); err != nil {
				return err
			}
		}
		if err := r.remember(ctx, record.Cursor, record.OccurredAt); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) remember(ctx context.Context, cursor runlane.Cursor, at time.Time) error {
	r.mark = feedMark{Cursor: cursor, At: at}
	return r.attempt.Checkpoint(ctx, feedMarkName, &r.mark)
}

// search delivers the ends since the mark that the list of runs has, then continues at the feed's current end.
func (r *reader) search(ctx context.Context) error {
	at := time.Now()
	now, err := r.rt.Runs().FeedStart(ctx)
	if err != nil {
		return err
	}
	since := r.mark.At.Add(-feedMargin)
	options := &core.ListOptions{RunFilter: core.RunFilter{Statuses: r.hook.Statuses}, Limit: runlane.MaxPageLimit}
	for run, err := range r.rt.Runs().All(ctx, options) {
		if err != nil {
			return err
		}
		if run.FinishedAt.Before(since) || !r.hook.wants(run.TaskID, run.Status) {
			continue
		}
		if err := r.triggerDelivery(ctx, run.ID); err != nil {
			return err
		}
	}
	return r.remember(ctx, now, at)
}

func endOf(event runlane.EventType) (runlane.Status, bool) {
	switch event {
	case runlane.EventSucceeded:
		return runlane.StatusSucceeded, true
	case runlane.EventFailed:
		return runlane.StatusFailed, true
	case runlane.EventCancelled:
		return runlane.StatusCancelled, true
	default:
		return "", false
	}
}

// triggerDelivery triggers the delivery of a run's end. If it exists, this does nothing.
func (r *reader) triggerDelivery(ctx context.Context, id runlane.RunID) error {
	run, err := r.rt.Runs().Get(ctx, id)
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		return nil // the run was removed
	}
	if err != nil || !r.hook.wants(run.TaskID, run.Status) {
		return err
	}
	_, err = r.rt.Trigger(ctx, r.send.With(delivery{Webhook: r.hook.Name, Run: id, Created: run.CreatedAt}), nil)
	return err
}
