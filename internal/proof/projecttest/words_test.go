package projecttest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	notUsedRow = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| [^|]+ \\|$")
	quotedWord = regexp.MustCompile("`([^`]+)`")
)

// quotedElsewhere are files that need such a word, with the word. Written in pieces, or this file would be a finding.
var quotedElsewhere = map[string]string{
	"bench/peers/README.md":                "no" + "body",   // the account of that name
	"bench/peers/place.go":                 "no" + "body",   // the same
	"internal/proof/formats/lives_test.go": "some" + "body", // recorded: a recording never changes
}

// unusedWords matches the words that docs/glossary.md lists as not used, also where a line ends between them.
func unusedWords(t *testing.T) *regexp.Regexp {
	t.Helper()
	_, section, found := strings.Cut(read(t, "docs", "glossary.md"), "\n## Words that are not used\n")
	if !found {
		t.Fatal("docs/glossary.md does not say which words are not used")
	}
	var words []string
	for _, row := range notUsedRow.FindAllStringSubmatch(section, -1) {
		for _, quoted := range quotedWord.FindAllStringSubmatch(row[1], -1) {
			parts := strings.Fields(quoted[1])
			for i, part := range parts {
				parts[i] = regexp.QuoteMeta(part)
			}
			first := parts[0][:1] // http.NoBody is no such word
			parts[0] = "[" + strings.ToUpper(first) + first + "]" + parts[0][1:]
			word := strings.Join(parts, `(?:\s|//)+`)
			words = append(words, regexp.MustCompile(`\b\d\\\.`).ReplaceAllString(word, `(?:\d+|%d)\.`))
		}
	}
	if len(words) < 8 {
		t.Fatalf("docs/glossary.md lists %d words", len(words))
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(words, "|") + `)\b`)
}

// wordFaults finds the words in a text.
func wordFaults(unused *regexp.Regexp, name, text string) []string {
	var faults []string
	for _, at := range unused.FindAllStringIndex(text, -1) {
		found := strings.Join(strings.Fields(strings.ReplaceAll(text[at[0]:at[1]], "//", " ")), " ")
		if quotedElsewhere[name] != found {
			faults = append(faults, fmt.Sprintf("%s:%d: %q", name, 1+strings.Count(text[:at[0]], "\n"), found))
		}
	}
	return faults
}

func TestWords_ThatAreNotUsed_StandNowhere(t *testing.T) {
	t.Parallel()
	unused, texts := unusedWords(t), textFiles(t)
	for name, text := range texts {
		if !slices.Contains([]string{".go", ".md", ".yaml", ".tf"}, filepath.Ext(name)) || name == "docs/glossary.md" {
			continue
		}
		for _, fault := range wordFaults(unused, name, text) {
			t.Errorf("%s: docs/glossary.md says what to write", fault)
		}
	}
	for name, word := range quotedElsewhere {
		if !strings.Contains(texts[name], word) {
			t.Errorf("%s does not have %q: leave the exception out", name, word)
		}
	}
}

func TestWords_AreFound(t *testing.T) {
	t.Parallel()
	unused := unusedWords(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a worker, a person, http.NoBody, one's own", nil},
		{"x\n// Some" + "body else", []string{`a.go:2: "Some` + `body"`}},
		{"what\n\t// be" + "came of it", []string{`a.go:1: "what be` + `came of"`}},
		{"of\nits " + "own, of their" + " own", []string{`a.go:1: "of its` + ` own"`, `a.go:2: "of their` + ` own"`}},
		{`"failed for the %d` + `. time"`, []string{`a.go:1: "for the %d` + `. time"`}},
		{"for the 12" + ". time", []string{`a.go:1: "for the 12` + `. time"`}},
	} {
		if got := wordFaults(unused, "a.go", c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
