package projecttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// directRequirements are the modules that go.mod requires without "// indirect".
func directRequirements(gomod string) []string {
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+/\S+) v\S+$`).FindAllStringSubmatch(gomod, -1) {
		found = append(found, match[1])
	}
	return found
}

// Each dependency earns its line: go.mod and docs/dependencies.md list the same modules.
func TestDependencies_EachHasItsReason(t *testing.T) {
	t.Parallel()
	required := directRequirements(read(t, "go.mod"))
	if len(required) < 3 {
		t.Fatalf("go.mod requires %v only: it was not understood", required)
	}
	var listed []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+/[^`]+)`").FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		listed = append(listed, match[1])
	}
	for _, name := range required {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/dependencies.md does not have %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(required, name) {
			t.Errorf("docs/dependencies.md lists %s, which go.mod does not require", name)
		}
	}
}

// The linter's version is written once in the Makefile; docs/dependencies.md repeats it for people.
func TestDependencies_NameThePinnedLinter(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`(?m)^GOLANGCI_VERSION := (v\S+)$`).FindStringSubmatch(read(t, "Makefile"))
	if pinned == nil {
		t.Fatal("the Makefile does not pin golangci-lint")
	}
	if !strings.Contains(read(t, "docs/dependencies.md"), "golangci-lint "+pinned[1]) {
		t.Errorf("docs/dependencies.md does not have golangci-lint %s", pinned[1])
	}
	if strings.Contains(read(t, "go.mod"), "golangci") {
		t.Error("the linter is among the module's requirements")
	}
}
