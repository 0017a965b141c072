package sqlitelane

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Scheme opens "sqlite:PATH", or with options "sqlite:PATH?sync=normal&ordered=orders,mail", see [Options].Sync and
// Ordered. PATH is absolute or relative to the process's folder and has no question mark. An empty path, an unknown
// option and anything that [Open] refuses are runlane.ErrConfigurationInvalid.
var Scheme = lane.Scheme{
	Name: "sqlite",
	Form: "sqlite:PATH",
	Open: func(ctx context.Context, rest string) (*lane.Lane, error) {
		path, options, err := parseName(rest)
		if err != nil {
			return nil, err
		}
		return Open(ctx, path, options)
	},
}

// parseName parses the text after "sqlite:".
func parseName(rest string) (path string, options *Options, err error) {
	const form = "write sqlite:state.db, or sqlite:state.db?sync=normal"
	path, query, _ := strings.Cut(rest, "?")
	switch {
	case path == "":
		return "", nil, invalid("the lane has no path behind \"sqlite:\"", form)
	case strings.HasPrefix(path, "//"):
		return "", nil, invalid(fmt.Sprintf("sqlite:%s is a URL, not the path of a file", path),
			"write sqlite:state.db, or sqlite:/folder/state.db")
	case path == ":memory:":
		return "", nil, invalid("a lane on SQLite needs a file", "use mem: for runs that end with the process")
	case strings.ContainsRune(path, 0):
		return "", nil, invalid("the path contains a zero byte", form)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: fmt.Sprintf("the lane's options %q cannot be read", query),
			Hint:    form,
			Cause:   err,
		}
	}
	options = &Options{}
	for name, given := range values {
		if err := options.set(name, given); err != nil {
			return "", nil, err
		}
	}
	return path, options, nil
}

// set sets the option with that name.
func (o *Options) set(name string, given []string) error {
	last := given[len(given)-1]
	switch name {
	case "sync":
		o.Sync = Sync(last)
		if len(given) > 1 || o.Sync != SyncFull && o.Sync != SyncNormal {
			return invalid(fmt.Sprintf("unknown sync mode %q", strings.Join(given, ",")),
				"use full or normal, or leave it out")
		}
	case "ordered":
		if len(given) > 1 || last == "" {
			return invalid("the option ordered names queues once", "write ordered=orders,mail, or leave it out")
		}
		for queue := range strings.SplitSeq(last, ",") {
			o.Ordered = append(o.Ordered, runlane.QueueName(queue))
		}
	default:
		return invalid(fmt.Sprintf("unknown option %q", name), "use sync or ordered")
	}
	return nil
}
