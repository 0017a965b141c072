package projecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/runlane/runlane-go"

// programModules are the folders of the programs that are separate modules.
var programModules = []string{"cmd/runlane", "examples/webhooks/cmd/demo", "examples/worker", "examples/killed", "examples/invoices/cmd/invoices"}

// libraryModules are the folders of the separate modules that users import.
var libraryModules = []string{"mcp", "otel", "sqlitelane"}

// root is the project's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns a file of the project.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run returns the standard output of a command in a folder.
func run(t *testing.T, dir string, environment []string, name string, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), name, arguments...)
	c.Dir, c.Stdout, c.Stderr = dir, &stdout, &stderr
	c.Env = append(os.Environ(), environment...)
	if err := c.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, &stderr)
	}
	return stdout.String()
}

// projectFiles lists what is, or with the next commit would be, part of the repository.
func projectFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, file := range strings.Split(run(t, root(t), nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		if file == "" {
			continue
		}
		if info, err := os.Lstat(filepath.Join(root(t), file)); err != nil || !info.Mode().IsRegular() {
			continue // deleted but not yet committed, or a link
		}
		files = append(files, file)
	}
	if len(files) < 10 {
		t.Fatalf("git lists %d files: this cannot be the project", len(files))
	}
	return files
}

// goPackage is what these tests need of `go list`.
type goPackage struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Error      *struct{ Err string } // what keeps it from being loaded
}

// folder is the package's place in the project; "" is the root.
func (p goPackage) folder() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// goPackages lists the project's packages that have code outside tests.
func goPackages(t *testing.T) []goPackage {
	t.Helper()
	return packagesOf(t, "")
}

// packagesOf are those of the module in a folder of this one.
func packagesOf(t *testing.T, folder string) []goPackage {
	t.Helper()
	listed := run(t, filepath.Join(root(t), folder), nil, "go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps,Error", "./...")
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			packages = append(packages, p)
		}
	}
}
