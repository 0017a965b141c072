package core

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// Waits has every constant of its type: the scenarios demand a run of each, and a new one would go unnoticed otherwise.
func TestWaits_AreAllConstants(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "explain.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Wait
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		kind, named := spec.Type.(*ast.Ident)
		value, literal := spec.Values[0].(*ast.BasicLit)
		if named && kind.Name == "Wait" && literal {
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, Wait(text))
		}
		return true
	})
	if !slices.Equal(declared, Waits()) {
		t.Errorf("constants are %q, Waits are %q", declared, Waits())
	}
}
