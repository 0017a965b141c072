package projecttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// provenDocuments say what is promised or defended, with names of tests in backticks that look like one of these.
var provenDocuments = []string{"docs/guarantees.md", "docs/security.md"}

var (
	testWord = regexp.MustCompile(`^(Test|Fuzz)[A-Z]`)
	// caseWord is a case of the conformance suites or a scenario: a long name in one word, or a sentence.
	caseWord = regexp.MustCompile(`^([A-Z][a-z]+[A-Z0-9]\w{12,}|[a-z]+( [^ ]+){2,})$`)
)

// provenFaults are names of tests that are not there, and rows whose column of tests names none.
func provenFaults(document string, column int, p proofs) (faults []string) {
	for _, name := range quotedName.FindAllStringSubmatch(document, -1) {
		if (testWord.MatchString(name[1]) || caseWord.MatchString(name[1])) && !p.has(name[1]) {
			faults = append(faults, name[1]+" does not exist")
		}
	}
	for _, cells := range tableRows(document) {
		if len(cells) <= column {
			continue // a table of another form
		}
		proven := slices.ContainsFunc(quotedName.FindAllStringSubmatch(cells[column], -1), func(name []string) bool { return p.has(name[1]) })
		if !proven {
			faults = append(faults, fmt.Sprintf("%q names no test", cells[0]))
		}
	}
	return faults
}

// Each promise has a test that attacks it, each line of the threat model one that holds it, and all of them exist.
func TestGuarantees_EachIsAttackedByTestsThatExist(t *testing.T) {
	t.Parallel()
	p := everyProof(t)
	for i, name := range provenDocuments {
		document := read(t, name)
		if rows := len(tableRows(document)); rows < 12 {
			t.Errorf("%s has %d rows", name, rows)
		}
		column := []int{1, 3}[i]
		if name == "docs/guarantees.md" {
			_, document, _ = strings.Cut(document, "\n## The promises\n")
			document, _, _ = strings.Cut(document, "\n## ")
			for _, fault := range provenFaults(read(t, name), 99, p) { // the names of the whole
				t.Errorf("%s: %s", name, fault)
			}
		}
		for _, fault := range provenFaults(document, column, p) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}
