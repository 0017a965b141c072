package cli

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/runlane/runlane-go/internal/shown"
)

// Paths of modules, for programs that embed the command line.
const (
	modulePath = "github.com/runlane/runlane-go"
	fileModule = modulePath + "/sqlitelane" // released with this module, in the same version
	mcpModule  = modulePath + "/mcp"        // likewise
)

func versionCommand() *command {
	return &command{
		name:     "version",
		local:    true,
		short:    "Show the version",
		examples: []string{"version --json"},
		act: func(*flag.FlagSet) action {
			return func(_ context.Context, s *session, _ []string) error {
				info, _ := debug.ReadBuildInfo()
				version := moduleVersion(info)
				if !s.json {
					s.line("runlane %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
					return nil
				}
				shown := struct {
					Version  string `json:"version"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
					Contract int    `json:"contract"`
				}{version, runtime.Version(), fmt.Sprintf("%s/%s", runtime.GOOS, runtime.GOARCH), shown.Version}
				return s.emit("version", &shown)
			}
		},
	}
}

// moduleVersion returns the version of this module in the program, or "devel" for a build from a work tree.
func moduleVersion(info *debug.BuildInfo) string {
	if info == nil {
		return "devel"
	}
	version := ""
	if info.Main.Path == modulePath {
		version = info.Main.Version
	}
	for _, dependency := range info.Deps {
		if dependency.Path == modulePath {
			version = dependency.Version
		}
	}
	if version == "" || version == "(devel)" {
		return "devel"
	}
	return version
}
