package memlane

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// acquisition converts the result of a commit into that of a claim or reservation.
func acquisition(r *receipt, err error) (*lane.Acquisition, error) {
	if err != nil {
		return embedded.Lost(err)
	}
	r.acquisition = lane.Acquisition{Outcome: lane.Acquired, Commit: &r.commit}
	return &r.acquisition, nil
}

// ReserveRunDispatch takes a slot for a run and requests its delivery.
func (s *Storage) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	return acquisition(s.commit(&c.Transition, c.Outbox, nil, func(env *environment, e *entry) error {
		known := e.known()
		err := embedded.JudgeReservation(known, c, func() (embedded.Millis, bool) {
			return e.outbox.DispatchableSince(known)
		})
		if err != nil {
			return err
		}
		if c.Queue.Concurrency > 0 && !env.takeSlot(e, c.Queue.Concurrency, embedded.At(c.At)) {
			return embedded.LostRace(lane.LostCapacity)
		}
		return nil
	}))
}

// ReleaseRunDispatch frees a reserved slot.
func (s *Storage) ReleaseRunDispatch(ctx context.Context, c *lane.ReleaseDispatchCommand) (bool, error) {
	if err := embedded.Ended(ctx); err != nil {
		return false, err
	}
	h := s.lockAll()
	defer h.unlock()
	env := s.find(c.Environment)
	e := env.run(c.RunID)
	if e == nil || e.unpacked == nil || e.slot == nil || !e.known().Reserved(embedded.At(c.ExpiresAt)) {
		return false, nil
	}
	env.freeSlot(e)
	return true, nil
}

// claimSlot takes or frees the slot for a claim, or returns why the queue's limit does not let the run start.
func (env *environment) claimSlot(e *entry, c *lane.ClaimCommand) error {
	now := embedded.At(c.At)
	use, err := embedded.JudgeSlotOfClaim(c, e.occupies(now))
	switch {
	case err != nil:
		return err
	case use == embedded.FreeSlot:
		env.freeSlot(e)
	case use == embedded.TakeSlot && !env.takeSlot(e, c.Queue.Concurrency, now):
		return embedded.LostRace(lane.LostCapacity)
	}
	if !c.Queue.Rated() {
		return nil
	}
	pace := env.pace(e.partitionKey(), c.At)
	if _, ok := pace.Start(c.Queue, c.At); !ok {
		if use == embedded.TakeSlot {
			env.freeSlot(e)
		}
		return embedded.LateStart{Pace: *pace}
	}
	return nil
}

// admit takes the slot of a creation that needs one. now is the time of the events.
func (env *environment) admit(e *entry, t *lane.Transition, now embedded.Millis) error {
	if embedded.NeedsSlot(t) && !env.takeSlot(e, t.Queue.Concurrency, now) {
		return embedded.NoSlot(e.id)
	}
	if !embedded.NeedsStart(t) {
		return nil
	}
	if _, ok := env.pace(e.partitionKey(), now.Time()).Start(t.Queue, now.Time()); !ok {
		env.freeSlot(e)
		return embedded.NoSlot(e.id)
	}
	return nil
}

// ListRunsNeedingDispatch implements [lane.Storage]. It returns at most as many runs of each partition as it has free
// slots, and all running runs with an expired lease: these may hold a slot, or have started without a limit.
func (s *Storage) ListRunsNeedingDispatch(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.DueScope("ListRunsNeedingDispatch", q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &runlane.Page[lane.RunRef]{}
	env := s.find(q.Environment)
	if env == nil {
		return page, nil
	}
	for _, queue := range q.Bounded {
		env.limit(queue.Name)
	}
	if q.ConcurrencyKey != nil {
		page.Items = env.waitingWith(*q.ConcurrencyKey, q, limit)
		return page, nil
	}
	var found []ranked
	now := embedded.At(q.At)
	leased := env.lists(&choice{of: ofStatus(runlane.StatusRunning), wants: q.Wants})
	for w := rank(leased, placeOf(after), now); len(found) <= limit; {
		next, ok, _ := w.popRanked()
		if !ok {
			break
		}
		queue := next.entry.created.Queue
		if embedded.BoundedPolicy(q, queue).Bounded() && q.Wants(queue) && !next.entry.underway(now, q.Patience) {
			found = append(found, next)
		}
	}
	for key, p := range env.partitions {
		if policy := embedded.BoundedPolicy(q, key.queue); policy.Bounded() && q.Wants(key.queue) {
			found = p.candidates(found, q, env.room(key, policy, q, false), placeOf(after), limit+1)
		}
	}
	slices.SortFunc(found, ranked.compare)
	for n, i := range found {
		if n == limit {
			page.Next = scope.Cursor(found[n-1].Place(0))
			break
		}
		page.Items = append(page.Items, i.ref())
	}
	return page, nil
}

// waitingWith returns runs with a concurrency key that wait in partitions with free slots, in the order of their ranks.
func (env *environment) waitingWith(key string, q *lane.DueQuery, limit int) (refs []lane.RunRef) {
	for _, queue := range q.Bounded {
		p := env.partitions[partitionKey{queue.Name, key}]
		if p == nil || !q.Wants(queue.Name) {
			continue
		}
		if limit == 1 {
			if next, ok := p.offer(q, env.room(partitionKey{queue.Name, key}, queue, q, false)); ok {
				return []lane.RunRef{next.ref()}
			}
			continue
		}
		free := env.room(partitionKey{queue.Name, key}, queue, q, false)
		for _, i := range p.candidates(nil, q, free, nil, limit-len(refs)) {
			refs = append(refs, i.ref())
		}
	}
	return refs
}

// offer chooses a run for one free slot, see [embedded.Offer].
func (p *partition) offer(q *lane.DueQuery, free int) (ranked, bool) {
	waiting := p.candidates(nil, q, free, nil, embedded.OffersAtOnce)
	if len(waiting) == 0 {
		return ranked{}, false
	}
	next, offered := embedded.Offer(p.offered, waiting)
	p.offered = offered
	return waiting[next], true
}

// candidates appends runs that wait in the partition, at most as many as it has room for.
func (p *partition) candidates(found []ranked, q *lane.DueQuery, free int, after *position, most int) []ranked {
	now := embedded.At(q.At)
	room := min(free, most)
	for w := rank(p.lines(), after, now); room > 0; {
		next, ok, _ := w.popRanked()
		if !ok {
			break
		}
		if e := next.entry; !e.owned() && !e.underway(now, q.Patience) {
			found = append(found, next)
			room--
		}
	}
	return found
}

// room counts the free slots that a scan has not given away.
type room struct {
	q    *lane.DueQuery
	left embedded.Room[partitionKey]
}

// allows reports whether a runnable run has, or could get, a slot.
func (r *room) allows(env *environment, e *entry) bool {
	policy, now := embedded.BoundedPolicy(r.q, e.created.Queue), embedded.At(r.q.At)
	key := e.partitionKey()
	switch {
	case !policy.Bounded():
		return true
	case e.occupies(now):
		return !policy.Rated() || env.pacing(key).Starts(policy, r.q.At) > 0
	}
	allowed, _ := r.left.Allows(key, func() (int, error) { return env.room(key, policy, r.q, true), nil })
	return allowed
}
