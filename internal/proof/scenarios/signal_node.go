package scenarios

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// signalNode has a node that asks, is refused, and asks again when its flow was retried: signals and the token of its
// first run reach the second.
func signalNode(t *testing.T, h Harness) {
	var tokens []string
	asks, handler := job("scenario.node-asks", nil, func(ctx context.Context, a *runlane.Attempt) error {
		token, err := approved.Token(ctx, a, nil)
		if err != nil {
			return err
		}
		tokens = append(tokens, token)
		d, err := approved.Wait(ctx, a, nil)
		if err != nil {
			return err
		}
		if d.By != "ada" {
			return runlane.Permanent(errors.New("refused"))
		}
		_, err = withdrawn.Wait(ctx, a, nil)
		return err
	})
	sends, sender := job("scenario.node-sends", nil, func(ctx context.Context, a *runlane.Attempt) error {
		node := runlane.Node{Flow: "asking", Name: "asks"}
		return a.SignalNode(ctx, node, withdrawn.With(decision{}), &runlane.SignalOptions{ID: string(a.Run.ID)})
	})
	key := []byte(strings.Repeat("k", 32))
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler, sender}, TokenKeys: [][]byte{key}}, nil)
	f := runlane.NewFlow("asking")
	node := f.Add("asks", asks.With(jobPayload{}), nil)
	s.startFlow(f)
	first := s.execute(s.node("asking", "asks"))
	read, err := s.rt.ReadToken(tokens[0])
	if err != nil || read.Node != node || read.RunID != first.ID {
		t.Errorf("the token is for %+v, %v", read, err)
	}
	s.must(s.rt.SignalNode(s.Context(), node, approved.With(decision{By: "bob"}), nil))
	s.wantStatus(s.execute(s.get(first.ID)), runlane.StatusFailed)
	s.wantCode(s.rt.SignalNode(s.Context(), node, approved.With(decision{By: "ada"}), nil), runlane.ErrRunEnded)
	_, err = s.rt.Flows().Retry(s.Context(), "asking", nil)
	s.must(err)
	second := s.execute(s.node("asking", "asks"))
	s.wantCode(s.rt.Signal(s.Context(), first.ID, approved.With(decision{By: "ada"}), nil), runlane.ErrRunEnded)
	s.must(s.rt.Answer(s.Context(), tokens[0], approved.With(decision{By: "ada"}), nil))
	err = s.rt.Answer(s.Context(), tokens[1], approved.With(decision{By: "eve"}), nil)
	if !errors.Is(err, runlane.ConflictSignal) {
		t.Errorf("a token of the second run: %v", err)
	}
	s.wantStatus(s.execute(s.get(second.ID)), runlane.StatusReleased)
	s.wantStatus(s.execute(s.trigger(sends.With(jobPayload{}), nil)), runlane.StatusSucceeded)
	s.wantStatus(s.execute(s.get(second.ID)), runlane.StatusSucceeded)

	none := runlane.Node{Flow: "asking", Name: "none"}
	s.wantCode(s.rt.SignalNode(s.Context(), none, approved.With(decision{}), nil), runlane.ErrValidationFailed)
	none.Flow = "none"
	s.wantCode(s.rt.SignalNode(s.Context(), none, approved.With(decision{}), nil), runlane.ErrFlowNotFound)
	badName := approved.Named("a:b").With(decision{})
	s.wantCode(s.rt.SignalNode(s.Context(), node, badName, nil), runlane.ErrValidationFailed)
}
