package projecttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Paths that exist on one machine only, and hosts of package registries. Written in pieces, or this file would be its own
// first finding. A path counts only at the start of a word: "framework/" is no machine's folder.
var (
	machinePath   = regexp.MustCompile(`/(` + strings.Join([]string{"work", "root", "home", "Users", "tmp"}, "|") + `)/[A-Za-z0-9_.]`)
	withinAPath   = regexp.MustCompile(`[A-Za-z0-9_.\-/$}*]$`)
	registryHosts = []string{
		"registry.npm" + "js", "py" + "pi.org", "python" + "hosted.org", "proxy.go" + "lang.org", "sum.go" + "lang.org", "repo.ma" + "ven",
		"repo1.ma" + "ven", "crates" + ".io", "ruby" + "gems.org", "docker" + ".io", "ghcr" + ".io", "quay" + ".io", "deb.deb" + "ian",
		"archive.ubu" + "ntu",
	}
)

// textFaults finds what a file may not say about the machine it was written on.
func textFaults(name, text string) []string {
	var faults []string
	fault := func(at int, what, found string) {
		faults = append(faults, fmt.Sprintf("%s:%d: %s %q", name, 1+strings.Count(text[:at], "\n"), what, found))
	}
	for _, at := range machinePath.FindAllStringIndex(text, -1) {
		if !withinAPath.MatchString(text[max(at[0]-1, 0):at[0]]) {
			fault(at[0], "absolute path", text[at[0]:at[1]])
		}
	}
	for _, host := range registryHosts {
		for at := strings.Index(text, host); at >= 0; {
			fault(at, "package registry", host)
			next := strings.Index(text[at+1:], host)
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	return faults
}

// textFiles maps the project's text files to their content.
func textFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, file := range projectFiles(t) {
		content, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.ContainsRune(content[:min(len(content), 8000)], 0) {
			texts[file] = string(content)
		}
	}
	return texts
}

func TestText_NamesNoMachine(t *testing.T) {
	t.Parallel()
	for name, text := range textFiles(t) {
		for _, fault := range textFaults(name, text) {
			t.Error(fault)
		}
	}
}

func TestText_TheRuleCanFail(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"see /" + "root/go/bin", "dir=/" + "tmp/x", `"/` + `work/main"`, "cd /" + "home/me/src", "https://registry.npm" + "js.org/x", "py" + "pi.org",
	} {
		if len(textFaults("x", "fine\n"+line)) == 0 {
			t.Errorf("%q was accepted", line)
		}
	}
	for _, line := range []string{
		"framework/ and $HOME/x and ${TMPDIR}/tmp/x", "the work/ folder", "a/root/b", "github.com/runlane/runlane-go", "go.yaml.in/yaml/v3",
		"http://127.0.0.1:4566/000000000000/default", "s3://bucket/tmp/x",
	} {
		if faults := textFaults("x", line); len(faults) > 0 {
			t.Errorf("%v", faults)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	noSlug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the fragments that headings of a Markdown text answer to.
func anchors(text string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		found = append(found, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return found
}

// linkFaults finds relative links of a Markdown file that lead nowhere. exists and load look into the project.
func linkFaults(name, text string, load func(path string) (content string, exists bool)) []string {
	var faults []string
	for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		target, fragment, _ := strings.Cut(match[1], "#")
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		path := name
		if target != "" {
			path = filepath.Join(filepath.Dir(name), target)
		}
		content, exists := load(path)
		switch {
		case !exists:
			faults = append(faults, fmt.Sprintf("%s: %s does not exist", name, match[1]))
		case fragment != "" && strings.HasSuffix(path, ".md") && !slices.Contains(anchors(content), fragment):
			faults = append(faults, fmt.Sprintf("%s: %s has no such heading", name, match[1]))
		}
	}
	return faults
}

func TestLinks_LeadSomewhere(t *testing.T) {
	t.Parallel()
	load := func(path string) (string, bool) {
		content, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			_, err = os.Stat(filepath.Join(root(t), path)) // a folder
		}
		return string(content), err == nil
	}
	checked := 0
	for name, text := range textFiles(t) {
		if !strings.HasSuffix(name, ".md") && name != "llms.txt" {
			continue
		}
		checked++
		for _, fault := range linkFaults(name, text, load) {
			t.Error(fault)
		}
	}
	if checked < 5 {
		t.Errorf("only %d Markdown files were checked", checked)
	}
}

// Comments give the source of a rule as docs/<file>.md, <section>.
var (
	sectionReference = regexp.MustCompile(`(docs/[a-z/-]+\.md), "?([A-Z][^\n]{0,60})`)
	commentBreak     = regexp.MustCompile(`\n\s*(//|#) ?`)
)

// referenceFaults finds references to sections that their document does not have.
func referenceFaults(name, text string, headings map[string][]string) []string {
	var faults []string
	for _, match := range sectionReference.FindAllStringSubmatch(commentBreak.ReplaceAllString(text, " "), -1) {
		if !slices.ContainsFunc(headings[match[1]], func(h string) bool { return strings.HasPrefix(match[2], h) }) {
			faults = append(faults, fmt.Sprintf("%s: %s has no section that %q begins with", name, match[1], match[2]))
		}
	}
	return faults
}

func TestReferences_NameExistingSections(t *testing.T) {
	t.Parallel()
	texts := textFiles(t)
	headings := map[string][]string{}
	for name, text := range texts {
		if strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md") {
			for _, match := range heading.FindAllStringSubmatch(text, -1) {
				headings[name] = append(headings[name], match[1])
			}
		}
	}
	for name, text := range texts {
		if strings.HasPrefix(name, "internal/proof/projecttest/") {
			continue // its fixtures
		}
		for _, fault := range referenceFaults(name, text, headings) {
			t.Error(fault)
		}
	}
}
