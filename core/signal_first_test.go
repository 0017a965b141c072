package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// interrupted is a storage in which both signals come while their names are read, the first one behind the look at it.
type interrupted struct {
	lane.Storage
	come func() error
}

func (s *interrupted) Unwrap() lane.Storage { return s.Storage }

func (s *interrupted) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	mail, err := s.Storage.ReadMail(ctx, q)
	if err != nil || len(q.Names) < 2 || s.come == nil {
		return mail, err
	}
	come := s.come
	s.come = nil
	if err := come(); err != nil {
		return nil, err
	}
	late, err := s.Storage.ReadMail(ctx, &lane.MailQuery{RunKey: q.RunKey, Names: q.Names[1:]})
	if err == nil {
		mail.Signals = late.Signals
	}
	return mail, err
}

// The first answer is taken although the look, which asks for one name after the other, has seen the later one alone.
func TestWaitAny_SignalsThatComeWhileItLooks_TheFirstCounts(t *testing.T) {
	t.Parallel()
	approve, reject := runlane.NewSignal[int]("approve"), runlane.NewSignal[int]("reject")
	task, heard := runlane.NewTask[int]("t", nil), ""
	storage := &interrupted{Storage: memlane.NewStorage(nil)}
	l := newLane(t, storage, memlane.NewTransport(nil))
	rt := openQuiet(t, l, core.Options{}, task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		var yes, no *int
		err := runlane.WaitAny(ctx, a, nil, approve.Into(&yes), reject.Into(&no))
		switch {
		case yes != nil:
			heard += "approve"
		case no != nil:
			heard += "reject"
		}
		return err
	}))
	storage.come = func() error {
		return errors.Join(
			rt.Signal(t.Context(), "run_a", approve.With(1), nil), rt.Signal(t.Context(), "run_a", reject.With(1), nil),
		)
	}
	if _, err := rt.RunNow(t.Context(), task.With(1), &runlane.TriggerOptions{RunID: "run_a"}); err != nil {
		t.Fatal(err)
	}
	if heard != "approve" {
		t.Errorf("the handler heard %q", heard)
	}
}
