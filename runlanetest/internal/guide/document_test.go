package guide_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Blocks of Go and of text in the documents are lines of these files. (Those that are marked "run" are executed by docs-test.)
var quoted = map[string][]string{
	"tasks.md": {"tasks.go", "handlers.go", "drain.go"},
	"testing.md": {
		"guide_test.go", "lane_test.go", filepath.Join("..", "..", "example_test.go"), filepath.Join("..", "..", "testdata", "example.golden"),
	},
}

func TestDocuments_QuoteCode(t *testing.T) {
	t.Parallel()
	for document, files := range quoted {
		var code strings.Builder
		for _, name := range files {
			code.WriteString("\n" + flat(readFile(t, name)))
		}
		blocks := shownBlocks(readFile(t, filepath.Join("..", "..", "..", "docs", document)))
		if len(blocks) < 3 {
			t.Errorf("%s has %d blocks", document, len(blocks))
		}
		for _, block := range blocks {
			if !strings.Contains(code.String(), "\n"+flat(block)) {
				t.Errorf("%s: no such lines in %v:\n%s", document, files, block)
			}
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shownBlocks are the blocks of Go and of text that are not executed.
func shownBlocks(document string) []string {
	var blocks []string
	for i, part := range strings.Split("\n"+document, "\n```") {
		language, block, _ := strings.Cut(part, "\n")
		if i%2 == 1 && (language == "go" || language == "text") {
			blocks = append(blocks, block+"\n")
		}
	}
	return blocks
}

// flat takes indentation away, since what is quoted begins at the margin, and the marks of comments, since outputs of Examples are in
// comments.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		line = strings.TrimLeft(line, "\t")
		if line == "//" {
			line = ""
		}
		lines[i] = strings.TrimPrefix(line, "// ")
	}
	return strings.Join(lines, "\n")
}
