package sqlitelane

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Scheme opens "sqlite:PATH" and, with options behind a question mark, "sqlite:PATH?sync=normal" (or full): see
// [Options].Sync. The path is as the system takes it, relative to the process's folder or absolute, and has no question
// mark. An empty path, an unknown option and what [Open] refuses are runlane.ErrConfigurationInvalid.
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

// parseName reads what stands behind "sqlite:".
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
		return "", nil, invalid("a lane on SQLite is a file", "use mem: for runs that end with the process")
	case strings.ContainsRune(path, 0):
		return "", nil, invalid("no path of a file has a zero byte", form)
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
		if name != "sync" {
			return "", nil, invalid(fmt.Sprintf("a lane on SQLite has no option %q", name), "the only one is sync")
		}
		options.Sync = Sync(given[len(given)-1])
		if len(given) > 1 || options.Sync != SyncFull && options.Sync != SyncNormal {
			return "", nil, invalid(fmt.Sprintf("no way to sync is named %q", strings.Join(given, ",")),
				"use full or normal, or leave it out")
		}
	}
	return path, options, nil
}
