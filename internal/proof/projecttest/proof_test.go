package projecttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CONTRIBUTING's table "After a change" has every folder of internal/proof and internal/tools, and names nothing that is gone.
func TestContributing_NamesEveryProof(t *testing.T) {
	t.Parallel()
	text := read(t, "CONTRIBUTING.md")
	_, text, _ = strings.Cut(text, "## After a change\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, parent := range []string{"internal/proof", "internal/tools"} {
		folders, err := os.ReadDir(filepath.Join(root(t), parent))
		if err != nil || len(folders) < 5 {
			t.Fatalf("%d folders in %s, %v", len(folders), parent, err)
		}
		for _, folder := range folders {
			if name := parent + "/" + folder.Name(); !strings.Contains(text, name+"`") {
				t.Errorf("CONTRIBUTING.md, After a change, does not say when to run %s", name)
			}
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" `,()|\n", r) }) {
		if path, isPath := strings.CutPrefix(strings.TrimSuffix(word, "/..."), "./"); isPath || strings.HasPrefix(word, "internal/") {
			if _, err := os.Stat(filepath.Join(root(t), path)); err != nil {
				t.Error(err)
			}
		}
	}
}
