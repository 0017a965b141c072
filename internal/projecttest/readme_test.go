package projecttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")

// TestReadme_ExamplesCompile vets each Go program of the README as its reader would write it: in a module of their own.
func TestReadme_ExamplesCompile(t *testing.T) {
	t.Parallel()
	programs := 0
	for _, match := range goBlock.FindAllStringSubmatch(read(t, "README.md"), -1) {
		if !strings.HasPrefix(match[1], "package ") {
			continue
		}
		programs++
		dir := readersModule(t)
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(match[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, dir, []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, "go", "vet", "./...")
		if formatted := run(t, dir, nil, "gofmt", "-l", "."); formatted != "" {
			t.Errorf("program %d of the README is not formatted", programs)
		}
	}
	if programs == 0 {
		t.Fatal("the README shows no program")
	}
}

// readersModule is an empty module that requires this one, and the same versions of everything else.
func readersModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := strings.Replace(read(t, "go.mod"), "module "+module, "module example.org/reader", 1)
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, root(t))
	for name, content := range map[string]string{"go.mod": text, "go.sum": read(t, "go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

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
