package lives

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/lane"
)

// door is a process's way to the storage. What goes through it may be the last that the process does; on memory storage, which has no
// requests that could go wrong, calls go wrong here. What no life needs stays behind it.
type door struct{ lane.Storage }

func newDoor(p *process, s lane.Storage) door {
	return door{&lanefault.Around{Storage: s, Call: p.reach}}
}

// Capabilities leave out what no life needs.
func (d door) Capabilities() lane.StorageCapabilities {
	c := d.Storage.Capabilities()
	c.KeepsTasks, c.KeepsProgress, c.FeedsCommits = false, false, false
	return c
}

// Start does nothing: the storage is everybody's.
func (door) Start(context.Context) error { return nil }

// Close does nothing.
func (door) Close(context.Context) error { return nil }

// reach makes one call of a process, unless the process or the call meets something.
func (p *process) reach(_ context.Context, method string, argument any, call func() (any, error)) (any, error) {
	if run := changed(argument); run != nil { // to look at it
		p.life.book.touch(run.ID)
	}
	about := aboutOf(argument)
	if p.dies(deathBefore, method, about) {
		return nil, errDead()
	}
	if p.meets(failedCall, method, about) {
		return nil, unavailable(method, "not committed")
	}
	got, err := call()
	if c, ok := argument.(*lane.AppendCommand); ok && err == nil && c.Creates() {
		p.life.book.answers(c.Projected.ID) // it is there from now on, also for those who do not hear of it
	}
	if p.dies(deathAfter, method, about) {
		return nil, errDead()
	}
	switch {
	case err == nil && p.meets(unheard, method, about):
		return nil, unavailable(method, "unknown")
	case method == "ClaimOutboxMessages", method == "PruneRuns": // a second one would do more
	case err == nil && p.meets(repeated, method, about):
		_, _ = call() // the caller hears the first answer
	}
	return got, err
}

func unavailable(method, what string) *runlane.Error {
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   method + " went wrong",
		Retryable: true,
		Meta:      map[string]string{"outcome": what},
	}
}

// changed is the run as a write leaves it; nil: the call writes none.
func changed(argument any) *runlane.Run {
	switch c := argument.(type) {
	case *lane.AppendCommand:
		return c.Projected
	case *lane.ReserveCommand:
		return c.Projected
	case *lane.ClaimCommand:
		return c.Projected
	case *lane.HeartbeatCommand:
		return c.Projected
	}
	return nil
}

// aboutOf names what a call is about, so that the same call meets the same fault.
func aboutOf(argument any) string {
	if run := changed(argument); run != nil {
		return string(run.ID)
	}
	switch c := argument.(type) {
	case lane.RunKey:
		return string(c.RunID)
	case *lane.RunsQuery:
		return listed(c.IDs)
	case lane.OwnerKey:
		return c.Key
	case *lane.InspectQuery:
		return string(c.RunID)
	case *lane.EventQuery:
		return string(c.RunID)
	case *lane.ReleaseCommand:
		return string(c.RunID)
	case *lane.ReleaseDispatchCommand:
		return string(c.RunID)
	case *lane.MailQuery:
		return string(c.RunID)
	case *lane.SignalCommand:
		return string(c.RunID)
	case *lane.CallCommand:
		return string(c.RunID)
	case *lane.CallQuery:
		return string(c.RunID)
	case *lane.NotifyCommand:
		return string(c.RunID)
	case *lane.FlowCommand:
		return string(c.Flow.ID)
	case *lane.FlowRead:
		return string(c.FlowID)
	case *lane.KeepCommand:
		return string(c.RunID)
	case *lane.RecordQuery:
		return string(c.RunID)
	case *lane.PutScheduleCommand:
		return string(c.Record.ID)
	case lane.ScheduleKey:
		return string(c.ScheduleID)
	case *lane.ClaimOccurrenceCommand:
		return c.FireTime.String()
	case *lane.CompleteOccurrenceCommand:
		return c.FireTime.String()
	case *lane.ClaimOutboxCommand:
		return listed(c.IDs)
	case *lane.RequeueCommand:
		return listed(c.IDs)
	case *lane.MarkPublishedCommand:
		return listed(c.Messages)
	case *lane.MarkFailedCommand:
		return listed(c.Messages)
	case *lane.MarkDeadLetteredCommand:
		return listed(c.Messages)
	}
	return ""
}

// listed names several things by the first and their number.
func listed[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	switch first := any(list[0]).(type) {
	case lane.OutboxRef:
		return fmt.Sprint(first.ID, len(list))
	case lane.OutboxFailure:
		return fmt.Sprint(first.ID, len(list))
	default:
		return fmt.Sprint(first, len(list))
	}
}
