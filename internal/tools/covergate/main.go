// Command covergate fails when files of a package fall below a statement coverage by the tests that stand beside them.
//
//	go run ./internal/tools/covergate -package ./core/internal/reducer -files '*.go' -minimum 100
//
// Only the tests of the matching _test files are run: a statement that merely happens to be executed by some other test
// of the package is not covered. Statements that no test reached are listed as file:line.column ranges.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	var g gate
	flag.StringVar(&g.dir, "package", "./core/internal/reducer", "folder of the package")
	flag.StringVar(
		&g.files,
		"files",
		"*.go",
		"pattern of the files to judge; their tests are <name>_test.go of the same pattern",
	)
	flag.Float64Var(&g.minimum, "minimum", 100, "statement coverage in percent")
	flag.Parse()
	if err := g.run(); err != nil {
		fmt.Fprintln(os.Stderr, "covergate:", err)
		os.Exit(1)
	}
}

// gate is one judgement: these files, by their own tests, at least at this coverage.
type gate struct {
	dir     string
	files   string
	minimum float64
}

func (g gate) run() error {
	sources, tests, err := g.find()
	if err != nil {
		return err
	}
	names, err := testNames(tests)
	if err != nil {
		return err
	}
	profile, err := g.profile(names)
	if err != nil {
		return err
	}
	blocks, err := parseProfile(profile)
	if err != nil {
		return err
	}
	return g.judge(sources, blocks)
}

// find returns the base names of the files to judge and the paths of their tests.
func (g gate) find() (sources map[string]bool, tests []string, err error) {
	matches, err := filepath.Glob(filepath.Join(g.dir, g.files))
	if err != nil {
		return nil, nil, err
	}
	sources = map[string]bool{}
	for _, path := range matches {
		if strings.HasSuffix(path, "_test.go") {
			tests = append(tests, path)
			continue
		}
		sources[filepath.Base(path)] = true
	}
	switch {
	case len(sources) == 0:
		return nil, nil, fmt.Errorf("no file of %s matches %q", g.dir, g.files)
	case len(tests) == 0:
		return nil, nil, fmt.Errorf("no test file of %s matches %q", g.dir, g.files)
	}
	return sources, tests, nil
}

// profile runs the named tests and returns the text of their coverage profile.
func (g gate) profile(names []string) (string, error) {
	dir, err := os.MkdirTemp("", "covergate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "profile")

	run := exec.Command( //nolint:noctx // ends with this program
		"go", "test", "-short", "-count=1", "-covermode=set", "-coverprofile="+path,
		"-run", "^("+strings.Join(names, "|")+")$", ".",
	)
	run.Dir = g.dir
	if output, err := run.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("the tests of %s failed", g.files), errors.New(string(output)), err)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// judge prints each file's share and what is not covered, and fails below the minimum.
func (g gate) judge(sources map[string]bool, blocks []block) error {
	var total, covered int
	seen := map[string]bool{}
	for _, b := range blocks {
		if !sources[b.file] {
			continue
		}
		seen[b.file] = true
		total += b.statements
		if b.covered {
			covered += b.statements
			continue
		}
		fmt.Printf("not covered: %s\n", filepath.Join(g.dir, b.file)+":"+b.span)
	}
	if total == 0 {
		return fmt.Errorf("the profile knows no statement of %s: nothing was measured", g.files)
	}
	share := 100 * float64(covered) / float64(total)
	fmt.Printf(
		"%s/%s: %.1f %% of %d statements in %d files\n",
		strings.TrimPrefix(g.dir, "./"),
		g.files,
		share,
		total,
		len(seen),
	)
	if share < g.minimum {
		return fmt.Errorf("statement coverage is %.2f %%, at least %g %% is wanted", share, g.minimum)
	}
	return nil
}
