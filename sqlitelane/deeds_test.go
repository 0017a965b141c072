package sqlitelane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

const deedsEnvironment = "deeds"

// deeds are calls of every kind. Each that returned is acknowledged by a line, which says what has to be there from now
// on.
type deeds struct {
	t   testing.TB
	s   *sqlitelane.Storage
	w   *sqlitelane.Transport
	f   *lanetest.Factory
	ack func(line string)
	// prefix tells the ids of several processes apart.
	prefix string
}

// kinds of deeds, by name. Each call does a few.
var kinds = map[string]func(*deeds, int) error{
	"life": (*deeds).life, "retry": (*deeds).retry, "bounded": (*deeds).bounded, "outbox": (*deeds).outbox,
	"schedule": (*deeds).schedule, "wakeup": (*deeds).wakeup, "prune": (*deeds).prune,
	"ordered": (*deeds).ordered,
}

func (d *deeds) acknowledge(run *runlane.Run) {
	d.ack(fmt.Sprint("run ", run.ID, " ", run.EventSequence))
}

// append does what an attempt of a run, or a caller, does to it.
func (d *deeds) append(run *runlane.Run, body runlane.EventBody) (*runlane.Run, error) {
	c := d.f.Append(d.t, run, time.Now(), body)
	commit, err := d.s.AppendRunEvents(context.Background(), c)
	if err != nil {
		return nil, err
	}
	d.acknowledge(commit.Run)
	return commit.Run, nil
}

func (d *deeds) create(o lanetest.RunOptions) (*lane.Commit, error) {
	o.ID = runlane.RunID(d.prefix) + d.f.NewRunID()
	commit, err := d.s.AppendRunEvents(context.Background(), d.f.Creation(d.t, time.Now().Add(-time.Second), o))
	if err == nil {
		d.acknowledge(commit.Run)
	}
	return commit, err
}

func (d *deeds) claim(run *runlane.Run) (*runlane.Run, error) {
	got, err := d.s.ClaimRunLease(context.Background(), d.f.Claim(d.t, run, time.Now(), time.Now().Add(time.Hour), d.f.NewToken()))
	switch {
	case err != nil:
		return nil, err
	case got.Outcome != lane.Acquired:
		return nil, fmt.Errorf("claim of %s: %s", run.ID, got.Outcome)
	}
	d.acknowledge(got.Commit.Run)
	return got.Commit.Run, nil
}

// life is a run with keys, a payload and an output, which stand in its record, or apart from it.
func (d *deeds) life(n int) error {
	commit, err := d.create(lanetest.RunOptions{
		IdempotencyKey: fmt.Sprint("key", d.prefix, d.f.NewToken()), Retention: runlane.KeyRetention{TTL: time.Hour},
		SingletonKey: fmt.Sprint("one", d.prefix, d.f.NewToken()), Payload: noise(n % 4 * 1500),
	})
	if err != nil {
		return err
	}
	run, err := d.claim(commit.Run)
	for range n % 3 {
		if err == nil {
			var beat *lane.Commit
			beat, err = d.s.HeartbeatRunLease(context.Background(), d.f.Heartbeat(d.t, run, time.Now(), time.Now().Add(2*time.Hour)))
			if err == nil {
				run = beat.Run
				d.acknowledge(run)
			}
		}
	}
	if err == nil {
		_, err = d.append(run, lanetest.Succeeded(run, noise(n%3*2000)))
	}
	return err
}

// noise is JSON that cannot be compressed.
func noise(size int) []byte {
	b := []byte{'"'}
	for x := uint32(size + 1); len(b) < size; x = x*1664525 + 1013904223 {
		b = append(b, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[x>>26])
	}
	return append(b, '"')
}

// retry makes a history that is too long for a record.
func (d *deeds) retry(int) error {
	commit, err := d.create(lanetest.RunOptions{TraceCarrier: map[string]string{"traceparent": "00-1-2-3"}})
	run := (*runlane.Run)(nil)
	if err == nil {
		run = commit.Run
	}
	for range 12 {
		if err == nil {
			run, err = d.claim(run)
		}
		if err == nil {
			run, err = d.append(run, lanetest.Retried(run, time.Now().Add(-time.Minute)))
		}
	}
	if err == nil {
		_, err = d.append(run, &runlane.RunCancelled{Reason: "enough"})
	}
	return err
}

// bounded takes a slot and frees it.
func (d *deeds) bounded(n int) error {
	key := fmt.Sprint("customer", n%3, d.prefix, d.f.NewToken())
	commit, err := d.create(lanetest.RunOptions{Queue: "bounded", ConcurrencyKey: key, Concurrency: 1})
	if err != nil {
		return err
	}
	reserve := d.f.Reserve(d.t, commit.Run, time.Now(), time.Now().Add(time.Hour), 1)
	got, err := d.s.ReserveRunDispatch(context.Background(), reserve)
	if err != nil || got.Outcome != lane.Acquired {
		return fmt.Errorf("reservation: %v %w", got, err)
	}
	d.acknowledge(got.Commit.Run)
	c := d.f.Claim(d.t, got.Commit.Run, time.Now(), time.Now().Add(time.Hour), d.f.NewToken())
	c.Queue = runlane.Queue{Name: "bounded", Concurrency: 1}
	claimed, err := d.s.ClaimRunLease(context.Background(), c)
	if err != nil || claimed.Outcome != lane.Acquired {
		return fmt.Errorf("claim: %v %w", claimed, err)
	}
	d.acknowledge(claimed.Commit.Run)
	end := d.f.Append(d.t, claimed.Commit.Run, time.Now(), lanetest.Failed(claimed.Commit.Run))
	end.Queue = c.Queue
	ended, err := d.s.AppendRunEvents(context.Background(), end)
	if err == nil {
		d.acknowledge(ended.Run)
	}
	return err
}

// outbox publishes a wakeup, gives another up and requeues it.
func (d *deeds) outbox(int) error {
	soon := lane.InitialOutbox{ClaimUntil: time.Now().Add(time.Hour)}
	commit, err := d.create(lanetest.RunOptions{Outbox: soon})
	if err != nil {
		return err
	}
	err = d.s.MarkOutboxMessagesPublished(context.Background(), &lane.MarkPublishedCommand{
		Environment: deedsEnvironment, At: time.Now(), Messages: []lane.OutboxRef{commit.Outbox[0].OutboxRef},
	})
	if err != nil {
		return err
	}
	if commit, err = d.create(lanetest.RunOptions{Outbox: soon}); err != nil {
		return err
	}
	err = d.s.MarkOutboxMessagesDeadLettered(context.Background(), &lane.MarkDeadLetteredCommand{
		Environment: deedsEnvironment, At: time.Now(),
		Messages: []lane.OutboxFailure{{
			OutboxRef: commit.Outbox[0].OutboxRef, Attempts: 5, Failure: runlane.NewFailure("broken", "it is", nil),
		}},
	})
	if err != nil {
		return err
	}
	_, err = d.s.RequeueDeadLetters(context.Background(), &lane.RequeueCommand{
		Environment: deedsEnvironment, IDs: []string{commit.Outbox[0].ID}, At: time.Now(),
	})
	return err
}

// schedule completes an occurrence, and stores a task.
func (d *deeds) schedule(n int) error {
	ctx, id := context.Background(), runlane.ScheduleID("nightly-"+d.prefix+d.f.NewToken())
	put, err := d.s.PutSchedule(ctx, &lane.PutScheduleCommand{
		Environment: deedsEnvironment, Record: runlane.ScheduleRecord{ID: id, DefinitionHash: "hash", RegisteredAt: time.Now()},
	})
	if err != nil {
		return err
	}
	d.ack(fmt.Sprint("schedule ", id, " ", put.Version))
	c := &lane.ClaimOccurrenceCommand{
		ScheduleKey: lane.ScheduleKey{Environment: deedsEnvironment, ScheduleID: id}, OccurrenceID: "occ_1",
		FireTime: time.Now(), At: time.Now(), ClaimUntil: time.Now().Add(time.Hour),
	}
	claim, err := d.s.ClaimScheduleOccurrence(ctx, c)
	if err != nil {
		return err
	}
	err = d.s.CompleteScheduleOccurrence(ctx, &lane.CompleteOccurrenceCommand{
		ScheduleKey: c.ScheduleKey, OccurrenceID: c.OccurrenceID, FireTime: c.FireTime, Token: claim.Token,
		RunIDs: []runlane.RunID{runlane.RunID(fmt.Sprint("run_", n))},
	})
	if err == nil {
		d.ack(fmt.Sprint("schedule ", id, " ", put.Version+1))
	}
	return err
}

// wakeup sends some that no worker takes.
func (d *deeds) wakeup(n int) error {
	const each = 3
	c := &lane.PublishCommand{}
	for range each {
		c.Attempts = append(c.Attempts, lane.PublishAttempt{Wakeup: lane.Wakeup{
			RunKey: lane.RunKey{Environment: deedsEnvironment, RunID: d.f.NewRunID()}, Queue: "wakeups", RequestedAt: time.Now(),
			TraceCarrier: map[string]string{"n": strconv.Itoa(n)},
		}})
	}
	_, err := d.w.PublishWakeups(context.Background(), c)
	if err == nil {
		d.ack(fmt.Sprint("wakeups ", d.f.NewToken(), " ", each))
	}
	return err
}

// ordered sends some in groups, and takes the first.
func (d *deeds) ordered(n int) error {
	const each = 3
	c := &lane.PublishCommand{}
	for range each {
		c.Attempts = append(c.Attempts, lane.PublishAttempt{GroupKey: fmt.Sprint(n % 2), Wakeup: lane.Wakeup{
			RunKey: lane.RunKey{Environment: deedsEnvironment, RunID: d.f.NewRunID()}, Queue: "turns", RequestedAt: time.Now(),
		}})
	}
	if _, err := d.w.PublishWakeups(context.Background(), c); err != nil {
		return err
	}
	d.ack(fmt.Sprint("turns ", d.f.NewToken(), " ", each))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return d.w.Receive(ctx, []runlane.QueueName{"turns"}, 1, func(context.Context, lane.Wakeup) error {
		cancel()
		d.ack(fmt.Sprint("turns ", d.f.NewToken(), " -1")) // it is gone some time after this
		return nil
	})
}

// prune removes what has ended, and shrinks the file.
func (d *deeds) prune(int) error {
	d.ack("pruning - 0") // from now on runs may be gone
	_, err := d.s.PruneRuns(context.Background(), &lane.PruneCommand{
		PageQuery: lane.PageQuery{Environment: deedsEnvironment, Limit: 5}, OlderThan: time.Now(), ReleaseOwners: true,
	})
	return err
}

// witness is what has to be there.
type witness struct {
	mu      sync.Mutex
	runs    map[runlane.RunID]int64
	plans   map[runlane.ScheduleID]int64
	wakeups int64
	turns   int64
	pruned  bool
}

func newWitness() *witness {
	return &witness{runs: map[runlane.RunID]int64{}, plans: map[runlane.ScheduleID]int64{}}
}

// hear takes an acknowledgment.
func (w *witness) hear(line string) error {
	parts := strings.Fields(line)
	if len(parts) != 3 {
		return fmt.Errorf("no acknowledgment: %q", line)
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch parts[0] {
	case "run":
		w.runs[runlane.RunID(parts[1])] = max(n, w.runs[runlane.RunID(parts[1])])
	case "schedule":
		w.plans[runlane.ScheduleID(parts[1])] = n
	case "wakeups":
		w.wakeups += n
	case "turns":
		w.turns += n
	case "pruning":
		w.pruned = true
	default:
		return fmt.Errorf("no acknowledgment: %q", line)
	}
	return nil
}

// missing is what was acknowledged and is not there, and what is broken.
func (w *witness) missing(s *sqlitelane.Storage, transport *sqlitelane.Transport) (lost []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx := context.Background()
	if fault, err := s.Sound(); err != nil || fault != "" {
		return []string{"the file: " + fault}, err
	}
	for id, sequence := range w.runs {
		run, err := s.GetRun(ctx, lane.RunKey{Environment: deedsEnvironment, RunID: id})
		switch {
		case runlane.CodeOf(err) == runlane.ErrRunNotFound && w.pruned:
		case runlane.CodeOf(err) == runlane.ErrRunNotFound:
			lost = append(lost, fmt.Sprint(id))
		case err != nil:
			return nil, err
		case run.EventSequence < sequence:
			lost = append(lost, fmt.Sprint(id, " is at ", run.EventSequence, ", not ", sequence))
		}
	}
	for id, version := range w.plans {
		r, err := s.GetSchedule(ctx, lane.ScheduleKey{Environment: deedsEnvironment, ScheduleID: id})
		if err != nil || r.Version < version {
			lost = append(lost, fmt.Sprint(id, " ", err))
		}
	}
	visible, inFlight, err := transport.Depth(ctx, "wakeups")
	if int64(visible+inFlight) < w.wakeups {
		lost = append(lost, fmt.Sprint(visible, " of ", w.wakeups, " wakeups"))
	}
	visible, inFlight, ordered := transport.Depth(ctx, "turns")
	if err = errors.Join(err, ordered); int64(visible+inFlight) < w.turns {
		lost = append(lost, fmt.Sprint(visible, " of ", w.turns, " wakeups in order"))
	}
	if _, stuck, unread := s.Pauses(); stuck || unread != nil {
		lost = append(lost, fmt.Sprint("the first of a group waits for none: ", unread))
	}
	q := &lane.PageQuery{Environment: deedsEnvironment, Limit: runlane.MaxPageLimit}
	for {
		page, err := s.Check(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Items {
			lost = append(lost, fmt.Sprint(v.RunID, ": ", v.Rule, ": ", v.Detail))
		}
		if q.After = page.Next; q.After == "" {
			slices.Sort(lost)
			return lost, err
		}
	}
}

// spread divides n calls among callers.
func spread(n, callers int, call func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	faults := make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-faults:
		return err
	default:
		return nil
	}
}

// deedsTransport shares a storage's file, for the wakeups of the deeds.
func deedsTransport(s *sqlitelane.Storage) *sqlitelane.Transport {
	w := sqlitelane.NewTransport(s, "turns")
	_ = w.Start(context.Background(), lane.StartOptions{Environment: deedsEnvironment}) // the storage may still be closed
	return w
}
