package projecttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	rulesDocument = "docs/internals/rules.md"
	enumsGolden   = "internal/proof/projecttest/testdata/enums.golden"
)

// ruleSources are the documents whose tables state rules: each of their rows has one in the table of rules.
var ruleSources = []string{"docs/internals/contract.md", "docs/internals/decisions.md"}

// named is what the sources have: test functions with the texts inside them, and the cases of package lanetest and the
// scenarios of package scenarios.
type named struct {
	tests map[string]map[string]bool
	cases map[string]bool
}

// tableFunctions list cases: functions of those packages with these endings.
var tableFunctions = regexp.MustCompile(`(Cases|Scenarios)$`)

// collect adds what a file has. Rows of a test are the texts in its function: a subtest is named by its string.
func (n named) collect(name, source string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(name, "_test.go")
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		switch {
		case isTest && testName.MatchString(f.Name.Name):
			if n.tests[f.Name.Name] == nil {
				n.tests[f.Name.Name] = map[string]bool{}
			}
			ast.Inspect(f.Body, func(node ast.Node) bool {
				if text := textOf(node); text != "" {
					n.tests[f.Name.Name][text] = true
				}
				return true
			})
		case !isTest && tableFunctions.MatchString(f.Name.Name):
			ast.Inspect(f.Body, func(node ast.Node) bool {
				if row, ok := node.(*ast.CompositeLit); ok && len(row.Elts) > 0 {
					if text := rowName(row.Elts); text != "" {
						n.cases[text] = true
					}
				}
				return true
			})
		}
	}
	return nil
}

// rowName is the first field of a row, or the one called name.
func rowName(fields []ast.Expr) string {
	for _, field := range fields {
		if pair, ok := field.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "name" {
				return textOf(pair.Value)
			}
		}
	}
	return textOf(fields[0])
}

func textOf(node ast.Node) string {
	literal, ok := node.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// has reports whether a name of the table exists: a test, a row of one behind a slash, a case or a scenario.
func (n named) has(name string) bool {
	if n.cases[name] || n.tests[name] != nil {
		return true
	}
	test, row, found := strings.Cut(name, "/")
	return found && n.tests[test][row]
}

var (
	tableRow  = regexp.MustCompile(`(?m)^\|(.*)\|$`)
	separator = regexp.MustCompile(`^[\s|:-]+$`)
)

// tableRows are the cells of the rows of all tables, headings and separators left out.
func tableRows(document string) (rows [][]string) {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		if !tableRow.MatchString(line) || separator.MatchString(line) || i+1 < len(lines) && separator.MatchString(lines[i+1]) &&
			strings.HasPrefix(lines[i+1], "|") {
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

// ruleFaults compares the table of rules with the tables of the documents, by their names, and with what there is to prove them.
func ruleFaults(document string, sources map[string]string, n named) []string {
	var faults []string
	rows := tableRows(document)
	seen := map[string]bool{}
	for _, cells := range rows {
		if len(cells) != 2 || cells[0] == "" {
			faults = append(faults, fmt.Sprintf("the row %q is not a rule and its tests", cells))
			continue
		}
		if seen[cells[0]] {
			faults = append(faults, fmt.Sprintf("%q is there twice", cells[0]))
		}
		seen[cells[0]] = true
		names := quotedName.FindAllStringSubmatch(cells[1], -1)
		if len(names) == 0 {
			faults = append(faults, fmt.Sprintf("%q names no test", cells[0]))
		}
		for _, name := range names {
			if !n.has(name[1]) {
				faults = append(faults, fmt.Sprintf("%q names %s, which does not exist", cells[0], name[1]))
			}
		}
	}
	for source, text := range sources {
		wanted := map[string]int{}
		for _, cells := range tableRows(text) {
			wanted[cells[0]]++
		}
		for cell, times := range wanted {
			found := 0
			for _, cells := range rows {
				if cells[0] == cell || strings.HasPrefix(cells[0], cell+":") {
					found++
				}
			}
			if found < times {
				faults = append(faults, fmt.Sprintf("%s has %d rows %q, %d of them are rules here", source, times, cell, found))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// ruleWords are how the values of a vocabulary are told from those of another that are spelled alike.
var ruleWords = map[string]string{
	"core.Ignored": "ignored, ", "core.Wait": "wait ", "lane.Outcome": "acquisition ", "lane.PublishOutcomeType": "publication ",
	"runlane.ActorType": "actor ", "runlane.AttemptStatus": "attempt ", "runlane.ConflictKind": "conflict ",
	"runlane.SourceType": "source ", "runlane.TriggerOutcome": "outcome ",
}

// vocabularyFaults are the closed values that no rule names.
func vocabularyFaults(document, golden string) (faults []string) {
	var rules strings.Builder
	for _, cells := range tableRows(document) {
		rules.WriteString(cells[0] + "\n")
	}
	vocabulary := ""
	for _, line := range strings.Split(golden, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case !strings.HasPrefix(line, " "):
			vocabulary = fields[0]
		case !strings.Contains(rules.String(), ruleWords[vocabulary]+"`"+fields[0]+"`"):
			faults = append(faults, fmt.Sprintf("%s: no rule names %s`%s`", vocabulary, ruleWords[vocabulary], fields[0]))
		}
	}
	return faults
}

// everyTest is every test of the module, and every case and scenario.
func everyTest(t *testing.T) named {
	t.Helper()
	n := named{map[string]map[string]bool{}, map[string]bool{}}
	for name, text := range textFiles(t) {
		listed := strings.HasPrefix(name, "lanetest/") || strings.HasPrefix(name, "internal/proof/scenarios/")
		if !strings.HasSuffix(name, ".go") || !strings.HasSuffix(name, "_test.go") && !listed {
			continue
		}
		if err := n.collect(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// Every rule names its tests, every test that is named exists, and every row of a table of the contract and the decisions is a rule.
func TestRules_EachHasItsTests(t *testing.T) {
	t.Parallel()
	n := everyTest(t)
	sources := map[string]string{}
	for _, source := range ruleSources {
		sources[source] = read(t, source)
		if rows := len(tableRows(sources[source])); rows < 15 {
			t.Errorf("%s has %d rows", source, rows)
		}
	}
	document := read(t, rulesDocument)
	if rows := len(tableRows(document)); len(n.tests) < 500 || len(n.cases) < 400 || rows < 150 {
		t.Fatalf("the sources have %d tests and %d cases, the table %d rules", len(n.tests), len(n.cases), rows)
	}
	for _, fault := range append(ruleFaults(document, sources, n), vocabularyFaults(document, read(t, enumsGolden))...) {
		t.Errorf("%s: %s", rulesDocument, fault)
	}
}

func TestRules_TheRuleCanFail(t *testing.T) {
	t.Parallel()
	n := named{map[string]map[string]bool{}, map[string]bool{}}
	for name, source := range map[string]string{
		"core/a_test.go":                "package a\nfunc TestTable(t *testing.T) { t.Run(\"a row\", nil) }\nfunc TestOther(t *testing.T) {}\nfunc helper() {}\n",
		"lanetest/a.go":                 "package a\nfunc someCases() []x { return []x{{\"ACase\", nil, b}} }\nfunc more() []x { return []x{{\"NoCase\"}} }\n",
		"internal/proof/scenarios/b.go": "package a\nfunc someScenarios() []x { return []x{{needs: c, name: \"a scenario\"}} }\n",
	} {
		if err := n.collect(name, source); err != nil {
			t.Fatal(err)
		}
	}
	const head = "| Rule | Tests |\n|---|---|\n"
	sources := map[string]string{"docs/internals/contract.md": "| What | Means |\n|---|---|\n| `one` | first |\n| two | second |\n\n| What | Means |\n|---|---|\n| two | another |\n"}
	sound := []string{
		"| `one`: is first | `TestTable/a row` |", "| two: is second | `ACase`, `a scenario` |", "| two: is another | `TestOther` |",
		"| three | `TestTable` |",
	}
	table := func(rows ...string) string { return head + strings.Join(rows, "\n") + "\n" }
	if faults := ruleFaults(table(sound...), sources, n); len(faults) != 0 {
		t.Errorf("a sound table: %v", faults)
	}
	with := func(i int, row string) string {
		rows := slices.Clone(sound)
		rows[i] = row
		return table(rows...)
	}
	golden := "# all\n\ncore.Wait\n  one  WaitOne\n\nrunlane.Status\n  two  StatusTwo\n"
	if faults := vocabularyFaults(table("| wait `one` | `x` |", "| `two` | `x` |"), golden); len(faults) != 0 {
		t.Errorf("a sound vocabulary: %v", faults)
	}
	if faults := vocabularyFaults(table("| `one` | `two` |"), golden); len(faults) != 2 {
		t.Errorf("values without a rule: %v", faults)
	}
	for what, document := range map[string]string{
		"a row of the documents is missing": table(sound[1:]...),
		"one of two rows is missing":        table(sound[0], sound[1], sound[3]),
		"a rule without a test":             with(3, "| three | |"),
		"a test that is gone":               with(3, "| three | `TestGone` |"),
		"a row that is gone":                with(3, "| three | `TestTable/another row` |"),
		"a row of another test":             with(3, "| three | `TestOther/a row` |"),
		"a function, no test":               with(3, "| three | `helper` |"),
		"a case that is gone":               with(3, "| three | `NoCase` |"),
		"a scenario that is gone":           with(3, "| three | `another scenario` |"),
		"a rule that is there twice":        table(append(sound, sound[3])...),
		"a row with another form":           with(3, "| three | `TestTable` | more |"),
	} {
		if faults := ruleFaults(document, sources, n); len(faults) == 0 {
			t.Errorf("%s was accepted", what)
		}
	}
}
