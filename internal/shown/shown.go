// Package shown has the objects of the JSON contract, docs/json.md, for all that write them: the command line and the
// server.
package shown

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Version is the version of docs/json.md. It changes when a field changes its meaning or disappears, but not when one
// is added.
const Version = 1

// Object is one object of the contract: the fields of value behind the version and the kind.
func Object(kind string, value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	fields := bytes.TrimSpace(text.Bytes())
	if len(fields) < 2 || fields[0] != '{' {
		return nil, errors.New("only objects can be shown as JSON")
	}
	line := make([]byte, 0, len(fields)+len(kind)+len(`{"v":1,"kind":"",`))
	line = fmt.Appendf(line, `{"v":%d,"kind":%q`, Version, kind)
	if len(fields) > 2 {
		line = append(line, ',')
	}
	return append(line, fields[1:]...), nil
}

// Run is a run without what only its owner may know.
func Run(run *runlane.Run) *runlane.Run {
	seen := *run
	seen.Lease.Token = ""
	return &seen
}

// Event is an event without what only the run's owner may know, and its place in the history.
type Event struct {
	record runlane.EventRecord
	cursor runlane.Cursor
}

// EventOf shows an event.
func EventOf(record *runlane.EventRecord) Event {
	seen := *record
	switch body := record.Body.(type) {
	case *runlane.RunLeaseClaimed:
		seen.Body = &runlane.RunLeaseClaimed{Lease: withoutToken(body.Lease)}
	case *runlane.RunLeaseHeartbeat:
		seen.Body = &runlane.RunLeaseHeartbeat{Lease: withoutToken(body.Lease)}
	default: // the others hold no token
	}
	return Event{record: seen, cursor: core.EventCursor(record)}
}

func withoutToken(lease runlane.Lease) runlane.Lease {
	lease.Token = ""
	return lease
}

// MarshalJSON adds the cursor to the event's own fields.
func (e Event) MarshalJSON() ([]byte, error) {
	text, err := e.record.MarshalJSON()
	if err != nil || len(text) < 2 {
		return text, err
	}
	return append(fmt.Appendf(nil, `{"cursor":%q,`, string(e.cursor)), text[1:]...), nil
}

// Triggered is the outcome of a trigger.
type Triggered struct {
	Line    int                    `json:"line,omitempty"` // of a batch
	Run     runlane.RunID          `json:"runId"`
	Task    runlane.TaskID         `json:"taskId"`
	Status  runlane.Status         `json:"status"`
	Outcome runlane.TriggerOutcome `json:"outcome"`
	Differs bool                   `json:"payloadDiffers,omitempty"`
}

// TriggeredOf shows the result of a trigger. line is that of a batch, or 0.
func TriggeredOf(result *runlane.TriggerResult, line int) *Triggered {
	return &Triggered{
		Line:    line,
		Run:     result.Run.ID,
		Task:    result.Run.TaskID,
		Status:  result.Run.Status,
		Outcome: result.Outcome,
		Differs: result.PayloadDiffers,
	}
}

// Batch is the end of a batch of triggers.
type Batch struct {
	Batch    string `json:"batchId"`
	Created  int    `json:"created"`
	Existing int    `json:"existing"`
	Failed   int    `json:"failed"`
}

// Count adds the outcome of one item.
func (b *Batch) Count(outcome runlane.TriggerOutcome) {
	if outcome == runlane.TriggerCreated {
		b.Created++
	} else {
		b.Existing++
	}
}

// Change is what an operation did to one run.
type Change struct {
	Run     runlane.RunID          `json:"runId"`
	Made    runlane.RunID          `json:"madeRunId,omitempty"` // of a retry or a rerun
	Outcome runlane.TriggerOutcome `json:"outcome,omitempty"`   // whether this call made it
	Now     runlane.Status         `json:"status,omitempty"`
	Dry     bool                   `json:"dryRun,omitempty"`
	// Existing, of a signal: it was there already.
	Existing bool `json:"existing,omitempty"`
}

// Bulk counts what an operation did to many runs.
type Bulk struct {
	Verb    string         `json:"verb"`
	DryRun  bool           `json:"dryRun"`
	Matched int            `json:"matched"`
	Changed int            `json:"changed"`
	Skipped int            `json:"skipped"`
	Failed  int            `json:"failed"`
	AtLeast bool           `json:"atLeast,omitempty"`
	Next    runlane.Cursor `json:"next,omitempty"`
}

// Page ends a list that goes on.
type Page struct {
	Next runlane.Cursor `json:"next"`
}

// Fire is one time of a schedule.
type Fire struct {
	ID runlane.ScheduleID `json:"scheduleId"`
	At time.Time          `json:"fireTime"`
}

// KeyReset is an idempotency key that is free again.
type KeyReset struct {
	Task runlane.TaskID `json:"taskId"`
	Key  string         `json:"idempotencyKey"`
}
