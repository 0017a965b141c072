package projecttest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	glossaryRow = regexp.MustCompile("(?m)^\\| ([a-z]+(?: [a-z]+)?) \\| .+ \\| `([^`]+)` \\|$")
	typeOf      = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*)$`)
)

// Each word of docs/glossary.md names a declaration or a file that exists, and stands there once.
func TestGlossary_NamesWhatExists(t *testing.T) {
	t.Parallel()
	rows := glossaryRow.FindAllStringSubmatch(read(t, "docs", "glossary.md"), -1)
	if len(rows) < 15 {
		t.Fatalf("%d words", len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		word, where := row[1], row[2]
		if seen[word] {
			t.Errorf("%s stands there twice", word)
		}
		seen[word] = true
		if name := typeOf.FindStringSubmatch(where); name != nil {
			if !declares(t, name[1], name[2]) {
				t.Errorf("%s: %s is not declared", word, where)
			}
		} else if _, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(where))); err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// declares reports whether the product files of a package declare a type or a function of that name.
func declares(t *testing.T, pkg, name string) bool {
	t.Helper()
	folder := pkg
	if pkg == "runlane" {
		folder = ""
	}
	files, err := filepath.Glob(filepath.Join(root(t), folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^(type|func|var) ` + name + `\b|^\t` + name + `\s`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declaration.Match(content) {
			return true
		}
	}
	return false
}
