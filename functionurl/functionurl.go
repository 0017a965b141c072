// Package functionurl is the server as an AWS Lambda function behind a function URL: the API and the console of package
// server, without a machine that runs all the time. It is the fourth function of the deployment template; ServerScopes
// sets what callers may do.
//
// IAM decides who may call the URL. A URL with the authentication NONE admits nobody.
//
// A program's main is one line, functionurl.Start(open, nil). It is a program of its own, so that bridge, relay and
// tick, which start more often, do not link the server.
package functionurl

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/server"
)

// Role is the server's value of functions.RoleVariable.
const Role = "server"

const (
	// ScopesVariable lists every caller's scopes, comma-separated: "read,trigger". Unset or empty means
	// server.ScopeRead alone.
	ScopesVariable = "RUNLANE_SERVER_SCOPES"
	// BufferedVariable is "on" if the URL's mode is BUFFERED, which AWS requires for a function in a VPC. Anything else
	// means RESPONSE_STREAM. Events do not show the mode, and Lambda passes a response of the wrong kind on unchanged.
	BufferedVariable = "RUNLANE_SERVER_BUFFERED"
)

// Start serves requests to the function's URL and does not return. open is the opener of bridge, relay and tick; see
// functions.Start. A runtime that cannot open fails the invocation: the caller gets the status 502, the function's
// alarm fires, and a gradual deployment is rolled back.
//
// options are the server's. nil means the zero value. A nil Access admits every caller of IAM with the scopes of
// [ScopesVariable]; a nil Root is the console.
func Start(open functions.Opener, options *server.Options) {
	if os.Getenv(BufferedVariable) == "on" {
		functions.StartRole(Role, open, serverHandler(options, Buffered))
	}
	functions.StartRole(Role, open, serverHandler(options, Streamed))
}

type handler[Out any] = func(context.Context, *events.LambdaFunctionURLRequest) (Out, error)

func serverHandler[Out any](
	options *server.Options, mode func(http.Handler) handler[Out],
) func(*core.Runtime) (handler[Out], error) {
	return func(rt *core.Runtime) (handler[Out], error) {
		h, err := newServer(rt, options)
		if err != nil {
			return nil, err
		}
		return mode(h), nil
	}
}

func newServer(rt *core.Runtime, options *server.Options) (http.Handler, error) {
	o := server.Options{}
	if options != nil {
		o = *options
	}
	if o.Access == nil {
		scopes, err := scopesOf(os.Getenv(ScopesVariable))
		if err != nil {
			return nil, err
		}
		o.Access = Access(scopes...)
	}
	if o.Root == nil {
		o.Root = console.New(rt, &console.Options{Logger: o.Logger})
	}
	h, err := server.New(rt, &o)
	if err != nil || !rt.Traces() {
		return h, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := rt.Trace(r.Context(), core.Work{Kind: core.WorkInvocation, Name: Role})
		defer end(core.WorkEnd{}) // before the end of the answer, after which Lambda may stop the process
		h.ServeHTTP(w, r.WithContext(ctx))
	}), nil
}

func scopesOf(text string) (scopes []server.Scope, err error) {
	known := map[server.Scope]bool{}
	for _, scope := range server.Scopes() {
		known[scope] = true
	}
	for word := range strings.SplitSeq(cmp.Or(text, string(server.ScopeRead)), ",") {
		scope := server.Scope(strings.TrimSpace(word))
		if !known[scope] {
			return nil, &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: fmt.Sprintf("%s has %q, which is no scope", ScopesVariable, scope),
				Hint:    "scopes are read, payloads, trigger, work and operate, with commas between them",
			}
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}

// reserve is the part of an invocation kept for output in progress: after the deadline Lambda responds instead.
const reserve = time.Second

// withReserve ends a request before its invocation.
func withReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-reserve))
	}
	return context.WithCancel(ctx)
}
