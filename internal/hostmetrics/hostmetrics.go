// Package hostmetrics carries what a program counts, package functions or the command line, to the runtime and the lane
// that an application's opener makes: such a program calls the opener and does not see its options. Applications set
// core.Options.Metrics and awslane.Options.Throttled.
package hostmetrics

import "context"

// Host is what the program counts.
type Host struct {
	// Metrics is a core.Metrics, which this package cannot name. The runtime uses it besides its own.
	Metrics any
	// Throttled is called for each attempt of a request that AWS throttled. nil: nothing is.
	Throttled func()
}

type key struct{}

// With makes what is opened under the context count for the host.
func With(ctx context.Context, host Host) context.Context {
	return context.WithValue(ctx, key{}, host)
}

// Of is the host of the context; the zero value outside one.
func Of(ctx context.Context) Host {
	host, _ := ctx.Value(key{}).(Host)
	return host
}
