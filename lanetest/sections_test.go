package lanetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ruleSection is how a comment names the section that states a rule.
var ruleSection = regexp.MustCompile(`(docs/[a-z/]+\.md), ([A-Z][^:;.\n]*)`)

// caseTables are the functions whose literals list cases: what they return, and the type of a row.
var caseTables = []string{"storageCase", "transportCase", "laneCase"}

// The reader of a failed case has to find the rule: its function, or the one that lists its group, names the section that states it.
func TestCases_NameTheSectionOfTheirRule(t *testing.T) {
	t.Parallel()
	functions, headings := parsedFunctions(t), documentHeadings(t)
	tables, cases := 0, 0
	for _, table := range functions {
		names := tableOf(table)
		if names == nil {
			continue
		}
		tables++
		for name, function := range names {
			cases++
			if strings.HasPrefix(name, "Hazard") {
				continue // the number in its name tells where it comes from
			}
			f := functions[function]
			if f == nil {
				t.Errorf("case %s is not a separate function", name)
				continue
			}
			section := ruleSection.FindStringSubmatch(flat(f.Doc))
			if section == nil {
				section = ruleSection.FindStringSubmatch(flat(table.Doc))
			}
			if section == nil {
				t.Errorf("case %s: neither %s nor %s names the section of the rule", name, function, table.Name.Name)
				continue
			}
			if !slices.ContainsFunc(headings[section[1]], func(h string) bool { return strings.HasPrefix(section[2], h) }) {
				t.Errorf("case %s: %s has no section that %q begins with", name, section[1], section[2])
			}
		}
	}
	if tables < 20 || cases < 200 {
		t.Errorf("%d cases in %d tables were found: the test looks at the wrong thing", cases, tables)
	}
}

func flat(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// parsedFunctions are the functions and methods of the package's own files, by name.
func parsedFunctions(t *testing.T) map[string]*ast.FuncDecl {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]*ast.FuncDecl{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions[f.Name.Name] = f
			}
		}
	}
	return functions
}

// tableOf are the cases that a function lists: names, and the functions that are run. nil: it lists none.
func tableOf(f *ast.FuncDecl) map[string]string {
	var cases map[string]string
	ast.Inspect(f, func(node ast.Node) bool {
		list, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}
		array, ok := list.Type.(*ast.ArrayType)
		if !ok {
			return true
		}
		row, ok := array.Elt.(*ast.Ident)
		if !ok || !slices.Contains(caseTables, row.Name) {
			return true
		}
		if cases == nil {
			cases = map[string]string{}
		}
		for _, element := range list.Elts {
			c, ok := element.(*ast.CompositeLit)
			if !ok {
				continue
			}
			name, _ := c.Elts[0].(*ast.BasicLit)
			run, _ := c.Elts[len(c.Elts)-1].(*ast.Ident)
			if name != nil && run != nil {
				cases[strings.Trim(name.Value, `"`)] = run.Name
			} else if name != nil {
				cases[strings.Trim(name.Value, `"`)] = ""
			}
		}
		return true
	})
	return cases
}

func documentHeadings(t *testing.T) map[string][]string {
	t.Helper()
	headings := map[string][]string{}
	for _, name := range []string{"contract", "decisions", "layout"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "internals", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
			headings["docs/internals/"+name+".md"] = append(headings["docs/internals/"+name+".md"], match[1])
		}
	}
	return headings
}
