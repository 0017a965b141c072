package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The module has no replacements, which `go install …@version` refuses, and its requirements are those of what it imports.
func TestModule_CanBeInstalled(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if word, _, _ := strings.Cut(line, " "); word == "replace" || word == "exclude" {
			t.Errorf("go install does not take %s", line)
		}
	}
	tidy := exec.CommandContext(t.Context(), filepath.Join("..", "..", "scripts", "tidy.sh"), "--check")
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Errorf("scripts/tidy.sh would change something: %v\n%s", err, out)
	}
}
