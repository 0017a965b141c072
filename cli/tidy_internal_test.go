package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// A project whose modules could not be fetched is no success: what builds it next would fail.
func TestFetchSums_WithoutTheModules_IsAnError(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	folder := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module hello\n\ngo 1.26\n",
		"main.go": "package main\n\nimport _ \"example.invalid/none\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := fetchSums(t.Context(), folder)
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), "go mod tidy") {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetchSums(t.Context(), folder); err != nil {
		t.Error(err)
	}
}
