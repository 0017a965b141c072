package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/order"
)

// orders are taken, paid, approved or refused, sent or undone.
type orders struct {
	n  int
	rt *core.Runtime

	mu       sync.Mutex
	done     map[string]map[string]bool // what was done, by path and key
	again    map[string]int             // how often a key came again, by path
	asked    sync.WaitGroup             // answers under way
	refusals []error
}

func newOrders(n, otherwise int) *orders {
	return &orders{
		n:     cmp.Or(n, otherwise),
		done:  map[string]map[string]bool{},
		again: map[string]int{},
	}
}

// order i: three of four are large enough for a person to be asked, who refuses every third of them.
func (o *orders) order(i int) order.Order {
	wanted := order.Order{ID: fmt.Sprint(i), Customer: "ada", Cents: 200_00}
	if i%4 == 0 {
		wanted.Cents = 5_00
	}
	return wanted
}

func (o *orders) refused(i int) bool { return i%4 != 0 && i%3 == 0 }

// calls: each order is charged, and sent or recalled.
func (o *orders) calls() int { return 2 * o.n }

func (o *orders) begin(ctx context.Context, rt *core.Runtime) error {
	o.rt = rt
	for i := range o.n {
		options := runlane.TriggerOptions{RunID: takenID(i)}
		if _, err := rt.Trigger(ctx, order.Take.With(o.order(i)), &options); err != nil {
			return err
		}
	}
	return nil
}

func takenID(i int) runlane.RunID { return runlane.RunID(fmt.Sprint("order_", i)) }

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

// ask mails a person, who answers at once.
func (o *orders) ask(key string, body []byte) (any, error) {
	var token string
	if err := json.Unmarshal(body, &token); err != nil {
		return nil, err
	}
	var i int
	if _, err := fmt.Sscan(key, &i); err != nil {
		return nil, err
	}
	if !o.first("/ask", key) {
		return nil, nil
	}
	o.asked.Go(func() {
		decision := order.Decision{Approved: !o.refused(i), By: "grace"}
		if err := o.rt.Answer(context.Background(), token, order.Decided.With(decision), nil); err != nil {
			o.mu.Lock()
			o.refusals = append(o.refusals, err)
			o.mu.Unlock()
		}
	})
	return nil, nil
}

func (o *orders) look(ctx context.Context, rt *core.Runtime) (lines, faults []string, err error) {
	o.asked.Wait()
	for _, err := range o.refusals {
		faults = append(faults, "an answer was not taken: "+err.Error())
	}
	for i := range o.n {
		run, err := rt.Runs().Get(ctx, takenID(i))
		if err != nil {
			return nil, nil, err
		}
		got, err := order.Take.Result(run)
		want := order.Receipt{Payment: fmt.Sprint("pay_", i), Tracking: fmt.Sprint("TR", i)}
		if o.refused(i) {
			want = order.Receipt{Undone: "order_refused"}
		}
		if err != nil || got != want {
			faults = append(faults, fmt.Sprintf("order %d ended as %+v, %v, not %+v", i, got, err, want))
		}
		for path, done := range map[string]bool{
			"/charge": true,
			"/ask":    i%4 != 0,
			"/send":   !o.refused(i),
			"/recall": o.refused(i),
			"/refund": o.refused(i),
		} {
			if o.done[path][fmt.Sprint(i)] != done {
				faults = append(faults, fmt.Sprintf("order %d: %s is done %t, not %t", i, path, !done, done))
			}
		}
	}
	return []string{
		fmt.Sprintf("bank      %d charged once each, %d asked for again under their key; %d refunded",
			len(o.done["/charge"]), o.again["/charge"], len(o.done["/refund"])),
		fmt.Sprintf("orders    %d sent, %d refused and undone", len(o.done["/send"]), len(o.done["/recall"])),
	}, faults, nil
}
