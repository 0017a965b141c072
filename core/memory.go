package core

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// predecessors returns the runs whose work a retried run goes on with: the one that an operator retried, and those that
// it went on from, the latest first. A run that was pruned with what it remembered is an error: to start over silently
// would do again what was done.
func (rt *Runtime) predecessors(ctx context.Context, run *runlane.Run) (chain []*runlane.Run, err error) {
	for at := run; at.Source.Type == runlane.SourceManualRetry; at = chain[len(chain)-1] {
		from, err := rt.bare(ctx, at.Source.RunID)
		if isNotFound(err) || err == nil && !from.CreatedAt.Equal(at.Source.CreatedAt) {
			return nil, runlane.Permanent(&runlane.Error{
				Code:    runlane.ErrRunNotFound,
				Message: "the failed run that this one goes on from was pruned, and with it its steps",
				RunID:   at.Source.RunID,
				Hint:    "rerun this run to start over",
			})
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, from)
	}
	return chain, nil
}

// inherit adds what predecessors remember, except what an own record of that name replaces.
func (rt *Runtime) inherit(
	ctx context.Context, predecessors []*runlane.Run, known map[string]*runlane.StepRecord,
) error {
	for _, run := range predecessors {
		records, err := rt.records(ctx, run)
		if err != nil {
			return err
		}
		for _, r := range heritage(records) {
			if known[r.Name] == nil {
				r.Attempt = 0 // before all of this run's
				known[r.Name] = &r
			}
		}
	}
	return nil
}

// heritage returns the records that a retry takes over. A wait whose limit came before an answer is asked again, with a
// new limit, unless work was recorded after it: then the run had gone on without an answer.
func heritage(records []runlane.StepRecord) (taken []runlane.StepRecord) {
	inOrder(records)
	var undecided []runlane.StepRecord
	for _, r := range records {
		switch r.Kind {
		case runlane.StepKindWait:
			if limitCame(&r) {
				undecided = append(undecided, r)
				continue
			}
		case runlane.StepKindStep, runlane.StepKindSleep, runlane.StepKindSnapshot, runlane.StepKindCheckpoint:
		case runlane.StepKindVersion:
			taken = append(taken, r)
			continue
		default: // limits of waits, receipts, logs
			continue
		}
		taken = append(append(taken, undecided...), r)
		undecided = nil
	}
	return taken
}

func limitCame(wait *runlane.StepRecord) bool {
	var answer struct {
		TimedOut bool `json:"timedOut"`
	}
	return wait.Fault == "" && json.Unmarshal(wait.Result, &answer) == nil && answer.TimedOut
}

// addUnread adds signals that the predecessors got and no wait took. They come before those of the run itself.
func (x *execution) addUnread(ctx context.Context, mail *lane.Mail, names []string) error {
	for _, run := range x.steps.predecessors {
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.ContainsFunc(mail.Signals, func(s lane.Signal) bool { return s.Name == name })
		})
		if len(missing) == 0 {
			return nil
		}
		earlier, err := x.rt.storage().ReadMail(ctx, &lane.MailQuery{
			RunKey: lane.RunKey{Environment: x.rt.environment, RunID: run.ID}, Names: missing,
		})
		if err != nil {
			return err
		}
		for _, s := range earlier.Signals {
			s.Number -= math.MaxInt32
			mail.Signals = append(mail.Signals, s)
		}
	}
	return nil
}

// inheritCall returns the results of a call that a predecessor made and whose runs have all succeeded; nil for none.
func (x *execution) inheritCall(ctx context.Context, c *calling) ([]*runlane.Run, error) {
	for _, run := range x.steps.predecessors {
		read, err := x.rt.storage().ReadCalls(ctx, &lane.CallQuery{
			RunKey: lane.RunKey{Environment: x.rt.environment, RunID: run.ID}, Name: c.call.Name,
		})
		if err != nil {
			return nil, err
		}
		if len(read.Calls) == 0 {
			continue
		}
		if known := &read.Calls[0]; !known.Same(&c.call) || !known.Whole() {
			return nil, nil
		}
		earlier := calling{rt: c.rt, parent: run, request: c.request, calls: c.calls, call: read.Calls[0]}
		runs, err := earlier.read(ctx, true)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(runs, func(r *runlane.Run) bool {
			return r == nil || r.Status != runlane.StatusSucceeded
		}) {
			return nil, nil
		}
		return earlier.read(ctx, false)
	}
	return nil, nil
}
