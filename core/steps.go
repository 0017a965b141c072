package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// steps are the records of an attempt and of its run's earlier attempts.
type steps struct {
	mu      sync.Mutex
	loaded  bool
	known   map[string]*runlane.StepRecord // records of the run; replaced, never changed
	used    map[string]bool                // names called in this attempt, each at most once
	inboxes map[string]string              // signal names and the waits that they answer
	begun   int                            // calls in progress, without a record yet
	bytes   int                            // of all results
	last    time.Time                      // time of the last record
	began   int                            // the task version that the run began with

	predecessors []*runlane.Run // that the run goes on from
}

var _ runlane.StepHost = (*execution)(nil)

// Remember implements runlane.StepHost.
func (x *execution) Remember(
	ctx context.Context, call runlane.StepCall, work runlane.StepWork,
) (*runlane.StepRecord, error) {
	known, err := x.recall(ctx, call)
	if err != nil || known != nil {
		return known, err
	}
	recorded := false
	defer func() {
		if !recorded { // also after a panic: the same attempt may try again
			x.forgo(call.Name)
		}
	}()
	record := &runlane.StepRecord{Name: call.Name, Kind: call.Kind, Type: call.Type}
	if call.Kind == runlane.StepKindStep {
		record.StartedAt = x.rt.now()
	}
	inside, t := x.traceStep(ctx, call)
	record.Result, err = x.runStep(inside, work)
	t.done(WorkEnd{Err: err})
	if err != nil {
		return nil, err
	}
	kept, err := x.keepStep(ctx, record)
	recorded = err == nil
	return kept, err
}

// checkName checks the name of a record that a handler makes.
func (x *execution) checkName(name string) error {
	if err := runlane.ValidateStepName(name); err != nil {
		return err
	}
	for prefix, what := range map[string]string{versionPrefix: "a task's version", receiptPrefix: "receipts"} {
		if strings.HasPrefix(name, prefix) {
			return stepFault(x, name, "choose another name: records of this form keep "+what, "begins with %q", prefix)
		}
	}
	return nil
}

// recall begins a call. It returns the run's record of that name, or nil if the call must keep one or forgo it.
func (x *execution) recall(ctx context.Context, call runlane.StepCall) (*runlane.StepRecord, error) {
	if err := x.checkName(call.Name); err != nil {
		return nil, err
	}
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := x.load(ctx); err != nil {
		return nil, err
	}
	if s.used[call.Name] {
		return nil, x.calledTwice(call)
	}
	known := s.known[call.Name]
	if err := x.checkKind(call, known); err != nil {
		return nil, err
	}
	if known == nil {
		if err := x.checkRecordLimit(call.Name); err != nil {
			return nil, err
		}
		s.begun++
	}
	s.used[call.Name] = true
	return known, nil
}

// calledTwice refuses the second call of a name in one attempt: it would get the answer of the first.
func (x *execution) calledTwice(call runlane.StepCall) error {
	e := &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("%s %q is called twice in this attempt", call.Kind, call.Name),
		RunID:   x.started.ID,
		Hint:    "give each round of a loop its own name, such as \"send/\" and an id",
	}
	if call.Kind == runlane.StepKindWait {
		e.Hint = "a signal answers one wait: give each round its own signal, as Signal.Named or WaitOptions.Name " +
			"does, and send that one"
	}
	return e
}

// checkKind refuses a name that belongs to another kind of call.
func (x *execution) checkKind(call runlane.StepCall, known *runlane.StepRecord) error {
	if known == nil || known.Kind == call.Kind {
		return nil
	}
	return stepFault(x, call.Name, "a name never changes its meaning: give the new call another name",
		"is a %s, and attempt %d recorded a %s of that name", call.Kind, known.Attempt, known.Kind)
}

func (x *execution) checkRecordLimit(name string) error {
	if len(x.steps.known)+x.steps.begun < runlane.MaxSteps {
		return nil
	}
	return stepFault(x, name, "use a checkpoint for long loops, or a run for each part",
		"would be record %d of this run, and %d is the most", runlane.MaxSteps+1, runlane.MaxSteps)
}

// forgo ends a call that records no result.
func (x *execution) forgo(name string) {
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, name)
	s.begun--
}

// load reads the records of earlier attempts, once. The caller holds the lock.
func (x *execution) load(ctx context.Context) error {
	s := &x.steps
	if s.loaded {
		return nil
	}
	if !x.rt.storage().Capabilities().SuspendsRuns {
		return unsupported("the storage keeps no records of steps")
	}
	known := map[string]*runlane.StepRecord{}
	size := 0
	if x.remote || x.started.Counters.Attempts > 1 { // a first attempt has no records
		records, err := x.rt.records(ctx, x.started)
		if err != nil {
			return err
		}
		for i := range records {
			if isReceipt(records[i]) {
				continue
			}
			known[records[i].Name] = &records[i]
		}
	}
	var err error
	if s.predecessors, err = x.rt.predecessors(ctx, x.started); err != nil {
		return err
	}
	if err := x.rt.inherit(ctx, s.predecessors, known); err != nil {
		return err
	}
	for _, r := range known {
		size += len(r.Result)
	}
	if err := x.settleVersion(ctx, known); err != nil {
		return err
	}
	s.known, s.used, s.bytes, s.loaded = known, map[string]bool{}, size, true
	s.inboxes = inboxesOf(known)
	return nil
}

// records returns all records of a run, by name.
func (rt *Runtime) records(ctx context.Context, run *runlane.Run) (records []runlane.StepRecord, err error) {
	q := lane.RecordQuery{
		PageQuery: lane.PageQuery{Environment: rt.environment, Limit: runlane.MaxPageLimit},
		RunID:     run.ID,
		CreatedAt: run.CreatedAt,
	}
	for {
		page, err := rt.storage().ListRecords(ctx, &q)
		if err != nil {
			return records, err
		}
		records = append(records, page.Items...)
		if q.After = page.Next; q.After == "" {
			return records, nil
		}
	}
}

func (x *execution) runStep(ctx context.Context, work runlane.StepWork) (json.RawMessage, error) {
	inside, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(x.handling, func() { cancel(context.Cause(x.handling)) })
	defer stop()
	return work(inside)
}

// keepStep records a call begun by recall. It returns the kept record: this one, or one that another attempt recorded
// first. Finished work is recorded even if the attempt has ended meanwhile.
func (x *execution) keepStep(ctx context.Context, r *runlane.StepRecord) (*runlane.StepRecord, error) {
	s := &x.steps
	s.mu.Lock()
	size := s.bytes + len(r.Result)
	if r.At = x.rt.now(); !r.At.After(s.last) {
		r.At = s.last.Add(time.Millisecond) // keeps the order within a millisecond
	}
	s.last = r.At
	s.mu.Unlock()
	if size > runlane.MaxStepsBytes {
		return nil, stepFault(x, r.Name, "store bulk elsewhere and record a reference",
			"would make the results of this run %d bytes, more than %d", size, runlane.MaxStepsBytes)
	}
	kept, err := x.keepOn(ctx, r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := x.checkKind(runlane.StepCall{Name: r.Name, Kind: r.Kind}, kept); err != nil {
		return nil, err
	}
	s.known[r.Name] = kept
	s.begun--
	s.bytes += len(kept.Result)
	return kept, nil
}

// keepOn writes a record and retries an unreachable storage for some seconds: an outage should not repeat finished
// work.
func (x *execution) keepOn(ctx context.Context, r *runlane.StepRecord) (*runlane.StepRecord, error) {
	limited := afterCommit(ctx)
	defer limited.stop()
	for wait := outcomeBackoffBase; ; wait = min(2*wait, outcomeBackoffMax) {
		kept, err := x.put(limited, r, false)
		if err == nil || !errors.Is(err, runlane.ErrStorageUnavailable) || !pause(limited, x.rt.world.around(wait)) {
			return kept, err
		}
	}
}

func (x *execution) put(ctx context.Context, r *runlane.StepRecord, replace bool) (*runlane.StepRecord, error) {
	r.Attempt = x.started.Counters.Attempts
	return x.rt.storage().KeepRecord(ctx, &lane.KeepCommand{
		RunKey:    lane.RunKey{Environment: x.rt.environment, RunID: x.started.ID},
		CreatedAt: x.started.CreatedAt,
		Record:    *r,
		Replace:   replace,
	})
}

// Snapshots implements runlane.StepHost.
func (x *execution) Snapshots(ctx context.Context) ([]runlane.StepRecord, error) {
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := x.load(ctx); err != nil {
		return nil, err
	}
	var records []runlane.StepRecord
	for _, r := range s.known {
		records = append(records, *lane.RecordAtRest(r))
	}
	return snapshotsOf(records), nil
}

func snapshotsOf(records []runlane.StepRecord) []runlane.StepRecord {
	records = slices.DeleteFunc(records, func(r runlane.StepRecord) bool {
		return r.Kind != runlane.StepKindSnapshot
	})
	inOrder(records)
	slices.Reverse(records)
	return records
}

// inOrder sorts records by attempt first, because the clocks of two attempts may differ.
func inOrder(records []runlane.StepRecord) {
	slices.SortFunc(records, func(a, b runlane.StepRecord) int {
		if order := a.Attempt - b.Attempt; order != 0 {
			return order
		}
		if order := a.At.Compare(b.At); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func stepFault(x *execution, name, hint, format string, args ...any) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("step %q ", name) + fmt.Sprintf(format, args...),
		RunID:   x.started.ID,
		Hint:    hint,
	}
}

// Steps returns the records of a run in order: steps, checkpoints and snapshots. A missing run is
// runlane.ErrRunNotFound; a storage that keeps no records is runlane.ErrCapabilityUnsupported.
func (r *Runs) Steps(ctx context.Context, id runlane.RunID) ([]runlane.StepRecord, error) {
	records, err := r.allRecords(ctx, id)
	return slices.DeleteFunc(records, isReceipt), err
}

// allRecords returns the records of all kinds in order.
func (r *Runs) allRecords(ctx context.Context, id runlane.RunID) ([]runlane.StepRecord, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if !r.rt.storage().Capabilities().SuspendsRuns {
		return nil, unsupported("the storage keeps no records of steps")
	}
	run, err := r.rt.bare(ctx, id)
	if err != nil {
		return nil, err
	}
	records, err := r.rt.records(ctx, run)
	inOrder(records)
	return records, err
}

// Snapshots returns the run's snapshots (runlane.Attempt.Snapshot), latest first. Errors as in [Runs.Steps].
func (r *Runs) Snapshots(ctx context.Context, id runlane.RunID) ([]runlane.StepRecord, error) {
	records, err := r.Steps(ctx, id)
	return snapshotsOf(records), err
}

// bare reads a run without payload and output.
func (rt *Runtime) bare(ctx context.Context, id runlane.RunID) (*runlane.Run, error) {
	if err := id.Validate(); err != nil {
		return nil, err
	}
	runs, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment: rt.environment, IDs: []runlane.RunID{id}, WithoutPayload: true,
	})
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, &runlane.Error{
			Code:    runlane.ErrRunNotFound,
			Message: "no such run",
			RunID:   id,
			Hint:    "check the run id and the environment; the run may have been pruned",
		}
	}
	return runs[0], nil
}
