package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/order"
)

// orders are paid, approved, refused, withdrawn or cancelled, and sent or undone.
type orders struct {
	n  int
	rt *core.Runtime

	mu       sync.Mutex
	done     map[string]map[string]bool // what was done, by path and key
	again    map[string]int             // how often a key came again, by path
	asked    sync.WaitGroup             // answers under way
	refusals []error
}

// ending is how an order is to end.
type ending int

const (
	small     ending = iota // no one is asked
	approved                // the person who is asked says yes
	refused                 // or no
	withdrawn               // the customer withdraws it meanwhile
	cancelled               // an operator cancels all of it meanwhile
	endings
)

func endingOf(i int) ending { return ending(i) % endings }

func (e ending) sent() bool { return e == small || e == approved }

func newOrders(n, otherwise int) *orders {
	return &orders{
		n:     cmp.Or(n, otherwise),
		done:  map[string]map[string]bool{},
		again: map[string]int{},
	}
}

func (o *orders) order(i int) order.Order {
	wanted := order.Order{ID: fmt.Sprint(i), Customer: "ada", Cents: 200_00}
	if endingOf(i) == small {
		wanted.Cents = 5_00
	}
	return wanted
}

// calls: each order is charged, and sent or recalled.
func (o *orders) calls() int { return 2 * o.n }

func (o *orders) begin(ctx context.Context, rt *core.Runtime) error {
	o.rt = rt
	for i := range o.n {
		if _, err := rt.StartFlow(ctx, order.Flow(o.order(i)), nil); err != nil {
			return err
		}
	}
	return nil
}

// first notes that something is done under a key, and reports whether it is the first time.
func (o *orders) first(path, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done[path] == nil {
		o.done[path] = map[string]bool{}
	}
	if o.done[path][key] {
		o.again[path]++
		return false
	}
	o.done[path][key] = true
	return true
}

func (o *orders) sides() map[string]side {
	does := func(path string, answer func(key string) any) side {
		return func(key string, _ []byte) (any, error) {
			o.first(path, key)
			return answer(key), nil
		}
	}
	nothing := func(string) any { return nil }
	return map[string]side{
		"/charge": does("/charge", func(key string) any { return order.Payment{ID: "pay_" + key} }),
		"/refund": does("/refund", nothing),
		"/send":   does("/send", func(key string) any { return order.Parcel{Tracking: "TR" + key} }),
		"/recall": does("/recall", nothing),
		"/ask":    o.ask,
	}
}

// ask mails a person. What is to happen to the order happens at once.
func (o *orders) ask(key string, body []byte) (any, error) {
	var token string
	if err := json.Unmarshal(body, &token); err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(key)
	if err != nil {
		return nil, err
	}
	if !o.first("/ask", key) {
		return nil, nil
	}
	o.asked.Go(func() {
		if err := o.answer(context.Background(), i, token); err != nil {
			o.mu.Lock()
			o.refusals = append(o.refusals, fmt.Errorf("order %d: %w", i, err))
			o.mu.Unlock()
		}
	})
	return nil, nil
}

func (o *orders) answer(ctx context.Context, i int, token string) error {
	node := order.Node(fmt.Sprint(i))
	switch endingOf(i) {
	case withdrawn:
		withdrawal := order.Withdrawn.With(order.Withdrawal{Reason: "found it cheaper"})
		return o.rt.SignalNode(ctx, node, withdrawal, &runlane.SignalOptions{ID: "withdrawn"})
	case cancelled:
		_, err := o.rt.Flows().Cancel(ctx, node.Flow, nil)
		return err
	default:
		decision := order.Decision{Approved: endingOf(i) == approved, By: "grace"}
		return o.rt.Answer(ctx, token, order.Decided.With(decision), nil)
	}
}

// look compares each order with how it was to end. What is done again is bounded by the deaths: each of them interrupts
// as many attempts as the worker has at once, and each of these has one step under way.
func (o *orders) look(ctx context.Context, rt *core.Runtime, deaths int) (f *findings, err error) {
	o.asked.Wait()
	f = &findings{what: "orders"}
	for _, err := range o.refusals {
		f.wrong("an answer was not taken: %v", err)
	}
	for i := range o.n {
		if err := o.lookAt(ctx, rt, i, f); err != nil {
			return nil, err
		}
	}
	for path, again := range o.again {
		if again > deaths*concurrency {
			f.wrong("%s came %d times again under a key, after %d deaths", path, again, deaths)
		}
	}
	counts := [endings]int{}
	for i := range o.n {
		counts[endingOf(i)]++
	}
	f.say("bank      %d charged, %d of them asked for again under their key; %d refunded",
		len(o.done["/charge"]), o.again["/charge"], len(o.done["/refund"]))
	f.say("orders    %d sent; %d refused, %d withdrawn and %d cancelled, all undone",
		len(o.done["/send"]), counts[refused], counts[withdrawn], counts[cancelled])
	return f, nil
}

// lookAt looks at one order: how its runs have ended, and what was done.
func (o *orders) lookAt(ctx context.Context, rt *core.Runtime, i int, f *findings) error {
	state, err := rt.Flows().Get(ctx, order.Node(fmt.Sprint(i)).Flow)
	if err != nil {
		return err
	}
	place, _ := state.Node("place")
	undo, _ := state.Node("undo")
	run, err := rt.Runs().Get(ctx, place.RunID)
	if err != nil {
		return err
	}
	e, before := endingOf(i), len(f.faults)
	got, err := order.Place.Result(run)
	want := order.Receipt{Payment: fmt.Sprint("pay_", i), Tracking: fmt.Sprint("TR", i)}
	switch code := runlane.CodeOf(errors.Unwrap(err)); {
	case e.sent() && (err != nil || got != want || undo.Status != runlane.StatusCancelled),
		!e.sent() && undo.Status != runlane.StatusSucceeded,
		e == refused && code != "order_refused",
		e == withdrawn && code != "order_withdrawn",
		e == cancelled && (place.Status != runlane.StatusCancelled || state.Status != runlane.FlowCancelled):
		f.wrong("order %d ended as %+v, %v: %s", i, got, err, state)
	}
	for path, done := range map[string]bool{
		"/charge": true,
		"/ask":    e != small,
		"/send":   e.sent(),
		"/recall": !e.sent(),
		"/refund": !e.sent(),
	} {
		if o.done[path][fmt.Sprint(i)] != done {
			f.wrong("order %d: %s is done %t, not %t", i, path, !done, done)
		}
	}
	f.count(before)
	return nil
}
