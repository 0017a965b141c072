package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
)

// contractVersion is the version of docs/json.md. It changes when a field changes its meaning or disappears, but not
// when one is added.
const contractVersion = 1

// object is one line of --json: the fields of value behind the version of the contract and the kind.
func object(kind string, value any) ([]byte, error) {
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
	line := fmt.Appendf(nil, `{"v":%d,"kind":%q`, contractVersion, kind)
	if len(fields) > 2 {
		line = append(line, ',')
	}
	return append(line, fields[1:]...), nil
}

// emit writes one object to the results.
func (s *session) emit(kind string, value any) error {
	line, err := object(kind, value)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "a result cannot be shown as JSON", Cause: err}
	}
	_, err = s.results.Write(append(line, '\n'))
	return err
}

// line writes one line of text to the results.
func (s *session) line(format string, args ...any) {
	fmt.Fprintf(s.results, format+"\n", args...) // the writer keeps its error for the end
}

// more is the last line of a list that goes on.
type more struct {
	Next runlane.Cursor `json:"next"`
}

// goesOn says how to see the next page.
func (s *session) goesOn(next runlane.Cursor) error {
	switch {
	case next == "":
		return nil
	case s.json:
		return s.emit("page", more{Next: next})
	default:
		s.note("there is more: add --after '%s', or --all", next)
		return nil
	}
}

// shownRun is a run without what only its owner may know.
func shownRun(run *runlane.Run) *runlane.Run {
	shown := *run
	shown.Lease.Token = ""
	return &shown
}

// shownEvent is an event without what only the run's owner may know.
func shownEvent(record runlane.EventRecord) runlane.EventRecord {
	switch body := record.Body.(type) {
	case *runlane.RunLeaseClaimed:
		lease := body.Lease
		lease.Token = ""
		record.Body = &runlane.RunLeaseClaimed{Lease: lease}
	case *runlane.RunLeaseHeartbeat:
		lease := body.Lease
		lease.Token = ""
		record.Body = &runlane.RunLeaseHeartbeat{Lease: lease}
	default: // the others hold no token
	}
	return record
}
