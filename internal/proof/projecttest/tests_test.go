package projecttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// testFaults finds what would make a test's answer depend on luck or circumstances: a sleep in real time, and a skip for any
// other reason than -short. In a file that uses testing/synctest sleeping is virtual.
func testFaults(name, source string) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	virtual := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
	var allowed []ast.Node // bodies that only run under -short
	ast.Inspect(file, func(node ast.Node) bool {
		if branch, ok := node.(*ast.IfStmt); ok && calls(branch.Cond, "testing", "Short") && !negated(branch.Cond) {
			allowed = append(allowed, branch.Body)
		}
		return true
	})
	var faults []string
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		at := files.Position(call.Pos())
		within := func(n ast.Node) bool { return n.Pos() <= call.Pos() && call.End() <= n.End() }
		switch {
		case !virtual && isSelector(selector, "time", "Sleep"):
			faults = append(faults, fmt.Sprintf("%s:%d: sleeps in real time", name, at.Line))
		case slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) && !slices.ContainsFunc(allowed, within):
			faults = append(faults, fmt.Sprintf("%s:%d: skips for another reason than -short", name, at.Line))
		}
		return true
	})
	return faults, nil
}

func isSelector(s *ast.SelectorExpr, pkg, name string) bool {
	owner, ok := s.X.(*ast.Ident)
	return ok && owner.Name == pkg && s.Sel.Name == name
}

// calls reports whether pkg.name is called anywhere in the node.
func calls(node ast.Node, pkg, name string) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && isSelector(s, pkg, name) {
				found = true
			}
		}
		return true
	})
	return found
}

func negated(condition ast.Expr) bool {
	unary, ok := condition.(*ast.UnaryExpr)
	return ok && unary.Op == token.NOT
}

func TestTests_NeitherSleepNorSkip(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, text := range textFiles(t) {
		support := strings.HasPrefix(name, "internal/proof/awstest/") || strings.HasPrefix(name, "lanetest/") || strings.HasPrefix(name, "runlanetest/")
		if !strings.HasSuffix(name, "_test.go") && !(support && strings.HasSuffix(name, ".go")) {
			continue
		}
		checked++
		faults, err := testFaults(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	}
	if checked < 10 {
		t.Errorf("only %d test files were checked", checked)
	}
}
