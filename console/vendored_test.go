package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each file of others is as it was published, and stands in the table; the rest of the folder is the project's.
func TestVendored_AreAsPublished(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("vendored.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (assets/\S+) \|.*\| ([0-9a-f]{64}) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 {
		t.Fatal("the table has no rows")
	}
	listed := map[string]bool{}
	for _, row := range rows {
		file, err := os.ReadFile(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != row[2] {
			t.Errorf("%s is not what was published", row[1])
		}
		listed[row[1]] = true
	}
	files, err := filepath.Glob("assets/*.min.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !listed[filepath.ToSlash(file)] {
			t.Errorf("%s is not in the table", file)
		}
	}
	own, err := os.ReadFile("assets/console.js")
	if err != nil || strings.Contains(string(own), "eval(") {
		t.Fatal("the console's own script calls eval, which the policy forbids", err)
	}
}

// What a browser loads for its first page.
func TestFirstPage_IsSmall(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	sum := len(s.get(200, "/"))
	for _, name := range []string{"htmx.min.js", "console.js", "console.css", "icon.svg"} {
		sum += len(s.get(200, "/assets/"+name))
	}
	if most := 150 << 10; sum > most {
		t.Errorf("%d bytes, at most %d", sum, most)
	}
}
