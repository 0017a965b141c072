package memlane

import (
	"context"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

func (e *entry) called() map[string]*lane.RunCall { return e.shard.calls[e.id] }

// notificationPending reports whether the run has ended and still owes notifications, see [lane.MustNotify].
func (e *entry) notificationPending() bool {
	_, _, ok := e.shard.indexes.toNotify.find(item{e.due.at, e})
	return ok
}

// markToNotify marks a run that has just ended if it owes notifications, and reports that.
func (e *entry) markToNotify(p *runlane.Run) bool {
	pending := lane.MustNotify(p, len(e.called()) > 0)
	if pending {
		e.shard.indexes.toNotify.insert(item{e.due.at, e})
	}
	return pending
}

// BeginCall stores a call of a run.
func (s *Storage) BeginCall(ctx context.Context, c *lane.CallCommand) (*lane.RunCall, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	h, env := s.lockRun(c.Environment, c.RunID)
	defer h.unlock()
	e := env.run(c.RunID)
	if e == nil {
		return nil, embedded.NotFound(c.RunID)
	}
	if err := embedded.JudgeCall(e.view().known(), c); err != nil {
		return nil, err
	}
	if kept := e.called()[c.Call.Name]; kept != nil {
		return new(*kept), nil
	}
	if e.shard.calls == nil {
		e.shard.calls = map[runlane.RunID]map[string]*lane.RunCall{}
	}
	if e.called() == nil {
		e.shard.calls[e.id] = map[string]*lane.RunCall{}
	}
	kept := c.Call
	kept.At = runlane.UTCMillis(kept.At)
	e.called()[kept.Name] = &kept
	return new(kept), nil
}

// ReadCalls returns the calls of a run.
func (s *Storage) ReadCalls(ctx context.Context, q *lane.CallQuery) (*lane.CallsRead, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	h, env := s.lockRun(q.Environment, q.RunID)
	defer h.unlock()
	e := env.run(q.RunID)
	if e == nil {
		return nil, embedded.NotFound(q.RunID)
	}
	read := &lane.CallsRead{Run: e.view().project(false), NotificationPending: e.notificationPending()}
	for name, kept := range e.called() {
		if q.Name == "" || q.Name == name {
			read.Calls = append(read.Calls, *kept)
		}
	}
	slices.SortFunc(read.Calls, func(a, b lane.RunCall) int { return strings.Compare(a.Name, b.Name) })
	return read, nil
}

// ListRunsToNotify returns ended runs that owe notifications.
func (s *Storage) ListRunsToNotify(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scan(ctx, "ListRunsToNotify", q, nil, func(ix *indexes) []*ordered { return []*ordered{&ix.toNotify} }, nil)
}

// NotifyEnd notifies one caller of an end, once. It changes two runs, so it locks everything.
func (s *Storage) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Resume == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		env := s.find(c.Environment)
		if err := env.judgeNotification(c); err != nil {
			return nil, err
		}
		env.settleEnd(c)
		return nil, nil
	}
	t := &c.Resume.Transition
	r := newReceipt(t)
	s.mu.Lock()
	err := s.write(t, c.Resume.Outbox, r, nil, func(env *environment, e *entry) error {
		if err := env.judgeNotification(c); err != nil {
			return err
		}
		if err := embedded.JudgeAppend(e.known(), t); err != nil {
			return err
		}
		env.settleEnd(c)
		return nil
	})
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r.record(t)
	return &r.commit, nil
}

// judgeNotification returns why the notification is not due.
func (env *environment) judgeNotification(c *lane.NotifyCommand) error {
	e := env.run(c.RunID)
	if e == nil || !e.notificationPending() || e.view().state.CreatedAt != embedded.At(c.CreatedAt) {
		return c.AlreadyNotified()
	}
	if c.To == nil {
		return nil
	}
	to := env.run(c.To.RunID)
	if to == nil || to.view().state.CreatedAt != embedded.At(c.To.CreatedAt) {
		return c.AlreadyNotified()
	}
	return embedded.JudgeNotification(to.view().known(), c, to.called()[c.To.Name])
}

// settleEnd removes the mark and counts the child as ended.
func (env *environment) settleEnd(c *lane.NotifyCommand) {
	e := env.run(c.RunID)
	e.shard.indexes.toNotify.remove(item{e.due.at, e})
	if c.To != nil {
		env.run(c.To.RunID).called()[c.To.Name].Ended++
	}
}

func (env *environment) needed(e *entry, p *embedded.Pruning) bool {
	if e.notificationPending() {
		return true
	}
	known := e.view()
	source := known.created.Source
	if p.Needed(&source, env.flow(source.FlowID), env.stateOf(source.RunID)) {
		return true
	}
	remembered, _ := p.Remembered(e.id, known.known(), func(id runlane.RunID) (*embedded.State, error) {
		return env.stateOf(id), nil
	})
	return remembered
}

// stateOf is nil for an absent run.
func (env *environment) stateOf(id runlane.RunID) *embedded.State {
	if e := env.run(id); e != nil {
		return e.view().known()
	}
	return nil
}

// allUnfinished reports whether each of the calls has children that have not ended.
func (e *entry) allUnfinished(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		kept := e.called()[name]
		return kept == nil || kept.Whole()
	})
}
