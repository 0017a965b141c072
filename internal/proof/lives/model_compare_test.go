package lives

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// compare holds everything that can be observed against the model.
func (s *modelSequence) compare() {
	s.compareSchedule()
	taken := map[string]int{}
	for _, run := range s.m.all() {
		if got := s.compareRun(run); got.Queue == slotQueue && (lane.HoldsSlot(got) && got.Status != runlane.StatusQueued || lane.ReservationActive(got, s.m.now)) {
			taken[got.ConcurrencyKey]++
		}
	}
	for key, n := range taken {
		if s.mostSlots > 0 && n > s.mostSlots {
			s.fail("%d runs of key %q have slots, and no deployment ever admitted more than %d", n, key, s.mostSlots)
		}
	}
	s.compareSent()
	for _, run := range s.m.all() {
		if run.Status.Active() {
			s.compareExplanation(run, s.d.rt, s.d)
		}
	}
	if n := len(s.m.gone); n > 0 {
		if _, err := s.d.rt.Runs().Get(s.ctx, s.m.gone[n-1]); runlane.CodeOf(err) != runlane.ErrRunNotFound {
			s.fail("pruned run %s: %v", s.m.gone[n-1], err)
		}
	}
	s.compareOwners()
	s.check()
}

// check asks the storage for its own invariants, whenever something was written.
func (s *modelSequence) check() {
	if s.m.changes == s.checked {
		return
	}
	s.checked = s.m.changes
	page, err := s.w.storage.Check(s.ctx, &lane.PageQuery{Limit: runlane.MaxPageLimit})
	if err != nil || len(page.Items) > 0 || page.Next != "" {
		s.fail("the storage's own check: %v, %+v", err, page)
	}
}

// compareRun adopts what chance decides, within its bounds, and asks for equality in everything else.
func (s *modelSequence) compareRun(want *modelRun) *runlane.Run {
	s.tally.add("status", string(want.Status), 1)
	got, err := s.d.rt.Runs().Get(s.ctx, want.ID)
	if err != nil {
		s.fail("run %s: %v", want.ID, err)
	}
	if want.Status == runlane.StatusRetrying && want.jitter > 0 {
		if got.RunAt.Sub(want.RunAt).Abs() > want.jitter {
			s.fail("run %s is tried again at %s, that is more than %s from %s", want.ID, got.RunAt, want.jitter, want.RunAt)
		}
		want.RunAt, want.jitter = got.RunAt, 0
		s.m.wakeLater(want, want.RunAt.Sub(want.UpdatedAt))
	}
	if x := want.owner; x != nil && x.model.beats && !x.finished {
		s.adoptBeats(want, got)
	}
	if want.drained { // whether it was handed a slot before it was taken is an event more, and cannot be told
		want.EventSequence, want.RunAt, want.drained = got.EventSequence, got.RunAt, false
	}
	if want.beaten {
		if got.EventSequence < want.EventSequence {
			s.fail("run %s has %d events, not %d or more", want.ID, got.EventSequence, want.EventSequence)
		}
		want.EventSequence, want.beaten = got.EventSequence, false
	}
	if d := modelDiff(&want.Run, got); d != "" {
		s.fail("run %s: %s", want.ID, d)
	}
	if got.Failure.Code == runlane.ErrLeaseExpired {
		s.tally.add("seen", "failed by the bound", 1)
	}
	return got
}

// adoptBeats takes over what heartbeats did to a run.
func (s *modelSequence) adoptBeats(want *modelRun, got *runlane.Run) {
	if got.EventSequence == want.EventSequence {
		return
	}
	if got.EventSequence < want.EventSequence || got.Lease.ExpiresAt.After(s.m.now.Add(modelLeased)) ||
		!got.Lease.ExpiresAt.After(s.m.now.Add(modelLeased-modelBeat)) || got.UpdatedAt.Before(want.UpdatedAt) || got.UpdatedAt.After(s.m.now) {
		s.fail("heartbeats left run %s with %d events, changed at %s, and a lease until %s", want.ID, got.EventSequence, got.UpdatedAt, got.Lease.ExpiresAt)
	}
	s.m.changes++
	want.EventSequence, want.UpdatedAt, want.Lease.ExpiresAt = got.EventSequence, got.UpdatedAt, got.Lease.ExpiresAt
	s.tally.add("seen", "heartbeat", 1)
}

// modelDiff names what differs.
func modelDiff(want, got *runlane.Run) string {
	for _, field := range [...]struct {
		name string
		same bool
	}{
		{"status", want.Status == got.Status},
		{"counters", want.Counters == got.Counters},
		{"failure", want.Failure.Code == got.Failure.Code},
		{"time", want.RunAt.Equal(got.RunAt)},
		{"start", want.StartedAt.Equal(got.StartedAt)},
		{"end", want.FinishedAt.Equal(got.FinishedAt)},
		{"beginning of the reservation", want.DispatchedAt.Equal(got.DispatchedAt)},
		{"end of the reservation", want.DispatchExpiresAt.Equal(got.DispatchExpiresAt)},
		{"end of the lease", want.Lease.ExpiresAt.Equal(got.Lease.ExpiresAt)},
		{"owner", want.Lease.WorkerID == got.Lease.WorkerID || want.Lease.WorkerID == modelOtherWorker},
		{"number of events", want.EventSequence == got.EventSequence},
		{"creation", want.CreatedAt.Equal(got.CreatedAt)},
		{"last change", want.UpdatedAt.Equal(got.UpdatedAt)},
		{"output", string(want.Output) == string(got.Output)},
		{"payload", string(want.Payload) == string(got.Payload)},
		{"task", want.TaskID == got.TaskID},
		{"queue", want.Queue == got.Queue},
		{"concurrency key", want.ConcurrencyKey == got.ConcurrencyKey},
		{"idempotency key", want.IdempotencyKey == got.IdempotencyKey},
		{"retention", want.Retention == got.Retention},
		{"singleton key", want.SingletonKey == got.SingletonKey},
		{"source", want.Source == got.Source},
		{"meta", maps.Equal(want.Meta, got.Meta)},
	} {
		if !field.same {
			return fmt.Sprintf("another %s:\nwanted %+v\ngot    %+v", field.name, *want, *got)
		}
	}
	return ""
}

// compareSent holds what the transport was given against what it had to be given, and puts it into the mail.
func (s *modelSequence) compareSent() {
	sent := s.w.transport.takeSent()
	for _, message := range sent {
		s.mail = append(s.mail, modelMail{message.run, s.m.now.Add(message.delay)})
	}
	var want []modelWakeup
	for _, message := range s.m.sent {
		want = append(want, modelWakeup{message.run.ID, message.delay})
	}
	slices.SortFunc(want, modelWakeup.compare)
	if !s.m.anySent && !slices.Equal(want, sent) {
		s.fail("the transport was given %v, not %v", sent, want)
	}
	s.m.sent, s.m.anySent = nil, false
}

func (s *modelSequence) compareExplanation(run *modelRun, rt *core.Runtime, d *modelDeployment) {
	want := s.m.explain(run, d)
	s.tally.add("wait", string(want.wait), 1)
	got, err := rt.Runs().Explain(s.ctx, run.ID)
	if err != nil {
		s.fail("explain %s: %v", run.ID, err)
	}
	if got.Wait != want.wait || !got.Until.Equal(want.until) || len(got.Holders) != want.holders || got.Status != run.Status || got.Next == "" {
		s.fail("run %s waits for %q until %s (%d holders), not for %q until %s (%d): %+v",
			run.ID, got.Wait, got.Until, len(got.Holders), want.wait, want.until, want.holders, got)
	}
}

// compareOwners asks for every key that a run ever had.
func (s *modelSequence) compareOwners() {
	for key := range s.idempotencyKeys {
		got, err := s.d.rt.Runs().FindCurrent(s.ctx, key.task, key.key)
		s.compareOwner("idempotency", key, s.m.ownerOf(key.task, key.key), got, err)
	}
	for key := range s.singletonKeys {
		got, err := s.d.rt.Runs().FindActive(s.ctx, key.task, key.key)
		s.compareOwner("singleton", key, s.m.holderOf(key.task, key.key), got, err)
	}
}

func (s *modelSequence) compareOwner(what string, key modelKey, want *modelRun, got *runlane.Run, err error) {
	switch {
	case want == nil && runlane.CodeOf(err) == runlane.ErrRunNotFound:
	case want != nil && err == nil && got.ID == want.ID:
	default:
		s.fail("%s key %v is owned by %+v (%v), not by %+v", what, key, got, err, want)
	}
}

// compareSchedule learns the ids of new runs and holds record and occurrences against the model's.
func (s *modelSequence) compareSchedule() {
	if s.m.schedule == nil || !s.m.schedule.touched {
		return
	}
	sc := s.m.schedule
	sc.touched = false
	i := len(sc.became) - 1
	for got, err := range s.d.rt.Schedules().Occurrences(s.ctx, modelScheduleID, false) {
		if err != nil || i < 0 {
			s.fail("occurrence %+v: %v", got, err)
		}
		want := &sc.became[i]
		if want.run != nil && want.RunID == "" {
			s.name(want, got.RunID)
		}
		if got != want.Occurrence {
			s.fail("occurrence is %+v, not %+v", got, want.Occurrence)
		}
		s.tally.add("skipped", string(got.Skipped), 1)
		if i--; i < len(sc.became)-20 {
			break
		}
	}
	if i >= 0 && len(sc.became) <= 20 {
		s.fail("occurrences are missing: %+v", sc.became[:i+1])
	}
	got, err := s.d.rt.Schedules().Get(s.ctx, modelScheduleID)
	if err != nil {
		s.fail("schedule: %v", err)
	}
	record := got.ScheduleRecord
	record.DefinitionHash, record.Version = "", 0
	if want := sc.record; !reflect.DeepEqual(record, want) {
		s.fail("schedule is %+v, not %+v", record, want)
	}
	if next := sc.kind.next(s.m.now, s.d.changed); !got.Next.Equal(next) {
		s.fail("schedule fires next at %s, not %s", got.Next, next)
	}
}

// name gives a run that a schedule made its id.
func (s *modelSequence) name(o *modelOccurrence, id runlane.RunID) {
	delete(s.m.runs, o.run.ID)
	s.m.order[slices.Index(s.m.order, o.run.ID)] = id
	o.RunID, o.run.ID = id, id
	s.m.runs[id] = o.run
	if s.m.schedule.active == o.run {
		s.m.schedule.record.LastRunID = id
	}
}
