package projecttest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// otherModules are neither programs for users nor imported by them.
var otherModules = []string{
	"bench/peers",
	"console/browser",
	"otel/proof",
	"scripts/validate/cdk",
	"scripts/validate/tofu",
	"spec",
}

// A new module is on one of the three lists, or what it exports and imports would be held by no test.
func TestModules_AreOnTheLists(t *testing.T) {
	t.Parallel()
	var found []string
	for _, file := range projectFiles(t) {
		if path.Base(file) == "go.mod" && file != "go.mod" {
			found = append(found, strings.TrimSuffix(file, "/go.mod"))
		}
	}
	listed := slices.Concat(programModules, libraryModules, otherModules)
	slices.Sort(found)
	slices.Sort(listed)
	if !slices.Equal(found, listed) {
		t.Errorf("the project has the modules %q; the lists have %q", found, listed)
	}
}
