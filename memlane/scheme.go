package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Scheme opens "mem:" by [New], a new lane each time. Text after the colon is runlane.ErrConfigurationInvalid.
var Scheme = lane.Scheme{
	Name: "mem",
	Open: func(_ context.Context, rest string) (*lane.Lane, error) {
		if rest != "" {
			return nil, &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: "\"mem:\" takes no name",
				Hint:    "write mem:, or sqlite: with a path for runs that outlive the process",
			}
		}
		return New(), nil
	},
}
