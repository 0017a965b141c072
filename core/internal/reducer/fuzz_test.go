package reducer_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

// FuzzProjectRunEvents plays random histories. Three bytes make an event: its type, how far the clock moves, and what is wrong
// with it, mostly nothing, so that histories get long and deep. Attempts and lease tokens come from the run as it stands.
func FuzzProjectRunEvents(f *testing.F) {
	const created, delivery, claim, beat, start, succeed, fail, retry, release, ask, cancel = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	const soon, minute = 0x10, 0x30 // high bits of the third byte: the time that the event names
	for _, seed := range [][]byte{
		{},
		{created, 0, 0, delivery, 0, 0, claim, 0, minute, start, 0, 0, succeed, 1, 0},
		{created, 0, 0, claim, 0, minute, start, 0, 0, beat, 1, minute, retry, 1, soon, claim, 3, minute, start, 0, 0, fail, 1, 0, cancel, 0, 0},
		{created, 0, 0, claim, 0, soon, start, 0, 0, ask, 1, 0, release, 1, soon, delivery, 3, soon, cancel, 0, 0, start, 0, 0},
		{created, 0, minute, delivery, 0, 0x80, delivery, 1, minute, claim, 4, minute, claim, 5, minute, start, 0, 0, ask, 0, 0, cancel, 0, 0},
		{created, 0, 0, 11, 0, 0, 12, 0, 0, delivery, 0, 10, delivery, 0, 11, claim, 0, 13, claim, 0, 14, start, 0, 12, fail, 0, 15},
	} {
		f.Add(seed)
	}
	f.Fuzz(playHistory)
}

// fuzzer reads a history from bytes.
type fuzzer struct {
	data  []byte
	clock time.Time
}

var clockSteps = []time.Duration{
	0, time.Millisecond, 999 * time.Microsecond, 2 * time.Second, time.Minute, time.Hour, -time.Millisecond, -time.Hour,
}

// next makes the next event for the run as it stands, nil for none yet.
func (z *fuzzer) next(run *runlane.Run) (runlane.Event, bool) {
	if len(z.data) < 3 {
		return runlane.Event{}, false
	}
	kind, step, shape := z.data[0]%13, z.data[1], z.data[2]
	z.data = z.data[3:]
	z.clock = z.clock.Add(clockSteps[int(step)%len(clockSteps)])

	attempts, lease := 0, runlane.Lease{Token: "token", WorkerID: "worker"}
	if run != nil {
		attempts = run.Counters.Attempts
		if kind == 3 {
			lease = run.Lease
		}
	}
	fault := shape % 16 // below 10 there is none
	moment := z.clock.Add([]time.Duration{0, time.Second, time.Millisecond, time.Minute, -time.Second, time.Hour, 500 * time.Microsecond, -time.Hour}[shape>>4%8])
	lease.ExpiresAt = moment
	e := runlane.Event{RunID: "run_1", Environment: "production", OccurredAt: z.clock}
	if step >= 128 {
		e.TraceCarrier = map[string]string{"traceparent": string(rune('a' + step%8))}
	}
	switch fault {
	case 10:
		e.RunID = "run_2"
	case 11:
		e.Environment = "staging"
	case 12:
		attempts += 2
	case 13:
		lease.Token += "x"
	case 14:
		e.OccurredAt = time.Time{}
	}
	e.Body = fuzzBody(kind, attempts, lease, moment, shape)
	if fault == 15 {
		e.Body = emptyBody(kind)
	}
	return e, true
}

func fuzzBody(kind byte, attempts int, lease runlane.Lease, moment time.Time, shape byte) runlane.EventBody {
	failure := runlane.Failure{Code: "boom", Meta: map[string]string{"k": "v"}}
	switch kind {
	case 0:
		return &runlane.RunCreated{TaskID: "t", Queue: "q", Payload: []byte(`{}`), RunAt: moment, IdempotencyKey: "i", SingletonKey: "s"}
	case 1:
		d := runlane.Delivery{Environment: "production", RunID: "run_1", Queue: "q", AvailableAt: moment, RequestedAt: moment}
		if shape >= 128 {
			d.DispatchExpiresAt, d.TraceCarrier = moment, map[string]string{}
		}
		if shape >= 240 {
			return &runlane.RunDeliveryRequested{Delivery: d, Wait: fuzzWait(3, moment)}
		}
		return &runlane.RunDeliveryRequested{Delivery: d}
	case 2:
		return &runlane.RunLeaseClaimed{Lease: lease}
	case 3:
		return &runlane.RunLeaseHeartbeat{Lease: lease}
	case 4:
		return &runlane.RunStarted{Attempt: attempts + 1}
	case 5:
		return &runlane.RunSucceeded{Attempt: attempts, Output: []byte(`1`)}
	case 6:
		return &runlane.RunFailed{Attempt: attempts, Failure: failure}
	case 7:
		return &runlane.RunRetryScheduled{Attempt: attempts, Failure: failure, RetryAt: moment}
	case 8:
		return &runlane.RunReleased{Attempt: attempts, ResumeAt: moment, Wait: fuzzWait(attempts, moment)}
	case 9:
		return &runlane.RunCancellationRequested{}
	case 10:
		return &runlane.RunCancelled{}
	case 11:
		return &runlane.RunResumed{}
	case 12:
		return &runlane.RunDebounced{RunAt: moment, Payload: []byte(`2`)}
	case 13:
		return &runlane.UnknownEvent{Type: "run.paused"}
	default:
		return nil
	}
}

// fuzzWait is a wait of every fourth event, not always one that fits.
func fuzzWait(n int, moment time.Time) *runlane.Waiting {
	if n%4 != 3 {
		return nil
	}
	w := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approval"}, Until: moment}
	if n%8 == 7 {
		w.For = nil
	}
	return w
}

func emptyBody(kind byte) runlane.EventBody {
	return []runlane.EventBody{
		&runlane.RunCreated{}, &runlane.RunDeliveryRequested{}, &runlane.RunLeaseClaimed{}, &runlane.RunLeaseHeartbeat{},
		&runlane.RunStarted{}, &runlane.RunSucceeded{}, &runlane.RunFailed{}, &runlane.RunRetryScheduled{}, &runlane.RunReleased{},
		(*runlane.RunCancellationRequested)(nil), (*runlane.RunCancelled)(nil), (*runlane.RunResumed)(nil), (*runlane.RunDebounced)(nil),
		(*runlane.UnknownEvent)(nil), nil,
	}[kind]
}

func playHistory(t *testing.T, data []byte) {
	z := fuzzer{data: data[:min(len(data), 300)], clock: noon} // each rejection folds all before it again
	var run *runlane.Run
	var accepted []runlane.Event
	sequence := int64(0)
	for {
		e, more := z.next(run)
		if !more {
			break
		}
		before := run.Clone()
		next, err := reducer.Project(run, sequence, e)
		if !reflect.DeepEqual(before, run) {
			t.Fatalf("current was changed: %s", cmp.Diff(before, run))
		}
		if _, err := reducer.Project(run, sequence+1, e); !errors.Is(err, runlane.ConflictEventSequence) {
			t.Fatalf("one ahead: %v", err)
		}
		if err != nil {
			if next != nil || runlane.CodeOf(err) != runlane.ErrInvariantViolation {
				t.Fatalf("rejected with %v, %v", next, err)
			}
			// Behind what was accepted so far it is rejected as well, whatever came before in the same command.
			if _, err := reducer.Project(nil, 0, append(accepted[:len(accepted):len(accepted)], e)...); runlane.CodeOf(err) != runlane.ErrInvariantViolation {
				t.Fatalf("rejected alone, but at the end of one command: %v", err)
			}
			continue
		}
		checkStep(t, run, next, e)
		run, sequence, accepted = next, next.EventSequence, append(accepted, e)
	}
	if run == nil {
		return
	}
	whole, err := reducer.Project(nil, 0, accepted...)
	if err != nil {
		t.Fatalf("accepted one by one, but in one command: %v", err)
	}
	if !reflect.DeepEqual(run, whole) {
		t.Fatalf("(-one by one +one command)\n%s", cmp.Diff(run, whole))
	}
	if cut := len(data) % len(accepted); cut > 0 {
		first := project(t, nil, accepted[:cut]...)
		if parts := project(t, first, accepted[cut:]...); !reflect.DeepEqual(run, parts) {
			t.Fatalf("(-one by one +two commands)\n%s", cmp.Diff(run, parts))
		}
	}
}

// checkStep holds what is true of every accepted event.
func checkStep(t *testing.T, before, after *runlane.Run, e runlane.Event) {
	t.Helper()
	must := func(holds bool, rule string) {
		t.Helper()
		if !holds {
			t.Fatalf("%s: %s\nbefore %+v\nafter  %+v", e.Type(), rule, before, after)
		}
	}
	if before == nil {
		before = &runlane.Run{}
		must(e.Type() == runlane.EventCreated, "only run.created begins a run")
	} else {
		must(!before.Status.Terminal(), "a terminal run never changes")
		kept := after.Clone() // identity: what only creation decides
		kept.Status, kept.EventSequence, kept.Counters, kept.Output = before.Status, before.EventSequence, before.Counters, before.Output
		kept.RunAt, kept.StartedAt, kept.FinishedAt, kept.UpdatedAt = before.RunAt, before.StartedAt, before.FinishedAt, before.UpdatedAt
		kept.DispatchedAt, kept.DispatchExpiresAt = before.DispatchedAt, before.DispatchExpiresAt
		kept.Failure, kept.Lease, kept.TraceCarrier = before.Failure, before.Lease, before.TraceCarrier
		kept.Waiting = before.Waiting
		must(reflect.DeepEqual(before, kept), "identity never changes")
	}
	must(after.EventSequence == before.EventSequence+1, "sequence advances by one")
	must(after.UpdatedAt.Equal(runlane.UTCMillis(e.OccurredAt)), "updated when the event occurred")
	must(after.Status.Known(), "status is known")

	was, is := before.Counters, after.Counters
	for _, step := range []int{is.Attempts - was.Attempts, is.Failures - was.Failures, is.Retries - was.Retries, is.Releases - was.Releases} {
		must(step == 0 || step == 1, "counters advance by at most one")
	}
	must(is.Retries <= is.Failures, "every retry is a failure")
	must(is.Attempts > 0 || is.Failures+is.Releases == 0, "no outcome without an attempt")

	status := after.Status
	owned := status == runlane.StatusRunning || status == runlane.StatusCancellationRequested
	waiting := status == runlane.StatusScheduled || status == runlane.StatusRetrying || status == runlane.StatusReleased
	must(owned == (after.Lease != runlane.Lease{}), "a lease exactly while a worker owns the run")
	must(!after.FinishedAt.IsZero() == status.Terminal(), "finished exactly when terminal")
	must(!waiting || !after.RunAt.IsZero(), "who waits knows until when")
	must(after.Waiting == nil || waiting && after.Waiting.Due().Equal(after.RunAt), "only a waiting run has a wait")
	must(after.DispatchedAt.IsZero() == after.DispatchExpiresAt.IsZero(), "a reservation has both times")
	must(after.DispatchedAt.IsZero() || status == runlane.StatusQueued || status == runlane.StatusScheduled, "only who waits for a worker has a reservation")
	must(after.Output == nil || status == runlane.StatusSucceeded, "output only of a success")
	switch status {
	case runlane.StatusFailed, runlane.StatusRetrying:
		must(after.Failure.Code != "", "a failure says which")
	case runlane.StatusSucceeded, runlane.StatusCancelled:
		must(after.Failure.IsZero(), "no failure is left at the end")
	default:
	}
}

// TestProject_FuzzerReachesEveryStatus: a fuzz target that never leaves the shallows proves nothing.
func TestProject_FuzzerReachesEveryStatus(t *testing.T) {
	t.Parallel()
	reached := map[runlane.Status]bool{}
	data := []byte{}
	state := uint32(1) // a fixed pseudo-random stream
	for range 30_000 {
		state = state*1664525 + 1013904223
		data = append(data, byte(state>>24))
	}
	for len(data) >= 120 {
		z := fuzzer{data: data[:120], clock: noon}
		data = data[120:]
		z.data[0], z.data[1], z.data[2] = 0, 0, 0 // begins with run.created
		var run *runlane.Run
		for sequence := int64(0); ; {
			e, more := z.next(run)
			if !more {
				break
			}
			if next, err := reducer.Project(run, sequence, e); err == nil {
				run, sequence = next, next.EventSequence
				reached[run.Status] = true
			}
		}
	}
	for _, status := range runlane.Statuses() {
		if !reached[status] {
			t.Errorf("no random history got to %s", status)
		}
	}
}
