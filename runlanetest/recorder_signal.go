package runlanetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/runlane/runlane-go"
)

// SentSignal is one call of Signal or SignalNode.
type SentSignal struct {
	// RunID is the run that it was sent to; "" for one to a node.
	RunID runlane.RunID
	// Node is the node that it was sent to; empty for one to a run.
	Node runlane.Node
	// Name is the signal's.
	Name string
	// Body is what was sent.
	Body json.RawMessage
	// Options are the caller's. The zero value for nil.
	Options runlane.SignalOptions
}

var _ runlane.Signaler = (*Recorder)(nil)

// Signal keeps a signal, and implements runlane.Signaler. A bad id, name or body is refused as a runtime does, and so
// is another body under an ID that was used; what was sent before is kept once. Runs are not looked for.
func (r *Recorder) Signal(
	_ context.Context, id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	if err := id.Validate(); err != nil {
		return err
	}
	return r.send(SentSignal{RunID: id}, value, options)
}

// SignalNode keeps a signal to a node of a flow, as [Recorder.Signal] does.
func (r *Recorder) SignalNode(
	_ context.Context, node runlane.Node, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	if err := node.Flow.Validate(); err != nil {
		return err
	}
	if err := runlane.ValidateNodeName(node.Name); err != nil {
		return err
	}
	return r.send(SentSignal{Node: node}, value, options)
}

// Signals are those that were accepted, in their order.
func (r *Recorder) Signals() []SentSignal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.signals)
}

func (r *Recorder) send(sent SentSignal, value runlane.SignalValue, options *runlane.SignalOptions) error {
	sent.Name = value.Name()
	if err := runlane.ValidateSignalName(sent.Name); err != nil {
		return err
	}
	body, err := value.Prepare()
	if err != nil {
		return err
	}
	sent.Body = body
	if options != nil {
		sent.Options = *options
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, before := range r.signals {
		same := before.RunID == sent.RunID && before.Node == sent.Node && before.Name == sent.Name
		if id := sent.Options.ID; id == "" || !same || before.Options.ID != id {
			continue
		}
		if bytes.Equal(before.Body, sent.Body) {
			return nil
		}
		e := runlane.NewConflict(runlane.ConflictSignal, fmt.Sprintf("signal %q was sent with this id and another body",
			sent.Name))
		e.RunID, e.Retryable, e.Hint = sent.RunID, false, "the first one counts"
		return e
	}
	r.signals = append(r.signals, sent)
	return nil
}
