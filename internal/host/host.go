// Package host carries what a program that calls an application's opener gives to the runtime and the lane that the
// opener makes: such a program, package functions or the command line, does not see the opener's options. Applications
// set core.Options.Metrics, core.Options.Tasks and awslane.Options.Throttled.
package host

import "context"

// Host is what the program gives.
type Host struct {
	// Metrics is a core.Metrics, which this package cannot name. The runtime uses it besides its own.
	Metrics any
	// Tasks is a []core.ClientTask, which this package cannot name either. The runtime has them besides its own.
	Tasks any
	// Handlers are more handlers: a []runlane.Handler. The runtime has them besides its own.
	Handlers any
	// Throttled is called for each attempt of a request that AWS throttled. nil: nothing is.
	Throttled func()
}

type key struct{}

// With makes what is opened under the context use what the host gives.
func With(ctx context.Context, host Host) context.Context {
	return context.WithValue(ctx, key{}, host)
}

// Of is the host of the context; the zero value outside one.
func Of(ctx context.Context) Host {
	host, _ := ctx.Value(key{}).(Host)
	return host
}
