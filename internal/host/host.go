// Package host passes values of a host program, such as package functions or the command line, to the runtime and lane
// of an application's opener, whose options it cannot change. Applications use core.Options.Metrics, core.Options.Tasks
// and awslane.Options.Throttled.
package host

import "context"

type Host struct {
	// Metrics is a core.Metrics, which this package cannot import. It is used in addition to the runtime's own.
	Metrics any
	// Tasks is a []core.ClientTask, added to the runtime's own.
	Tasks any
	// Handlers is a []runlane.Handler, added to the runtime's own.
	Handlers any
	// Schedules is a []runlane.Schedule, added to the runtime's own.
	Schedules any
	// Failed receives the text of each failed attempt, before its outcome is written. It shows them itself: without a
	// logger of its own the runtime does not log these outcomes.
	Failed func(runID, text string)
	// Throttled is called for each request attempt that AWS throttled. nil is allowed.
	Throttled func()
}

type key struct{}

// With returns a context in which an opener uses the host's values.
func With(ctx context.Context, host Host) context.Context {
	return context.WithValue(ctx, key{}, host)
}

func Of(ctx context.Context) Host {
	host, _ := ctx.Value(key{}).(Host)
	return host
}
