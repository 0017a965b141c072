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
	// feedTime is how long a run follows a feed. Then another one goes on, so that no history grows for ever.
	feedTime = time.Hour
	// feedPause is how long a run waits whose process stops, until another one goes on with it.
	feedPause = time.Second
	// feedMarkName is the checkpoint of the cursor.
	feedMarkName = "feed"
	// feedMargin is how much earlier than the last end that was read a search for ends begins, since clocks differ.
	feedMargin = 10 * time.Minute
)

// feedPayload is what a run carries that follows a feed.
type feedPayload struct {
	Webhook string   `json:"webhook"`
	From    feedMark `json:"from"`
}

// feedMark is a place in the feed, and the instant of the event before it.
type feedMark struct {
	Cursor runlane.Cursor `json:"cursor"`
	At     time.Time      `json:"at"`
}

// follow ensures that a run follows the feed for a webhook: the one that does, or another one that goes on where the
// latest one ended. from is for the first one of all. Several processes may do this at once: the singleton key admits
// one, and one that begins too early makes runs that are there.
func (w *Webhooks) follow(ctx context.Context, rt *core.Runtime, name string, from feedMark) error {
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

// markOf is where a run that has ended was, if it followed the feed for the webhook and is still there.
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
		return feedMark{}, false, nil //nolint:nilerr // it is of another webhook, or encrypted for other programs
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

// reader is one attempt of a run that follows the feed.
type reader struct {
	rt      *core.Runtime
	hook    *hook
	send    *runlane.Task[delivery]
	attempt *runlane.Attempt
	mark    feedMark
}

// readFeed makes a run for each end that the webhook wants, and remembers how far it has come.
func (w *Webhooks) readFeed(ctx context.Context, a *runlane.Attempt, p feedPayload) error {
	r := &reader{rt: w.rt.Load(), hook: w.hooks[p.Webhook], send: w.send, attempt: a, mark: p.From}
	if _, err := a.Restore(ctx, feedMarkName, &r.mark); err != nil {
		return err
	}
	following, cancel := context.WithTimeout(ctx, feedTime)
	defer cancel()
	defer context.AfterFunc(w.running, cancel)() // Run ends it, beside the attempt
	err := r.read(following)
	if runlane.CodeOf(err) == runlane.ErrValidationFailed { // the feed does not keep what follows the cursor any more
		a.Logger().WarnContext(
			ctx,
			"the feed has gone on without the webhook: ends are searched for in the list of runs",
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
		return nil // the time is over
	}
}

// read follows the feed until its context ends.
func (r *reader) read(ctx context.Context) error {
	options := &core.FeedOptions{After: r.mark.Cursor, Follow: true}
	for record, err := range r.rt.Runs().Feed(ctx, options) {
		if err != nil {
			return err
		}
		if status, ends := endOf(record.Type()); ends && slices.Contains(r.hook.Statuses, status) {
			if err := r.tell(ctx, record.RunID); err != nil {
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

// search tells the ends that the list of runs has since the mark, and goes on with the feed of now.
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
		if err := r.tell(ctx, run.ID); err != nil {
			return err
		}
	}
	return r.remember(ctx, now, at)
}

// endOf is the status that an event leads to, if it ends its run.
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

// tell makes the run that delivers the end of a run, unless it is there.
func (r *reader) tell(ctx context.Context, id runlane.RunID) error {
	run, err := r.rt.Runs().Get(ctx, id)
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		return nil // it was removed
	}
	if err != nil || !r.hook.wants(run.TaskID, run.Status) {
		return err
	}
	_, err = r.rt.Trigger(ctx, r.send.With(delivery{Webhook: r.hook.Name, Run: id, Created: run.CreatedAt}), nil)
	return err
}
