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
	// RunID of the receiver; "" for a node.
	RunID runlane.RunID
	// Node of the receiver; empty for a run.
	Node runlane.Node
	Name string
	Body json.RawMessage
	// Options of the caller. The zero value for nil.
	Options runlane.SignalOptions
}

var _ runlane.Signaler = (*Recorder)(nil)

// Signal records a signal. It refuses an invalid ID, name or body like a runtime, and another body under a used ID; a
// repeated signal is recorded once. It does not check that the run exists.
func (r *Recorder) Signal(
	_ context.Context, id runlane.RunID, value runlane.SignalValue, options *runlane.SignalOptions,
) error {
	if err := id.Validate(); err != nil {
		return err
	}
	return r.send(SentSignal{RunID: id}, value, options)
}

// SignalNode records a signal to a node of a flow, like [Recorder.Signal].
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

// Signals returns the accepted signals in order.
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
