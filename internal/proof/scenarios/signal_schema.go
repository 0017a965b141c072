package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// signalSchema sends what does not fit by every way of core, and then what does. What came before the wait is judged by
// nobody.
func signalSchema(t *testing.T, h Harness) {
	got, token := &heardOf{}, ""
	judged := approved.WithSchema(runlane.SchemaOf[decision]())
	ask := func(ctx context.Context, a *runlane.Attempt) (err error) {
		if token, err = judged.Token(ctx, a, nil); err != nil {
			return err
		}
		d, err := judged.Wait(ctx, a, nil)
		got.add("%s", d.By)
		return err
	}
	asked, handler := job("scenario.signal-schema", nil, ask)
	bad := strings.Repeat(" ", runlane.MaxWaitSchemaBytes)
	invalid, refuses := job("scenario.signal-schemas", nil, func(ctx context.Context, a *runlane.Attempt) error {
		for _, schema := range []string{`{"$ref":"#"}`, `{"type":"text"}`, `1`, `null`, `{`, "{}" + bad} {
			_, err := approved.WithSchema(json.RawMessage(schema)).Wait(ctx, a, nil)
			if !errors.Is(err, runlane.ErrValidationFailed) {
				t.Errorf("schema %.20s: %v", schema, err)
			}
		}
		half := json.RawMessage(`{}` + bad[len(bad)/2:])
		_, one := approved.WithSchema(half).Wait(ctx, a, nil)
		_, other := withdrawn.WithSchema(half).Wait(ctx, a, nil)
		if !runlane.Suspended(one) || !errors.Is(other, runlane.ErrValidationFailed) {
			t.Errorf("two large schemas: %v, %v", one, other)
		}
		return one
	})
	s := openScene(t, h, core.Options{
		Handlers: []runlane.Handler{handler, refuses}, TokenKeys: [][]byte{[]byte(strings.Repeat("k", 32))},
	}, nil)
	s.wantStatus(s.execute(s.trigger(invalid.With(jobPayload{}), nil)), runlane.StatusReleased)

	run := s.execute(s.trigger(asked.With(jobPayload{}), nil))
	once := &runlane.SignalOptions{ID: "1"}
	for _, body := range []string{"true", "null", "{}", `{"by":null}`, `{"by":1}`} {
		value := runlane.NewRawSignal("approved", json.RawMessage(body))
		for way, err := range map[string]error{
			"a signal":        s.rt.Signal(t.Context(), run.ID, value, nil),
			"one with an id":  s.rt.Signal(t.Context(), run.ID, value, once),
			"an answer":       s.rt.Answer(t.Context(), token, value, nil),
			"by another type": s.rt.Signal(t.Context(), run.ID, runlane.NewSignal[json.RawMessage]("approved").With(json.RawMessage(body)), nil),
		} {
			e := s.wantCode(err, runlane.ErrValidationFailed)
			if e.RunID != run.ID || !strings.Contains(e.Message, `signal "approved" does not fit`) {
				t.Errorf("%s of %s: %v", way, body, err)
			}
		}
	}
	if now := s.get(run.ID); now.EventSequence != run.EventSequence {
		t.Errorf("a refused body made events: %+v", now)
	}
	s.signal(run.ID, runlane.NewRawSignal("another", json.RawMessage("1")), nil)
	s.must(s.rt.Answer(t.Context(), token, approved.With(decision{By: "ada"}), nil))
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)

	early := s.trigger(asked.With(jobPayload{}), nil)
	s.signal(early.ID, runlane.NewRawSignal("approved", json.RawMessage(`{"as":"before"}`)), nil)
	s.wantStatus(s.execute(early), runlane.StatusSucceeded)
	s.wantTold(got, "", "ada", "")
}
