package lane

import (
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// MaxPauses limits the pauses of an environment, without those that were resumed.
	MaxPauses = 200
	// MaxPauseReasonBytes limits the reason of a pause: all pauses are read together.
	MaxPauseReasonBytes = 300
	// MaxPausesAge is how old an answer of GetPauses may be that need not be exact.
	MaxPausesAge = 4 * time.Second
)

// Pause keeps the runs of a queue or of a task from starting. Either Queue or Task is set.
type Pause struct {
	Queue runlane.QueueName `json:"queue,omitempty"`
	Task  runlane.TaskID    `json:"task,omitempty"`
	// Since is when the pause began.
	Since time.Time `json:"since"`
	// Until ends the pause. Zero: it lasts until someone resumes.
	Until time.Time `json:"until,omitzero"`
	// Actor paused, for Reason.
	Actor runlane.Actor `json:"actor"`
	// Reason is a text for people.
	Reason string `json:"reason,omitempty"`
	// ResumedAt is when the pause ended. The entry stays until all runs that waited have a new wakeup.
	ResumedAt time.Time `json:"resumedAt,omitzero"`
	// After is where the search for such runs goes on.
	After runlane.Cursor `json:"after,omitempty"`
	// WakingUntil is until when one process searches.
	WakingUntil time.Time `json:"wakingUntil,omitzero"`
	// WokenAt is when all had a new wakeup. Only the entry of an ordered queue stays longer.
	WokenAt time.Time `json:"wokenAt,omitzero"`
}

// Active reports whether the pause holds runs back at an instant.
func (p *Pause) Active(at time.Time) bool {
	return p.ResumedAt.IsZero() && (p.Until.IsZero() || at.Before(p.Until))
}

// Covers reports whether the pause is of the queue or of the task.
func (p *Pause) Covers(queue runlane.QueueName, task runlane.TaskID) bool {
	return p.Queue != "" && p.Queue == queue || p.Task != "" && p.Task == task
}

// Same reports whether both are of the same queue or task.
func (p *Pause) Same(other *Pause) bool { return p.Queue == other.Queue && p.Task == other.Task }

// Pauses are all pauses of an environment. Version counts their changes; 0: there was none yet.
type Pauses struct {
	Version int64
	// Entries are of different queues and tasks.
	Entries []Pause
}

// PausesQuery asks for the pauses of an Environment. Unless Exact, the answer may be up to [MaxPausesAge] old.
type PausesQuery struct {
	Environment runlane.Environment
	Exact       bool
}

// PutPausesCommand replaces all pauses of an Environment. Pauses has the Version that was read.
type PutPausesCommand struct {
	Environment runlane.Environment
	Pauses      Pauses
}

// Validate returns runlane.ErrContractViolation if the pauses cannot be stored. Storages call it first.
func (c *PutPausesCommand) Validate() error {
	if c.Pauses.Version < 0 {
		return malformed(nil, "version is %d", c.Pauses.Version)
	}
	active := 0
	for i := range c.Pauses.Entries {
		p := &c.Pauses.Entries[i]
		if err := p.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(c.Pauses.Entries[:i], func(o Pause) bool { return p.Same(&o) }) {
			return malformed(nil, "two pauses of %s", p.Name())
		}
		if p.ResumedAt.IsZero() {
			active++
		}
	}
	if active > MaxPauses || len(c.Pauses.Entries) > 2*MaxPauses {
		return malformed(nil, "%d pauses, of which %d have not ended; at most %d", len(c.Pauses.Entries), active, MaxPauses)
	}
	return nil
}

func (p *Pause) validate() error {
	var err error
	switch {
	case (p.Queue == "") == (p.Task == ""):
		return malformed(nil, "a pause of a queue and a task, or of neither")
	case p.Since.IsZero():
		return malformed(nil, "a pause without its begin")
	case len(p.Reason) > MaxPauseReasonBytes:
		return malformed(nil, "the reason of a pause has %d bytes", len(p.Reason))
	case p.Queue != "":
		err = p.Queue.Validate()
	default:
		err = p.Task.Validate()
	}
	if err != nil {
		return malformed(err, "a pause without a usable name")
	}
	return nil
}

// Name is the queue or the task, for messages.
func (p *Pause) Name() string {
	if p.Task != "" {
		return fmt.Sprintf("task %q", p.Task)
	}
	return fmt.Sprintf("queue %q", p.Queue)
}

// AtRest returns the pauses as they are stored: times in UTC, cut off at the millisecond.
func (p Pauses) AtRest() Pauses {
	p.Entries = slices.Clone(p.Entries)
	for i := range p.Entries {
		e := &p.Entries[i]
		for _, at := range []*time.Time{&e.Since, &e.Until, &e.ResumedAt, &e.WakingUntil, &e.WokenAt} {
			*at = runlane.UTCMillis(*at)
		}
	}
	return p
}

// PausesChanged is the conflict of a put whose version is not the stored one.
func PausesChanged(stored int64, c *PutPausesCommand) error {
	e := runlane.NewConflict(
		runlane.ConflictPauses,
		fmt.Sprintf("the pauses are at version %d, not %d", stored, c.Pauses.Version),
	)
	e.Hint = "read them again"
	return e
}
