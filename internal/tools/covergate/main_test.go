package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A separate package, with one statement that only a test of another file reaches.
var fixture = map[string]string{
	"go.mod": "module fixture\n\ngo 1.26\n",
	"project.go": `package fixture

func Sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
`,
	"project_test.go": `package fixture

import "testing"

func TestSign(t *testing.T) {
	if Sign(1) != 1 {
		t.Fatal("one is not positive")
	}
}
`,
	"other_test.go": `package fixture

import "testing"

func TestOther(t *testing.T) {
	if Sign(-1) != -1 {
		t.Fatal("minus one is not negative")
	}
}
`,
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGate_StatementReachedOnlyByOtherTests_Fails(t *testing.T) {
	t.Parallel()
	err := gate{dir: write(t, fixture), files: "project*.go", minimum: 100}.run()
	if err == nil || !strings.Contains(err.Error(), "66.67 %") {
		t.Fatalf("two of three statements are covered by the file's own tests, but the gate said: %v", err)
	}
}

func TestGate_AllStatementsReached_Passes(t *testing.T) {
	t.Parallel()
	files := map[string]string{"project_more_test.go": strings.ReplaceAll(fixture["other_test.go"], "TestOther", "TestMore")}
	for name, text := range fixture {
		files[name] = text
	}
	if err := (gate{dir: write(t, files), files: "project*.go", minimum: 100}).run(); err != nil {
		t.Fatal(err)
	}
}

func TestGate_FailingTest_Fails(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for name, text := range fixture {
		files[name] = strings.ReplaceAll(text, "Sign(1) != 1", "Sign(1) != 2")
	}
	if err := (gate{dir: write(t, files), files: "project*.go", minimum: 0}).run(); err == nil {
		t.Fatal("the gate passed although a test failed")
	}
}

func TestGate_NothingToMeasure_Fails(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]string{"no file": "absent*.go", "no test file": "project.go"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := (gate{dir: write(t, fixture), files: files, minimum: 0}).run(); err == nil {
				t.Fatal("the gate passed without measuring anything")
			}
		})
	}
}

func TestParseProfile_RepeatedBlock_IsCoveredWhenAnyIs(t *testing.T) {
	t.Parallel()
	got, err := parseProfile("mode: set\na/b/project.go:1.2,3.4 5 0\na/b/project.go:1.2,3.4 5 1\na/b/x.go:1.1,1.2 1 0\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []block{{"project.go", "1.2,3.4", 5, true}, {"x.go", "1.1,1.2", 1, false}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{})); diff != "" {
		t.Fatal(diff)
	}
	if _, err := parseProfile("mode: set\nnonsense\n"); err == nil {
		t.Fatal("a line that is no block was accepted")
	}
}
