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
	fileModule = modulePath + "/sqlitelane" // released with it, under the same version
	mcpModule  = modulePath + "/mcp"        // as that
)

func versionCommand() *command {
	return &command{
		name:     "version",
		local:    true,
		short:    "Say which version this is",
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

// moduleVersion is the version of this module in the program; "devel" where it was built from a work tree.
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
