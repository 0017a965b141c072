package docstest_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

// indexFaults finds documents of a folder that its index does not link.
func indexFaults(index string, names []string) []string {
	var faults []string
	for _, name := range names {
		if path.Dir(name) == "docs" && path.Base(name) != "README.md" && !strings.Contains(index, "]("+path.Base(name)+")") {
			faults = append(faults, fmt.Sprintf("docs/README.md does not link %s", name))
		}
	}
	return faults
}

// Every document has its question in the index, and people and programs find the index.
func TestIndex_ListsEveryDocument(t *testing.T) {
	t.Parallel()
	for _, fault := range indexFaults(read(t, "docs", "README.md"), documents(t)) {
		t.Error(fault)
	}
	if !strings.Contains(read(t, "README.md"), "](docs/README.md)") {
		t.Error("README.md does not link docs/README.md")
	}
	for _, name := range []string{"docs/tutorial.md", "docs/concepts.md"} {
		if !strings.Contains(read(t, "llms.txt"), "]("+name+")") {
			t.Errorf("llms.txt does not link %s", name)
		}
	}
}
