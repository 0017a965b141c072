package projecttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	pathLike = regexp.MustCompile(`^[\w.][\w.-]*(/[\w.-]+)*$`)
	goName   = regexp.MustCompile(`^[a-z]*[A-Z]\w*$`)
	mdLink   = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
)

// agentsFaults finds paths of a document that do not exist, and names of Go that its row's files do not have.
func agentsFaults(folder, document string) []string {
	var faults []string
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(folder, filepath.FromSlash(path)))
		return err == nil
	}
	for _, line := range strings.Split(document, "\n") {
		var sources strings.Builder
		var names []string
		for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
			switch text := span[1]; {
			case goName.MatchString(text):
				names = append(names, text)
			case !pathLike.MatchString(text) || slices.Contains([]string{"runlane", "encoding/json"}, text):
				// a command, an option, a program or a package of the standard library
			case !exists(text):
				faults = append(faults, fmt.Sprintf("`%s` does not exist", text))
			case strings.HasSuffix(text, ".go"):
				source, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(text)))
				if err != nil {
					faults = append(faults, err.Error())
				}
				sources.Write(source)
			}
		}
		for _, name := range names {
			if name != "Makefile" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(sources.String()) {
				faults = append(faults, fmt.Sprintf("`%s` is in none of the files beside it", name))
			}
		}
		for _, link := range mdLink.FindAllStringSubmatch(line, -1) {
			if !exists(link[1]) {
				faults = append(faults, fmt.Sprintf("the link %s leads nowhere", link[1]))
			}
		}
	}
	return faults
}

// AGENTS.md says which files to read and to touch: they have to be there.
func TestAgents_NamesWhatExists(t *testing.T) {
	t.Parallel()
	document := read(t, "AGENTS.md")
	for _, row := range []string{
		"a type of event |", "a status |", "an option of tasks |", "a command of `runlane` |",
		"follow a call:", "follow a flow:", "follow a signal:", "follow a request to the API ", "follow a claim of a client:",
		"follow a page of the console ",
	} {
		if !strings.Contains(document, "\n| "+row) {
			t.Errorf("there is no row that begins with %q", row)
		}
	}
	for _, fault := range agentsFaults(root(t), document) {
		t.Error(fault)
	}
}
