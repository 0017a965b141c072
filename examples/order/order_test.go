package order_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/order"
	"github.com/runlane/runlane-go/runlanetest"
)

// world is what surrounds the shop: it counts, and fails on request.
type world struct {
	charges, refunds, sent, recalls int
	token                           string
	sendErr                         error
	at                              func(point string) // called when something is done, before it answers
}

func (w *world) reach(point string) {
	if w.at != nil {
		w.at(point)
	}
}

func (w *world) Charge(context.Context, string, int64) (order.Payment, error) {
	w.charges++
	w.reach("charge")
	return order.Payment{ID: "pay_1"}, nil
}

func (w *world) Refund(context.Context, string) error {
	w.refunds++
	w.reach("refund")
	return nil
}

func (w *world) Recall(context.Context, string) error {
	w.recalls++
	w.reach("recall")
	return nil
}

func (w *world) Send(context.Context, string) (order.Parcel, error) {
	if w.sendErr == nil {
		w.sent++
	}
	w.reach("send")
	return order.Parcel{Tracking: "TR1"}, w.sendErr
}

func (w *world) AskForApproval(_ context.Context, _ order.Order, token string) error {
	w.token = token
	w.reach("ask")
	return nil
}

var big = order.Order{ID: "17", Customer: "ada", Cents: 200_00}

const flow = runlane.FlowID("order-17")

// begin starts an order.
func begin(t *testing.T) (*runlanetest.Runtime, *world) {
	t.Helper()
	w := &world{}
	shop := &order.Shop{Bank: w, Mail: w, Carrier: w}
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: shop.Handlers()})
	rt.MustStartFlow(order.Flow(big))
	return rt, w
}

// start takes an order up to the question for a person.
func start(t *testing.T) (*runlanetest.Runtime, *world) {
	t.Helper()
	rt, w := begin(t)
	rt.Settle()
	return rt, w
}

// placed is the run of the node that places the order.
func placed(t *testing.T, rt *runlanetest.Runtime) *runlanetest.History {
	t.Helper()
	node, _ := rt.Flow(flow).Node("place")
	return rt.History(node.RunID)
}

func cancel(t *testing.T, rt *runlanetest.Runtime) error {
	t.Helper()
	_, err := rt.Flows().Cancel(t.Context(), flow, &core.CancelFlowOptions{
		ChangeOptions: core.ChangeOptions{Reason: "fraud"},
	})
	return err
}

func TestFlow_Approved_IsSent(t *testing.T) {
	t.Parallel()
	rt, w := start(t)
	runlanetest.RequireWaiting(t, placed(t, rt), "decided", "withdrawn")
	if w := placed(t, rt).Waiting; !w.Has(runlane.WaitingInput) || w.Until.Sub(rt.Now()) != 72*time.Hour {
		t.Fatalf("waits for %+v", w)
	}
	rt.Advance(24 * time.Hour)
	rt.MustAnswer(w.token, order.Decided.With(order.Decision{Approved: true, By: "grace"}))
	runlanetest.RequireNodes(t, rt.FinishFlow(flow), "place succeeded", "undo cancelled")
	receipt, err := order.Place.Ref(order.Node("17")).Wait(t.Context(), rt)
	if err != nil || receipt != (order.Receipt{Payment: "pay_1", Tracking: "TR1"}) {
		t.Errorf("got %+v, %v", receipt, err)
	}
	runlanetest.RequireSteps(t, placed(t, rt), "charge", "ask", "approval:limit", "approval", "send")
	if w.charges != 1 || w.sent != 1 || w.refunds != 0 || w.recalls != 0 {
		t.Errorf("%+v", w)
	}
}

func TestFlow_EndsBadly_IsUndone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*testing.T, *runlanetest.Runtime, *world)
		code runlane.ErrorCode
	}{
		"refused": {func(_ *testing.T, rt *runlanetest.Runtime, w *world) {
			rt.MustAnswer(w.token, order.Decided.With(order.Decision{By: "grace"}))
		}, "order_refused"},
		"withdrawn": {func(t *testing.T, rt *runlanetest.Runtime, _ *world) {
			t.Helper()
			withdrawal := order.Withdrawn.With(order.Withdrawal{Reason: "found it cheaper"})
			if err := rt.SignalNode(t.Context(), order.Node("17"), withdrawal, nil); err != nil {
				t.Fatal(err)
			}
		}, "order_withdrawn"},
		"no answer": {func(_ *testing.T, rt *runlanetest.Runtime, _ *world) {
			rt.Advance(72 * time.Hour)
		}, "order_expired"},
		"not sent": {func(_ *testing.T, rt *runlanetest.Runtime, w *world) {
			w.sendErr = errors.New("no truck")
			rt.MustAnswer(w.token, order.Decided.With(order.Decision{Approved: true}))
		}, runlane.ErrTaskFailed},
		"cancelled alone": {func(t *testing.T, rt *runlanetest.Runtime, _ *world) {
			t.Helper()
			if _, err := rt.Runs().Cancel(t.Context(), placed(t, rt).ID, nil); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, w := start(t)
			c.end(t, rt, w)
			rt.FinishFlow(flow)
			if got := placed(t, rt).Failure.Code; got != c.code {
				t.Errorf("it ended with %q, want %q", got, c.code)
			}
			if w.charges != 1 || w.refunds != 1 || w.recalls != 1 {
				t.Errorf("%+v", w)
			}
		})
	}
}

// An order may be cancelled at any moment. What was charged is refunded, what was sent is called back, and an order of which
// nothing was done leaves nothing to undo. One that is just being sent is finished: it is paid and sent.
func TestFlow_CancelledAtEachPoint_IsUndone(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before it begins", "charge", "ask", "while a person is asked", "send", "recall", "refund"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			rt, w := begin(t)
			reached := 0
			w.at = func(at string) {
				if at == point {
					reached++
					if err := cancel(t, rt); err != nil {
						t.Errorf("cancelling at %s: %v", at, err)
					}
				}
			}
			switch point {
			case "before it begins":
				w.at(point)
			case "while a person is asked":
				rt.Settle()
				w.at(point)
			default:
				rt.Settle()
				if w.token != "" && !rt.Flow(flow).Cancelled {
					undone := point == "recall" || point == "refund"
					rt.MustAnswer(w.token, order.Decided.With(order.Decision{Approved: !undone, By: "grace"}))
				}
			}
			state := rt.FinishFlow(flow)
			want := world{charges: 1, refunds: 1, recalls: 1}
			switch point {
			case "before it begins":
				want = world{}
			case "send":
				want = world{charges: 1, sent: 1}
			}
			got := world{charges: w.charges, refunds: w.refunds, sent: w.sent, recalls: w.recalls}
			if state.Status != runlane.FlowCancelled || reached != 1 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, reached %d times: %+v, want %+v", state, reached, got, want)
			}
			if err := cancel(t, rt); !errors.Is(err, runlane.ErrValidationFailed) {
				t.Errorf("once more: %v", err)
			}
		})
	}
}
