// Package shown defines the objects of the JSON contract, docs/json.md, for the command line and the server.
package shown

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Version is the version of docs/json.md. It changes when a field changes its meaning or disappears, but not when one
// is added.
const Version = 1

// Object encodes one object of the contract: version, kind, and the fields of value.
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

// Run returns a copy of the run without its lease token, which only the lease's owner may know.
func Run(run *runlane.Run) *runlane.Run {
	seen := *run
	seen.Lease.Token = ""
	return &seen
}

// Event is an event with its cursor, without the lease token.
type Event struct {
	record runlane.EventRecord
	cursor runlane.Cursor
}

func EventOf(record *runlane.EventRecord) Event {
	seen := *record
	switch body := record.Body.(type) {
	case *runlane.RunLeaseClaimed:
		seen.Body = &runlane.RunLeaseClaimed{Lease: withoutToken(body.Lease)}
	case *runlane.RunLeaseHeartbeat:
		seen.Body = &runlane.RunLeaseHeartbeat{Lease: withoutToken(body.Lease)}
	default: // the others have no token
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

type Triggered struct {
	Line    int                    `json:"line,omitempty"` // in a batch
	Run     runlane.RunID          `json:"runId"`
	Task    runlane.TaskID         `json:"taskId"`
	Status  runlane.Status         `json:"status"`
	Outcome runlane.TriggerOutcome `json:"outcome"`
	Differs bool                   `json:"payloadDiffers,omitempty"`
}

// TriggeredOf shows the result of a trigger. line is its line in a batch, or 0.
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

type Batch struct {
	Batch    string `json:"batchId"`
	Created  int    `json:"created"`
	Existing int    `json:"existing"`
	Failed   int    `json:"failed"`
}

func (b *Batch) Count(outcome runlane.TriggerOutcome) {
	if outcome == runlane.TriggerCreated {
		b.Created++
	} else {
		b.Existing++
	}
}

type Change struct {
	Run     runlane.RunID          `json:"runId"`
	Made    runlane.RunID          `json:"madeRunId,omitempty"` // the new run of a retry or rerun
	Outcome runlane.TriggerOutcome `json:"outcome,omitempty"`   // whether this call created it
	Now     runlane.Status         `json:"status,omitempty"`
	Dry     bool                   `json:"dryRun,omitempty"`
	// Existing reports that a signal existed already.
	Existing bool `json:"existing,omitempty"`
}

// Bulk counts the results of an operation on many runs.
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

type Page struct {
	Next runlane.Cursor `json:"next"`
}

type Fire struct {
	ID runlane.ScheduleID `json:"scheduleId"`
	At time.Time          `json:"fireTime"`
}

type KeyReset struct {
	Task runlane.TaskID `json:"taskId"`
	Key  string         `json:"idempotencyKey"`
}

// Priority returns a run's priority as text, "" for none.
func Priority(priority int) string {
	if priority == 0 {
		return ""
	}
	return strconv.Itoa(priority)
}
