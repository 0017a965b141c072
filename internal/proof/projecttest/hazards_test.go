package projecttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const hazardsDocument = "docs/internals/hazards.md"

// firstHazards is the last number of the first list. What was found since has the numbers behind it, none left out.
const firstHazards = 38

// hazardNumbers are all that a table up to a number has: the others of the first list were unclear wording, which the documents settle.
func hazardNumbers(last int) []int {
	var numbers []int
	for n := 1; n <= last; n++ {
		if n <= 25 || n >= 33 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

var (
	hazardRow  = regexp.MustCompile(`(?m)^\| (\d+) \|(.*)\|(.*)\|(.*)\|$`)
	quotedName = regexp.MustCompile("`([^`]+)`")
	hazardName = regexp.MustCompile(`^(?:Test)?Hazard(\d\d)_\w+$`)
	testName   = regexp.MustCompile(`^Test[A-Z]\w*$`)
)

// provers are what proves things: test functions, cases of the conformance suites, and the cases of the budget.
type provers struct{ tests, cases, budget map[string]bool }

// hazardFaults compares the table with what there is.
func hazardFaults(document string, p provers) []string {
	var faults []string
	listed := map[int][]string{}
	for _, row := range hazardRow.FindAllStringSubmatch(document, -1) {
		number, _ := strconv.Atoi(row[1])
		if _, twice := listed[number]; twice {
			faults = append(faults, fmt.Sprintf("hazard %d has two rows", number))
		}
		if strings.TrimSpace(row[2]) == "" || !strings.Contains(row[3], "](") {
			faults = append(faults, fmt.Sprintf("hazard %d does not say what it is, or what prevents it and where that is written", number))
		}
		listed[number] = []string{}
		for _, name := range quotedName.FindAllStringSubmatch(row[4], -1) {
			listed[number] = append(listed[number], name[1])
		}
	}
	last := firstHazards
	for number := range listed {
		last = max(last, number)
	}
	if got, want := slices.Sorted(maps.Keys(listed)), hazardNumbers(last); !slices.Equal(got, want) {
		faults = append(faults, fmt.Sprintf("the table has the numbers %v, want %v", got, want))
	}
	for number, names := range listed {
		if len(names) == 0 {
			faults = append(faults, fmt.Sprintf("hazard %d names no test", number))
		}
		for _, name := range names {
			step, isStep := strings.CutPrefix(name, "TestBudget/")
			if !(p.tests[name] || p.cases[name] || isStep && p.budget[step]) {
				faults = append(faults, fmt.Sprintf("hazard %d names %s, which does not exist", number, name))
			}
			if match := hazardName.FindStringSubmatch(name); len(match) == 2 && match[1] != fmt.Sprintf("%02d", number) {
				faults = append(faults, fmt.Sprintf("hazard %d names %s, which is another's", number, name))
			}
		}
	}
	for _, names := range []map[string]bool{p.tests, p.cases} {
		for name := range names {
			if match := hazardName.FindStringSubmatch(name); len(match) == 2 {
				if number, _ := strconv.Atoi(match[1]); !slices.Contains(listed[number], name) {
					faults = append(faults, fmt.Sprintf("%s is not in the row of hazard %d", name, number))
				}
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// collect adds what a source has.
func (p provers) collect(name, source string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isBudget := strings.HasPrefix(name, "dynamostore/") && strings.Contains(name, "budget")
	literal := func(e ast.Expr) string {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			return text
		}
		return ""
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && strings.HasSuffix(name, "_test.go") && testName.MatchString(n.Name.Name) {
				p.tests[n.Name.Name] = true
			}
		case *ast.CompositeLit:
			if len(n.Elts) > 0 {
				if text := literal(n.Elts[0]); hazardName.MatchString(text) {
					p.cases[text] = true
				}
			}
		case *ast.KeyValueExpr:
			if isBudget {
				p.budget[literal(n.Key)] = true
			}
		case *ast.IndexExpr:
			if isBudget {
				p.budget[literal(n.Index)] = true
			}
		}
		return true
	})
	return nil
}

func noProvers() provers { return provers{map[string]bool{}, map[string]bool{}, map[string]bool{}} }

// Every number is in the table, every test that it names exists, and every test and case that carries a number is in its row.
func TestHazards_EachHasItsTests(t *testing.T) {
	t.Parallel()
	p := noProvers()
	for name, text := range textFiles(t) {
		if strings.HasPrefix(name, "internal/proof/projecttest/") || !strings.HasSuffix(name, ".go") ||
			!strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "lanetest/") {
			continue
		}
		if err := p.collect(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.tests) < 100 || len(p.cases) < 10 || len(p.budget) < 20 {
		t.Fatalf("the sources have %d tests, %d cases of hazards and %d budget cases", len(p.tests), len(p.cases), len(p.budget))
	}
	for _, fault := range hazardFaults(read(t, hazardsDocument), p) {
		t.Errorf("%s: %s", hazardsDocument, fault)
	}
}

func TestHazards_TheRuleCanFail(t *testing.T) {
	t.Parallel()
	p := noProvers()
	for name, source := range map[string]string{
		"core/a_test.go": "package a\nfunc TestHazard01_A(t *testing.T) {}\nfunc TestMeter(t *testing.T) {}\nfunc helper() {}\n",
		"lanetest/a.go":  "package a\nvar c = []x{{\"Hazard02_B\", nil, b}}\n",
		"dynamostore/budget_test.go": "package a\nvar c = map[string]x{\"heartbeat\": {}}\n" +
			"func f() { c[\"pruning\"] = x{} }\n",
	} {
		if err := p.collect(name, source); err != nil {
			t.Fatal(err)
		}
	}
	table := func(change func(number int, tests string) string) string {
		text := "# Hazards\n\n| | Goes wrong | Prevented | Tests |\n|---|---|---|---|\n"
		for _, n := range hazardNumbers(firstHazards) {
			tests := "`TestMeter`"
			switch n {
			case 1:
				tests = "`TestHazard01_A`, `TestMeter`"
			case 2:
				tests = "`Hazard02_B`"
			case 37:
				tests = "`TestBudget/heartbeat`, `TestBudget/pruning`"
			}
			text += change(n, tests)
		}
		return text
	}
	row := func(n int, tests string) string {
		return fmt.Sprintf("| %d | something | [that](x.md) | %s |\n", n, tests)
	}
	if faults := hazardFaults(table(row), p); len(faults) != 0 {
		t.Errorf("a sound table: %v", faults)
	}
	for what, change := range map[string]func(n int, tests string) string{
		"a number is missing":     func(n int, tests string) string { return strings.Repeat(row(n, tests), min(1, abs(n-38))) },
		"a number is there twice": func(n int, tests string) string { return strings.Repeat(row(n, tests), 1+n/38) },
		"a number of no hazard":   func(n int, tests string) string { return row(n, tests) + strings.Repeat(row(26, tests), n/38) },
		"a number is left out":    func(n int, tests string) string { return row(n, tests) + strings.Repeat(row(n+2, tests), n/38) },
		"no test":                 func(n int, tests string) string { return row(n, strings.Repeat(tests, min(1, abs(n-5)))) },
		"a test that is gone":     func(n int, tests string) string { return row(n, strings.ReplaceAll(tests, "TestMeter", "TestMetre")) },
		"a function, no test":     func(n int, tests string) string { return row(n, tests+" `helper`") },
		"a case that is gone":     func(n int, tests string) string { return row(n, strings.ReplaceAll(tests, "02_B", "02_C")) },
		"a step that is gone":     func(n int, tests string) string { return row(n, strings.ReplaceAll(tests, "heartbeat", "heart beat")) },
		"another's test":          func(n int, tests string) string { return row(n, tests+" `TestHazard01_A`") },
		"a test that is not named": func(n int, tests string) string {
			return row(n, strings.ReplaceAll(tests, "`TestHazard01_A`, ", ""))
		},
		"nothing that prevents it": func(n int, tests string) string { return strings.ReplaceAll(row(n, tests), "[that](x.md)", "that") },
	} {
		if faults := hazardFaults(table(change), p); len(faults) == 0 {
			t.Errorf("%s was accepted", what)
		}
	}
}

func abs(n int) int { return max(n, -n) }
