package move

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
	"github.com/runlane/runlane-go/lane"
)

// Versions of the format, see docs/moving.md. Export writes the lowest one that can hold the content.
const (
	formatRuns  = 1
	formatFlows = 2
)

// exportPoll is how often Export checks a run for which it waits.
const exportPoll = 200 * time.Millisecond

// line is a line of the file. Exactly one field is set.
type line struct {
	Head     *head                   `json:"export,omitempty"`
	Task     *runlane.TaskRecord     `json:"task,omitempty"`
	Schedule *runlane.ScheduleRecord `json:"schedule,omitempty"`
	Run      *movedRun               `json:"run,omitempty"`
	Flow     *movedFlow              `json:"flow,omitempty"`
	End      *end                    `json:"end,omitempty"`
}

func (l *line) fields() (n int) {
	for _, has := range []bool{
		l.Head != nil, l.Task != nil, l.Schedule != nil, l.Run != nil, l.Flow != nil, l.End != nil,
	} {
		if has {
			n++
		}
	}
	return n
}

type head struct {
	Format      int                 `json:"v"`
	Environment runlane.Environment `json:"environment"`
	At          time.Time           `json:"at"`
	Ordered     []runlane.QueueName `json:"ordered,omitempty"`
}

// movedRun is a run as its history and records. Bodies are in base64 in the stored form, possibly encoded by a codec.
type movedRun struct {
	ID      runlane.RunID         `json:"runId"`
	Owns    bool                  `json:"ownsIdempotencyKey,omitempty"`
	Payload []byte                `json:"payload,omitempty"`
	Output  []byte                `json:"output,omitempty"`
	Events  []runlane.EventRecord `json:"events"`
	Records []movedRecord         `json:"records,omitempty"`
}

// movedRecord is a record of a run. Its result is in base64 in the stored form.
type movedRecord struct {
	runlane.StepRecord
	Result []byte `json:"result,omitempty"`
}

// end distinguishes a whole file from one that was cut off.
type end struct {
	Runs      int    `json:"runs"`
	Schedules int    `json:"schedules"`
	Tasks     int    `json:"tasks"`
	Flows     int    `json:"flows,omitempty"`
	SHA256    string `json:"sha256"` // of all lines before
}

type exporter struct {
	m     *Mover
	to    io.Writer
	sum   hash.Hash
	moved Moved
	leave bool // unread signals
}

// Export writes the environment as lines of JSON.
func (m *Mover) Export(ctx context.Context, to io.Writer, options Options) (*Moved, error) {
	x := &exporter{m: m, to: to, sum: sha256.New(), leave: options.LeaveSignals}
	ordered, err := m.Host.OrderedInUse(ctx)
	if err != nil {
		return nil, err
	}
	flows, err := x.flowIDs(ctx)
	if err != nil {
		return nil, err
	}
	first := &head{
		Format:      formatRuns,
		Environment: m.Environment,
		At:          options.At,
		Ordered:     ordered,
	}
	if len(flows) > 0 {
		first.Format = formatFlows
	}
	if err := x.write(&line{Head: first}); err != nil {
		return nil, err
	}
	if err := errors.Join(x.tasks(ctx), x.schedules(ctx)); err != nil {
		return nil, err
	}
	if err := x.runs(ctx, options.Wait); err != nil {
		return nil, err
	}
	if err := x.flows(ctx, flows); err != nil {
		return nil, err
	}
	last := &end{
		Runs:      x.moved.Runs,
		Schedules: x.moved.Schedules,
		Tasks:     x.moved.Tasks,
		Flows:     x.moved.Flows,
		SHA256:    hex.EncodeToString(x.sum.Sum(nil)),
	}
	return &x.moved, x.write(&line{End: last})
}

func (x *exporter) write(l *line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	_, _ = x.sum.Write(text)
	_, err = x.to.Write(text)
	return err
}

func (x *exporter) tasks(ctx context.Context) error {
	if !x.m.keepsTasks() {
		return nil
	}
	return x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := x.m.Host.Storage().ListTasks(ctx, q)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := x.write(&line{Task: &page.Items[i]}); err != nil {
				return "", err
			}
			x.moved.Tasks++
		}
		return page.Next, nil
	})
}

func (x *exporter) schedules(ctx context.Context) error {
	if !x.m.Host.Storage().Capabilities().KeepsSchedules {
		return nil
	}
	return x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := x.m.Host.Stored().ListSchedules(ctx, q)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if err := x.write(&line{Schedule: &page.Items[i]}); err != nil {
				return "", err
			}
			x.moved.Schedules++
		}
		return page.Next, nil
	})
}

// runs writes all runs. A run that moves in the list during the paging may be on no page, and attempts may make new
// runs, so the list is read until it has no new ones.
func (x *exporter) runs(ctx context.Context, wait bool) error {
	written := map[runlane.RunID]bool{}
	for {
		ids, err := x.ids(ctx, written)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			written[id] = true
			run, err := x.run(ctx, id, wait)
			if errors.Is(err, runlane.ErrRunNotFound) {
				continue // pruned meanwhile
			}
			if err != nil {
				return err
			}
			if err := x.write(&line{Run: run}); err != nil {
				return err
			}
			x.moved.Runs++
		}
	}
}

// ids returns the IDs of unknown runs in order of creation.
func (x *exporter) ids(ctx context.Context, known map[runlane.RunID]bool) ([]runlane.RunID, error) {
	type made struct {
		id runlane.RunID
		at time.Time
	}
	var all []made
	err := x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := x.m.Host.Stored().ListRuns(ctx, &lane.RunQuery{PageQuery: *q})
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if !known[page.Items[i].ID] {
				all = append(all, made{page.Items[i].ID, page.Items[i].CreatedAt})
			}
		}
		return page.Next, nil
	})
	slices.SortFunc(all, func(a, b made) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	all = slices.CompactFunc(all, func(a, b made) bool { return a.id == b.id }) // a run that moved in the list
	ids := make([]runlane.RunID, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids, err
}

// run reads a run while it does not change.
func (x *exporter) run(ctx context.Context, id runlane.RunID, wait bool) (*movedRun, error) {
	key := lane.RunKey{Environment: x.m.Environment, RunID: id}
	for {
		run, err := x.m.Host.Stored().GetRun(ctx, key)
		if err != nil {
			return nil, err
		}
		if run.Lease.Token == "" {
			out, changed, err := x.history(ctx, run)
			if !changed || err != nil {
				return out, err
			}
			continue
		}
		if !wait {
			e := runlane.NewConflict(runlane.ConflictLeaseOwnership, "an attempt executes run "+string(id))
			e.RunID, e.Hint = id, "stop the workers, let a tick recover lost runs, or wait for it"
			return nil, e
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(exportPoll):
		}
	}
}

func (x *exporter) history(ctx context.Context, run *runlane.Run) (out *movedRun, changed bool, err error) {
	out = &movedRun{ID: run.ID}
	err = x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
		page, err := x.m.Host.Stored().ListRunEvents(ctx, &lane.EventQuery{PageQuery: *q, RunID: run.ID})
		if err != nil {
			return "", err
		}
		out.Events = append(out.Events, page.Items...)
		return page.Next, nil
	})
	if err != nil || int64(len(out.Events)) != run.EventSequence {
		changed = err == nil && int64(len(out.Events)) > run.EventSequence
		return nil, changed, cmp.Or(err, incomplete(run, len(out.Events)))
	}
	out.takeBodies()
	folded, err := out.fold(len(out.Events))
	if err != nil {
		return nil, false, err
	}
	if !sameProjection(folded, run) {
		return nil, false, notAddingUp(run.ID)
	}
	if run.IdempotencyKey != "" {
		owner, err := x.m.Host.Stored().GetRunByIdempotencyKey(ctx, ownerOf(run))
		if err != nil && !errors.Is(err, runlane.ErrRunNotFound) {
			return nil, false, err
		}
		out.Owns = err == nil && owner.ID == run.ID
	}
	if out.Records, err = x.records(ctx, run); err == nil {
		err = x.unread(ctx, run)
	}
	return out, false, err
}

// records reads the records of a run that is not executing.
func (x *exporter) records(ctx context.Context, run *runlane.Run) (records []movedRecord, err error) {
	if !x.m.Host.Storage().Capabilities().SuspendsRuns {
		return nil, nil
	}
	for _, logs := range []bool{false, true} {
		err = x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
			page, err := x.m.Host.Stored().ListRecords(ctx, &lane.RecordQuery{
				PageQuery: *q, RunID: run.ID, CreatedAt: run.CreatedAt, Logs: logs,
			})
			if err != nil {
				return "", err
			}
			for _, r := range page.Items {
				records = append(records, movedRecord{r, r.Result})
			}
			return page.Next, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

func incomplete(run *runlane.Run, events int) error {
	if int64(events) > run.EventSequence {
		return nil // it has changed
	}
	return notAddingUp(run.ID)
}

func notAddingUp(id runlane.RunID) error {
	return &runlane.Error{
		Code:    runlane.ErrInvariantViolation,
		RunID:   id,
		Message: fmt.Sprintf("the history of run %q does not add up to the run", id),
		Hint:    "keep the run as it is and report this, with \"runlane runs events\" and \"runlane runs get\"",
	}
}

func ownerOf(run *runlane.Run) lane.OwnerKey {
	return lane.OwnerKey{Environment: run.Environment, TaskID: run.TaskID, Key: run.IdempotencyKey}
}

// takeBodies moves the bodies out of the events, because their JSON omits them.
func (r *movedRun) takeBodies() {
	for i := range r.Events {
		switch body := r.Events[i].Body.(type) {
		case *runlane.RunCreated:
			r.Payload = body.Payload
		case *runlane.RunSucceeded:
			r.Output = body.Output
		default: // has none
		}
	}
}

// giveBodies moves them back.
func (r *movedRun) giveBodies() {
	for i := range r.Events {
		switch body := r.Events[i].Body.(type) {
		case *runlane.RunCreated:
			body.Payload = r.Payload
		case *runlane.RunSucceeded:
			body.Output = r.Output
		default: // has none
		}
	}
}

// events returns the first n events without their IDs.
func (r *movedRun) events(n int) []runlane.Event {
	events := make([]runlane.Event, n)
	for i := range events {
		events[i] = r.Events[i].Event
	}
	return events
}

// fold returns the run after its first n events.
func (r *movedRun) fold(n int) (*runlane.Run, error) {
	return reducer.Project(nil, 0, r.events(n)...)
}

// sameProjection compares runs at rest, ignoring how a codec stores bodies.
func sameProjection(a, b *runlane.Run) bool {
	a, b = lane.RunAtRest(a), lane.RunAtRest(b)
	a.Sealed, b.Sealed = nil, nil
	if !bytes.Equal(a.Payload, b.Payload) || !bytes.Equal(a.Output, b.Output) {
		return false
	}
	a.Payload, a.Output, b.Payload, b.Output = nil, nil, nil, nil
	first, firstErr := json.Marshal(a)
	second, secondErr := json.Marshal(b)
	return firstErr == nil && secondErr == nil && bytes.Equal(first, second)
}
