// Package functionurl is the server as a function of AWS Lambda, behind a function URL: the API and the console of
// package server, without a machine that runs all the time. The deployment template has it as a fourth function, where
// ServerScopes says what callers may do.
//
// IAM decides who may call the URL, and says to the function who calls. What comes without that is refused: a URL with
// the authentication NONE lets no caller in.
//
// A program's main is one line, functionurl.Start(open, nil). It is another program than that of bridge, relay
// and tick, which start more often and do not link what only serves.
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

// Role is the value of functions.RoleVariable in the function's environment.
const Role = "server"

const (
	// ScopesVariable lists what every caller may do, with commas between the scopes: "read,trigger". Unset or empty, it
	// is server.ScopeRead alone.
	ScopesVariable = "RUNLANE_SERVER_SCOPES"
	// BufferedVariable is "on" where the URL's mode is BUFFERED, as AWS wants it of a function in a VPC. Anything else
	// means RESPONSE_STREAM. Nothing in an event tells the two apart, and an answer of the wrong kind is shown to the
	// caller as it is.
	BufferedVariable = "RUNLANE_SERVER_BUFFERED"
)

// Start serves requests to the function's URL, and does not return. open is what bridge, relay and tick have; what
// holds for it is in functions.Start. A runtime that cannot open fails the invocation, which the caller sees as the
// status 502, the function's alarm sees, and a gradual deployment rolls back by.
//
// options are those of the server. nil means the zero value. Access nil lets in whom IAM let in, with the scopes of
// [ScopesVariable]; Root nil is the console. Mounts, HidePayloads and the others are as in any server.
func Start(open functions.Opener, options *server.Options) {
	if os.Getenv(BufferedVariable) == "on" {
		functions.StartRole(Role, open, served(options, Buffered))
	}
	functions.StartRole(Role, open, served(options, Streamed))
}

// handler answers events of a URL.
type handler[Out any] = func(context.Context, *events.LambdaFunctionURLRequest) (Out, error)

// served makes a Lambda handler of the server of a runtime.
func served[Out any](
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

// newServer is the handler with the function's defaults.
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
	return server.New(rt, &o)
}

// scopesOf reads the text of [ScopesVariable].
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

// reserve is kept of an invocation's time for what is on its way: after the deadline Lambda answers in our place.
const reserve = time.Second

// bounded ends a request before its invocation.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-reserve))
	}
	return context.WithCancel(ctx)
}
