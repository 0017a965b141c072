package projecttest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	quotedName = regexp.MustCompile("`([^`]+)`")
	testHeader = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	// namedTests are the names behind the word that introduces them in design.md.
	namedTests = regexp.MustCompile("Tests?:((?:[\\s,]*`[^`]+`)+)")
	tableRow   = regexp.MustCompile(`^\|(.*)\|$`)
	separator  = regexp.MustCompile(`^\|[\s|:-]+$`)
)

// proofs are the places where tests are defined: the file of each test function, and the sources that list cases and scenarios.
type proofs struct {
	tests map[string]string
	cases string
}

// has reports whether a test exists: a function, a row of one behind a slash, a case or a scenario.
func (p proofs) has(name string) bool {
	test, row, isRow := strings.Cut(name, "/")
	if file, ok := p.tests[test]; ok {
		return !isRow || strings.Contains(file, strconv.Quote(row))
	}
	return strings.Contains(p.cases, strconv.Quote(name))
}

// everyProof reads the tests of all modules, and the cases and scenarios.
func everyProof(t *testing.T) proofs {
	t.Helper()
	p := proofs{tests: map[string]string{}}
	var cases strings.Builder
	for name, text := range textFiles(t) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			for _, match := range testHeader.FindAllStringSubmatch(text, -1) {
				p.tests[match[1]] = text
			}
		case strings.HasPrefix(name, "lanetest/"), strings.HasPrefix(name, "internal/proof/scenarios/"):
			cases.WriteString(text)
		}
	}
	p.cases = cases.String()
	return p
}

// tableRows are the cells of the rows of all tables, headings and separators left out.
func tableRows(document string) (rows [][]string) {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		if !tableRow.MatchString(line) || separator.MatchString(line) || i+1 < len(lines) && separator.MatchString(lines[i+1]) {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

// A rule of design.md names the tests that hold it.
func TestDesign_NamesTestsThatExist(t *testing.T) {
	t.Parallel()
	p, names := everyProof(t), 0
	for _, list := range namedTests.FindAllStringSubmatch(read(t, "docs/internals/design.md"), -1) {
		for _, name := range quotedName.FindAllStringSubmatch(list[1], -1) {
			names++
			if !p.has(name[1]) {
				t.Errorf("design.md names %s, which does not exist", name[1])
			}
		}
	}
	if names < 200 {
		t.Errorf("design.md names %d tests: the test looks at the wrong thing", names)
	}
}
