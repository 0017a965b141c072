package main

import (
	"context"
	"strings"

	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/examples/webhooks/internal/demo"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// engine is what the demo runs on, given the name of a lane. One that is not known is an error when the lane is opened.
func engine(name string) demo.Engine {
	open := func(ctx context.Context) (*lane.Lane, error) {
		return lane.Open(ctx, name, sqlitelane.Scheme, memlane.Scheme, emulated)
	}
	switch scheme, _, _ := strings.Cut(name, ":"); scheme {
	case awslane.Scheme.Name:
		return onAWS(open)
	case sqlitelane.Scheme.Name:
		return demo.OnFile(name, open)
	default:
		return demo.InMemory(open)
	}
}
