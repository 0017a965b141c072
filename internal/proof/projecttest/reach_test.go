package projecttest

import (
	"slices"
	"strings"
	"testing"
)

// besideFunctions are the packages that answer people and programs. The functions execute and maintain, and a start of theirs pays for
// all they link.
var besideFunctions = []string{"server", "console", "cli", "mcp", "functionurl", "internal/shown", "internal/doctor", "internal/taskbook"}

// alsoOfFunctions are libraries that both have a use for.
var alsoOfFunctions = []string{"github.com/klauspost/compress", "github.com/oklog/ulid/v2", "golang.org/x/sync"}

// whatServes is what only the packages beside the functions link: they themselves, and the libraries below them.
func whatServes(packages []goPackage) []string {
	var only []string
	for _, folder := range besideFunctions {
		only = append(only, module+"/"+folder)
	}
	for _, p := range packages {
		if !inFolders("server", "console", "cli", "mcp")(p) {
			continue
		}
		for _, linked := range p.Deps {
			first, _, _ := strings.Cut(linked, "/")
			own := linked == module || strings.HasPrefix(linked, module+"/")
			if strings.Contains(first, ".") && !own && !matchesAny(linked, alsoOfFunctions) {
				only = append(only, linked)
			}
		}
	}
	slices.Sort(only)
	return slices.Compact(only)
}

// servingFaults names what a function's program links of it.
func servingFaults(program string, linked, only []string) []string {
	var faults []string
	for _, path := range linked {
		for _, pattern := range only {
			if path == pattern || strings.HasPrefix(path, pattern+"/") {
				faults = append(faults, program+" links "+path)
				break
			}
		}
	}
	return faults
}

// The programs of bridge, relay and tick link nothing that only serves: no
// routes, no pages, no tools for language models, no JSON Schema, no metrics library. What cmd/runlane holds of a project's program is
// TestProject_FunctionsLinkNoFile.
func TestFunctions_LinkNothingThatServes(t *testing.T) {
	t.Parallel()
	packages := goPackages(t)
	only := whatServes(slices.Concat(packages, packagesOf(t, "mcp")))
	for _, known := range []string{"github.com/santhosh-tekuri/jsonschema/v6", "maragu.dev/gomponents", "github.com/modelcontextprotocol/go-sdk/mcp"} {
		if !slices.Contains(only, known) {
			t.Errorf("%s is not among what serves: %q", known, only)
		}
	}
	programs := map[string][]string{}
	for _, p := range packages {
		if p.Name == "main" && inFolders("functions")(p) {
			programs[p.folder()] = p.Deps
		}
	}
	for _, name := range []string{"functions/bridge", "functions/relay", "functions/tick"} {
		if len(programs[name]) < 100 {
			t.Errorf("%s links %d packages: this cannot be the program", name, len(programs[name]))
		}
	}
	serving := slices.IndexFunc(packages, func(p goPackage) bool { return p.folder() == "functionurl/server" })
	if serving < 0 || len(servingFaults("the server", packages[serving].Deps, only)) < 6 {
		t.Error("the rule does not see what the function links that does serve")
	}
	for name, linked := range programs {
		for _, fault := range servingFaults(name, linked, append(only, "github.com/prometheus")) {
			t.Error(fault)
		}
	}
}
