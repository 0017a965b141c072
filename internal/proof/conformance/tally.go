package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action string
	Test   string
	Output string
}

// result counts cases: tests that have no tests below them.
type result struct {
	cases, failures, skips int
	failed                 bool   // the run as a whole
	output                 string // of what failed or was skipped
}

func (r *result) fault() error {
	switch {
	case r.failures > 0 || r.failed:
		return fmt.Errorf("%d of %d cases failed", r.failures, r.cases)
	case r.skips > 0:
		return fmt.Errorf("%d of %d cases were skipped", r.skips, r.cases)
	case r.cases == 0:
		return errors.New("there were no cases")
	default:
		return nil
	}
}

// tally reads the events of one run.
func tally(events io.Reader) (*result, error) {
	r := &result{}
	verdicts, parents, output := map[string]string{}, map[string]bool{}, map[string]*strings.Builder{}
	var order []string
	decoder := json.NewDecoder(events)
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return r, fmt.Errorf("go test -json: %w", err)
		}
		if output[e.Test] == nil {
			output[e.Test] = &strings.Builder{}
			order = append(order, e.Test)
		}
		switch e.Action {
		case "output":
			output[e.Test].WriteString(e.Output)
		case "pass", "fail", "skip":
			verdicts[e.Test] = e.Action
		}
		if slash := strings.LastIndexByte(e.Test, '/'); slash > 0 {
			parents[e.Test[:slash]] = true
		}
	}
	r.failed = verdicts[""] != "pass"
	for _, name := range order {
		verdict := verdicts[name]
		if verdict != "pass" {
			r.output += output[name].String()
		}
		if name == "" || parents[name] {
			continue
		}
		r.cases++
		switch verdict {
		case "pass":
		case "skip":
			r.skips++
		default: // one that never ended, because its process did
			r.failures++
		}
	}
	return r, nil
}
