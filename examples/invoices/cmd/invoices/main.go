// Command invoices serves HTTP and executes its runs in one process. RUNLANE_LANE names where runs are kept: "mem:",
// "sqlite:invoices.db", or "aws:" for the table and queues of a deployment. With arguments it is the command line of
// these runs, such as: invoices runs list.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/invoices"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqlitelane"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(cli.Run(context.Background(), open, nil))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address())
	if err == nil {
		fmt.Println("invoices are taken on http://" + listener.Addr().String())
		err = serve(ctx, listener)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func address() string { return cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8080") }

// open is for both: for the service, and for each command.
func open(ctx context.Context) (*core.Runtime, error) {
	l, err := lane.Open(ctx, cmp.Or(os.Getenv(lane.Variable), "mem:"), memlane.Scheme, sqlitelane.Scheme, awslane.Scheme)
	if err != nil {
		return nil, err
	}
	keys, err := core.TokenKeysFromEnv() // RUNLANE_TOKEN_KEYS sign the links of approvals
	if err != nil {
		return nil, err
	}
	app := &invoices.App{Books: &books{}, Mail: terminal{}, Address: "http://" + address()}
	return core.Open(ctx, l, &core.Options{
		Handlers:  app.Handlers(),
		Schedules: []runlane.Schedule{invoices.Nightly},
		TokenKeys: keys,
	})
}

// serve answers requests and executes runs until ctx ends, and lets what is under way finish.
func serve(ctx context.Context, listener net.Listener) error {
	rt, err := open(ctx)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: (&invoices.Service{Runs: rt}).Handler(), ReadHeaderTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return rt.Work(ctx, nil) }) // executes, and ticks: schedules, retries, what a dead process left
	group.Go(func() error {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return web.Shutdown(limited)
	})
	err = group.Wait()
	return errors.Join(err, rt.Close(context.WithoutCancel(ctx)))
}

// books stand for the books of a company, terminal for its mail. A real system keeps the keys, and answers a repeated
// call as it did the first.
type books struct{}

func (*books) Book(_ context.Context, key string, _ invoices.Invoice) (string, error) {
	return "R-" + key, nil
}

func (*books) Late(context.Context) ([]invoices.Invoice, error) { return nil, nil }

type terminal struct{}

func (terminal) Invoice(_ context.Context, _ string, i invoices.Invoice, number string) error {
	_, err := fmt.Printf("mail to %s: invoice %s\n", i.Customer, number)
	return err
}

func (terminal) Reminder(_ context.Context, _ string, i invoices.Invoice) error {
	_, err := fmt.Printf("mail to %s: invoice %s is late\n", i.Customer, i.ID)
	return err
}

func (terminal) Approval(_ context.Context, i invoices.Invoice, link string) error {
	_, err := fmt.Printf("mail to the office: may invoice %s be sent? %s\n", i.ID, link)
	return err
}
