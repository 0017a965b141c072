package runlanetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

// Steps returns the records of this attempt in order, without the ones from AttemptOptions.
func (a *Attempt) Steps() []runlane.StepRecord {
	a.steps.mu.Lock()
	defer a.steps.mu.Unlock()
	return slices.Clone(a.steps.recorded)
}

// stepHost keeps records for one attempt, by the rules of a runtime.
type stepHost struct {
	mu       sync.Mutex
	number   int
	began    int
	known    map[string]*runlane.StepRecord
	used     map[string]bool
	recorded []runlane.StepRecord
	waiting  []string // names of calls that suspended the attempt
}

func (h *stepHost) suspendedBy() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.waiting)
}

// suspend notes a call that suspends the attempt, and returns its error.
func (h *stepHost) suspend(name, reason string, w *runlane.Waiting) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, name)
	return &runlane.ReleaseError{Reason: reason, Waiting: w}
}

var _ runlane.StepHost = (*stepHost)(nil)

// plant adds a record of an earlier attempt. It gets the kind of the first call with its name.
func (h *stepHost) plant(name string, v any) error {
	if err := runlane.ValidateStepName(name); err != nil {
		return err
	}
	result, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h.put(&runlane.StepRecord{Name: name, Attempt: max(h.number-1, 1), Result: result})
	return nil
}

func (h *stepHost) put(r *runlane.StepRecord) {
	if h.known == nil {
		h.known, h.used = map[string]*runlane.StepRecord{}, map[string]bool{}
	}
	h.known[r.Name] = r
}

// begin returns the record for a call, or nil.
func (h *stepHost) begin(name string, kind runlane.StepKind) (*runlane.StepRecord, error) {
	if err := runlane.ValidateStepName(name); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.known[name]
	if known != nil && known.Kind == "" {
		known.Kind = kind
	}
	switch {
	case known != nil && known.Kind != kind:
		return nil, refusedStep("step %q is a %s, and there is a %s of that name", name, kind, known.Kind)
	case kind == runlane.StepKindCheckpoint:
		return known, nil
	case h.used[name]:
		return nil, refusedStep("%s %q is called twice in this attempt", kind, name)
	case known == nil && len(h.known) >= runlane.MaxSteps:
		return nil, refusedStep("step %q would be one more than %d", name, runlane.MaxSteps)
	}
	if h.used == nil {
		h.known, h.used = map[string]*runlane.StepRecord{}, map[string]bool{}
	}
	h.used[name] = true
	return known, nil
}

func refusedStep(format string, args ...any) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf(format, args...),
		Hint:    "give each its name, which never changes its meaning",
	}
}

func (h *stepHost) record(call runlane.StepCall, result json.RawMessage) (*runlane.StepRecord, error) {
	if err := tooLarge("result of a step", result, maxStoredPayload, ""); err != nil {
		return nil, err
	}
	r := &runlane.StepRecord{
		Name:    call.Name,
		Kind:    call.Kind,
		Attempt: h.number,
		At:      time.Now(),
		Type:    call.Type,
		Result:  result,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(r)
	h.recorded = append(h.recorded, *r)
	return r, nil
}

func (h *stepHost) forgo(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.used, name)
}

// Remember implements runlane.StepHost.
func (h *stepHost) Remember(
	ctx context.Context, call runlane.StepCall, work runlane.StepWork,
) (*runlane.StepRecord, error) {
	known, err := h.begin(call.Name, call.Kind)
	if err != nil || known != nil {
		return known, err
	}
	result, err := work(ctx)
	if err != nil {
		h.forgo(call.Name)
		return nil, err
	}
	return h.record(call, result)
}

// Sleep implements runlane.StepHost: it suspends, unless the sleep is among AttemptOptions.Steps.
func (h *stepHost) Sleep(_ context.Context, name string, d time.Duration) error {
	call := runlane.StepCall{Name: name, Kind: runlane.StepKindSleep}
	known, err := h.begin(name, call.Kind)
	if err != nil || known != nil || d <= 0 {
		return err
	}
	until := time.Now().Add(d)
	result, err := json.Marshal(until)
	if err == nil {
		_, err = h.record(call, result)
	}
	if err != nil {
		return err
	}
	w := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingTime}, Until: until}
	return h.suspend(name, "sleeps: "+name, w)
}

// Began implements runlane.StepHost.
func (h *stepHost) Began(context.Context) (int, error) { return h.began, nil }

// Checkpoint implements runlane.StepHost.
func (h *stepHost) Checkpoint(_ context.Context, call runlane.StepCall, result json.RawMessage) error {
	if _, err := h.begin(call.Name, call.Kind); err != nil {
		return err
	}
	_, err := h.record(call, result)
	return err
}

// Restore implements runlane.StepHost.
func (h *stepHost) Restore(_ context.Context, name string) (*runlane.StepRecord, error) {
	return h.begin(name, runlane.StepKindCheckpoint)
}

// Snapshots implements runlane.StepHost.
func (h *stepHost) Snapshots(context.Context) (records []runlane.StepRecord, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.recorded {
		if h.recorded[i].Kind == runlane.StepKindSnapshot {
			records = append(records, h.recorded[i])
		}
	}
	slices.Reverse(records)
	return records, nil
}
