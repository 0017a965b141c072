// Command program is the functions' program with the tasks of package chaos.
package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/chaos"
	"github.com/runlane/runlane-go/internal/proof/lambdatest"
)

const (
	runtimeVariable = "AWS_LAMBDA_RUNTIME_API"
	deadlineHeader  = "Lambda-Runtime-Deadline-Ms"
)

func main() {
	if ahead := duration(chaos.ForwardVariable); ahead != 0 {
		if os.Getenv(functions.RoleVariable) == functions.RoleTick {
			// the tick keeps a twentieth of the time until its deadline free, which looks long from the real time
			ahead += ahead / 10
		}
		putForward(ahead)
	}
	functions.Start(open)
}

// duration panics for what is none: the process then ends before its first event, which the test sees.
func duration(variable string) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// putForward stands between this process and the Runtime API, and tells deadlines by the clock of this machine.
func putForward(ahead time.Duration) {
	api := &url.URL{Scheme: "http", Host: os.Getenv(runtimeVariable)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) },
		ModifyResponse: func(r *http.Response) error {
			text := r.Header.Get(deadlineHeader)
			if text == "" {
				return nil
			}
			at, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			r.Header.Set(deadlineHeader, strconv.FormatInt(at+ahead.Milliseconds(), 10))
			return nil
		},
	}}
	go func() { panic(server.Serve(listener)) }() // ends with the process
	if err := os.Setenv(runtimeVariable, listener.Addr().String()); err != nil {
		panic(err)
	}
}

func open(ctx context.Context) (*core.Runtime, error) {
	l, err := awslane.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	ahead := duration(lambdatest.ClockVariable) + duration(chaos.ForwardVariable)
	return core.Open(ctx, l, &core.Options{
		World: &core.World{Now: func() time.Time { return time.Now().Add(ahead) }},
		Handlers: []runlane.Handler{
			chaos.Steady.Handle(work), chaos.Tight.Handle(work), chaos.Poison.Handle(poison),
		},
	})
}

func work(ctx context.Context, a *runlane.Attempt, job chaos.Job) error {
	half := time.Duration(job.Milliseconds) * time.Millisecond / 2
	if err := pause(ctx, half); err != nil {
		return err
	}
	if a.Run.Counters.Failures < job.Failures {
		return errors.New("as asked")
	}
	effect := lambdatest.Entry{Name: string(a.Run.ID), Attempt: a.Number, Process: os.Getpid()}
	if err := effect.Write(os.Getenv(lambdatest.LedgerVariable)); err != nil {
		return err
	}
	return pause(ctx, half)
}

// poison lets the others of its batch finish, mostly, and takes the process along without a word.
func poison(_ context.Context, _ *runlane.Attempt, job chaos.Job) error {
	<-time.After(time.Duration(job.Milliseconds) * time.Millisecond)
	os.Exit(3)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
