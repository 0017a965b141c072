package order_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/order"
	"github.com/runlane/runlane-go/runlanetest"
)

// world is what surrounds the shop: it counts, and fails on request.
type world struct {
	charges, refunds, recalls int
	token                     string
	sendErr                   error
}

func (w *world) Charge(context.Context, string, int64) (order.Payment, error) {
	w.charges++
	return order.Payment{ID: "pay_1"}, nil
}
func (w *world) Refund(context.Context, string) error { w.refunds++; return nil }
func (w *world) Recall(context.Context, string) error { w.recalls++; return nil }
func (w *world) Send(context.Context, string) (order.Parcel, error) {
	return order.Parcel{Tracking: "TR1"}, w.sendErr
}

func (w *world) AskForApproval(_ context.Context, _ order.Order, token string) error {
	w.token = token
	return nil
}

var big = order.Order{ID: "17", Customer: "ada", Cents: 200_00}

// start takes an order up to the question for a person. It returns the order's run and the one that waits.
func start(t *testing.T) (rt *runlanetest.Runtime, w *world, taken, placed runlane.RunID) {
	t.Helper()
	w = &world{}
	shop := &order.Shop{Bank: w, Mail: w, Carrier: w}
	rt = runlanetest.New(t, &runlanetest.Options{Handlers: shop.Handlers()})
	taken = rt.MustTrigger(order.Take.With(big), nil).ID
	rt.Settle()
	return rt, w, taken, rt.History(taken).Children[0].ID
}

func TestTake_Approved_IsSent(t *testing.T) {
	t.Parallel()
	rt, w, taken, placed := start(t)
	runlanetest.RequireWaiting(t, rt.History(placed), "decided", "withdrawn")
	if w := rt.History(placed).Waiting; !w.Has(runlane.WaitingInput) || w.Until.Sub(rt.Now()) != 72*time.Hour {
		t.Fatalf("waits for %+v", w)
	}
	rt.Advance(24 * time.Hour)
	rt.MustAnswer(w.token, order.Decided.With(order.Decision{Approved: true, By: "grace"}))
	run := rt.Finish(taken)
	receipt, err := order.Take.Result(&run.Run)
	if err != nil || receipt != (order.Receipt{Payment: "pay_1", Tracking: "TR1"}) {
		t.Errorf("got %+v, %v", receipt, err)
	}
	runlanetest.RequireSteps(t, rt.History(placed), "charge", "ask", "approval:limit", "approval")
	if w.charges != 1 || w.refunds != 0 {
		t.Errorf("%+v", w)
	}
}

func TestTake_EndsBadly_IsUndone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*testing.T, *runlanetest.Runtime, *world, runlane.RunID)
		undone runlane.ErrorCode
	}{
		"refused": {func(_ *testing.T, rt *runlanetest.Runtime, w *world, _ runlane.RunID) {
			rt.MustAnswer(w.token, order.Decided.With(order.Decision{By: "grace"}))
		}, "order_refused"},
		"withdrawn": {func(_ *testing.T, rt *runlanetest.Runtime, _ *world, id runlane.RunID) {
			rt.MustSignal(id, order.Withdrawn.With(order.Withdrawal{Reason: "found it cheaper"}))
		}, "order_withdrawn"},
		"no answer": {func(_ *testing.T, rt *runlanetest.Runtime, _ *world, _ runlane.RunID) {
			rt.Advance(72 * time.Hour)
		}, "order_expired"},
		"cancelled": {func(t *testing.T, rt *runlanetest.Runtime, _ *world, id runlane.RunID) {
			t.Helper()
			if _, err := rt.Runs().Cancel(t.Context(), id, &core.ChangeOptions{Reason: "fraud"}); err != nil {
				t.Fatal(err)
			}
		}, runlane.ErrRunCancelled},
		"not sent": {func(_ *testing.T, rt *runlanetest.Runtime, w *world, _ runlane.RunID) {
			w.sendErr = errors.New("no truck")
			rt.MustAnswer(w.token, order.Decided.With(order.Decision{Approved: true}))
		}, runlane.ErrRunFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, w, taken, placed := start(t)
			c.end(t, rt, w, placed)
			receipt, err := order.Take.Result(&rt.Finish(taken).Run)
			if err != nil || receipt.Undone != c.undone || receipt.Tracking != "" {
				t.Errorf("got %+v, %v", receipt, err)
			}
			if w.charges != 1 || w.refunds != 1 || w.recalls != 1 {
				t.Errorf("%+v", w)
			}
		})
	}
}

// The carrier's tasks are another program's: the test says how its run ends.
func TestPlace_SentByAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*runlanetest.Runtime, runlane.RunID)
		want error
	}{
		"sent": {func(rt *runlanetest.Runtime, id runlane.RunID) { rt.Complete(id, order.Parcel{Tracking: "TR2"}) }, nil},
		"lost": {func(rt *runlanetest.Runtime, id runlane.RunID) { rt.Fail(id, errors.New("no truck")) }, runlane.ErrRunFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{}
			shop := &order.Shop{Bank: w, Mail: w, Carrier: w}
			rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{order.Place.Handle(shop.Place)}})
			id := rt.MustTrigger(order.Place.With(order.Order{ID: "18", Cents: 5_00}), nil).ID
			rt.Settle()
			c.end(rt, rt.History(id).Children[0].ID)
			receipt, err := order.Place.Result(&rt.Finish(id).Run)
			if !errors.Is(err, c.want) || err == nil && receipt.Tracking != "TR2" {
				t.Errorf("got %+v, %v", receipt, err)
			}
		})
	}
}
