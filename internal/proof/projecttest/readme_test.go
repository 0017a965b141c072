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

// Each dependency earns its line: what go.mod requires and the README's table list the same modules.
func TestReadme_NamesEveryDependency(t *testing.T) {
	t.Parallel()
	required := directRequirements(read(t, "go.mod"))
	if len(required) < 3 {
		t.Fatalf("go.mod requires %v only: it was not understood", required)
	}
	var listed []string
	_, table, found := strings.Cut(read(t, "README.md"), "\n## Dependencies\n")
	if !found {
		t.Fatal("the README has no section Dependencies")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+/[^`]+)`").FindAllStringSubmatch(table, -1) {
		listed = append(listed, match[1])
	}
	for _, name := range required {
		if !slices.Contains(listed, name) {
			t.Errorf("the README's table of dependencies does not say why there is %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(required, name) {
			t.Errorf("the README's table of dependencies lists %s, which go.mod does not require", name)
		}
	}
}

// The linter's version is written once in the Makefile; the README repeats it for people.
func TestReadme_NamesThePinnedLinter(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`(?m)^GOLANGCI_VERSION := (v\S+)$`).FindStringSubmatch(read(t, "Makefile"))
	if pinned == nil {
		t.Fatal("the Makefile does not pin golangci-lint")
	}
	if !strings.Contains(read(t, "README.md"), "golangci-lint "+pinned[1]) {
		t.Errorf("the README does not say golangci-lint %s", pinned[1])
	}
	if strings.Contains(read(t, "go.mod"), "golangci") {
		t.Error("the linter is among the module's requirements")
	}
}
