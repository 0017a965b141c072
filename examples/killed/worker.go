package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/nightly"
	"github.com/runlane/runlane-go/examples/order"
	"github.com/runlane/runlane-go/lane"
)

const (
	// concurrency is how many attempts a worker has at once.
	concurrency = 4
	// workerVariable makes the program a worker of the example that it names.
	workerVariable = "RUNLANE_KILLED_WORKER"
	// sidesVariable is where the worker finds what it calls.
	sidesVariable = "RUNLANE_KILLED_SIDES"
)

// work executes what there is until ctx ends. It drains again and again: a drain finds what a worker before it has left
// as soon as that one's leases are over, and waits for no wakeup.
func work(ctx context.Context, name string) error {
	keys, err := core.TokenKeysFromEnv()
	if err != nil {
		return err
	}
	options := &core.Options{TokenKeys: keys}
	if remote := (caller{os.Getenv(sidesVariable)}); name == "order" {
		options.Handlers = (&order.Shop{Bank: remote, Mail: remote, Carrier: remote}).Handlers()
	} else {
		options.Handlers = (&nightly.App{Shops: remote.shops, Sum: remote.sum, Mail: remote.mail}).Handlers()
	}
	rt, err := open(ctx, os.Getenv(lane.Variable), options)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // told to stop before it had begun
	case err != nil:
		return err
	}
	defer rt.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		if err := rt.Work(ctx, &core.WorkOptions{
			Concurrency: concurrency,
			Drain:       true,
			DrainWait:   -1,
			Lease:       core.MinLease,
		}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	return nil
}

// caller is everything that the handlers call, by HTTP in the other process.
type caller struct{ address string }

func (c caller) call(ctx context.Context, path, key string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if content, err = io.ReadAll(response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return &runlane.Error{
			Code:    "refused",
			Message: fmt.Sprintf("%s answers %s: %s", path, response.Status, bytes.TrimSpace(content)),
		}
	}
	return json.Unmarshal(content, answer)
}

func (c caller) Charge(ctx context.Context, key string, cents int64) (p order.Payment, err error) {
	return p, c.call(ctx, "/charge", key, cents, &p)
}

func (c caller) Refund(ctx context.Context, key string) error {
	return c.call(ctx, "/refund", key, nil, new(any))
}

func (c caller) AskForApproval(ctx context.Context, o order.Order, token string) error {
	return c.call(ctx, "/ask", o.ID, token, new(any))
}

func (c caller) Send(ctx context.Context, key string) (p order.Parcel, err error) {
	return p, c.call(ctx, "/send", key, nil, &p)
}

func (c caller) Recall(ctx context.Context, key string) error {
	return c.call(ctx, "/recall", key, nil, new(any))
}

func (c caller) shops(ctx context.Context) (shops []nightly.Shop, err error) {
	return shops, c.call(ctx, "/shops", "", nil, &shops)
}

func (c caller) sum(ctx context.Context, s nightly.Shop) (t nightly.Totals, err error) {
	return t, c.call(ctx, "/sum", s.ID, nil, &t)
}

func (c caller) mail(ctx context.Context, key string, r nightly.Report) error {
	return c.call(ctx, "/mail", key, r, new(any))
}
