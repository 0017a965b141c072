//go:build proof

package sqlitelane_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mostAdded is how much larger a stripped program may be that opens files.
const mostAdded = 6_000_000

// outside is a program of another module, which requires this project's as a user's does.
type outside struct {
	folder  string
	program string
}

// newOutside writes the program, whose lanes are the schemes, and requires the modules.
func newOutside(t *testing.T, imports, schemes string, modules map[string]string) *outside {
	t.Helper()
	o := &outside{folder: t.TempDir()}
	o.program = filepath.Join(o.folder, "program")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(o.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", `package main

import (
	"context"
	"os"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
`+imports+`)

func main() {
	l, err := lane.Open(context.Background(), os.Args[1], `+schemes+`)
	if err != nil {
		panic(err)
	}
	rt, err := core.Open(context.Background(), l, nil)
	if err != nil {
		panic(err)
	}
	if err := rt.Close(context.Background()); err != nil {
		panic(err)
	}
}
`)
	mod, sums := "module example.com/outside\n\ngo 1.26.0\n", ""
	for module, folder := range modules {
		folder, err := filepath.Abs(folder)
		if err != nil {
			t.Fatal(err)
		}
		mod += "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + folder + "\n"
		sums += content(t, filepath.Join(folder, "go.sum"))
	}
	write("go.mod", mod)
	write("go.sum", sums)
	o.run(t, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", o.program, ".")
	return o
}

// run executes a command in the program's folder. What the modules need is there already: they were built for this test.
func (o *outside) run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), name, arguments...)
	c.Dir = o.folder
	c.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, arguments, err, out)
	}
	return string(out)
}

func (o *outside) size(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(o.program)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A program that does not import the lane gets neither its code nor a requirement by it; one that does is at most 6 MB
// larger.
func TestModule_OutsideProgram_HasItsCodeAndRequirementsOnlyWhereItImportsIt(t *testing.T) {
	t.Parallel()
	const main, lane = "github.com/runlane/runlane-go", "github.com/runlane/runlane-go/sqlitelane"
	without := newOutside(t, "", "memlane.Scheme", map[string]string{main: ".."})
	with := newOutside(t, "\t\""+lane+"\"\n", "memlane.Scheme, sqlitelane.Scheme", map[string]string{main: "..", lane: "."})
	for _, command := range [][]string{
		{"go", "list", "-deps", "."},
		{"go", "mod", "graph"},
		{"go", "version", "-m", without.program},
	} {
		const sqlite, ours = "modernc.org/", "sqlitelane"
		has := without.run(t, command[0], command[1:]...)
		if strings.Contains(has, sqlite) || strings.Contains(has, ours) {
			t.Errorf("without the lane %q says\n%s", command, has)
		}
		if !strings.Contains(has, main) {
			t.Errorf("%q does not say what the program has:\n%s", command, has)
		}
		command[len(command)-1] = strings.Replace(command[len(command)-1], without.program, with.program, 1)
		has = with.run(t, command[0], command[1:]...)
		if !strings.Contains(has, sqlite) || !strings.Contains(has, ours) {
			t.Errorf("with the lane %q says\n%s", command, has)
		}
	}
	with.run(t, with.program, "sqlite:"+filepath.Join(with.folder, "runs.db"))
	without.run(t, without.program, "mem:")
	added := with.size(t) - without.size(t)
	if added > mostAdded || added <= 0 {
		t.Errorf("the lane adds %d bytes", added)
	}
	t.Logf("without the lane %d bytes, with it %d more", without.size(t), added)
}
