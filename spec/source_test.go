package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// The model follows dynamostore by hand. What can be compared, is.

// kindsByName are the marker kinds under the names of dynamostore/internal/rows/marker.go.
var kindsByName = map[string]int8{
	"Deliverable": deliverable, "Unpublished": unpublished, "DeadLetter": deadLetter, "Waiting": timed, "Slotless": slotless,
	"Parked": parked, "Leased": leased,
}

func source(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMarkerKinds_AreThoseOfTheStore(t *testing.T) {
	t.Parallel()
	letters := map[string]string{}
	ast.Inspect(source(t, "../dynamostore/internal/rows/marker.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "MarkerKind" {
			letter, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Error(err)
			}
			letters[spec.Names[0].Name] = letter
		}
		return true
	})
	delete(letters, "Ended") // the model of waits has it, as whether a run is untold
	if len(letters) != len(kindsByName) {
		t.Errorf("the store has %d kinds, the model %d", len(letters), len(kindsByName))
	}
	for name, letter := range letters {
		if kind, ok := kindsByName[name]; !ok || kindName(kind) != letter {
			t.Errorf("kind %s is %q in the store, %q here", name, letter, kindName(kind))
		}
	}
}

func TestScanKinds_AreThoseOfTheStore(t *testing.T) {
	t.Parallel()
	stages := map[string]int8{"Finalizing": finalizing, "Delivering": delivering, "Publishing": publishing, "Redelivering": redelivering}
	seen := 0
	ast.Inspect(source(t, "../dynamostore/internal/rows/classify.go"), func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		stage, ok := pair.Key.(*ast.Ident)
		kinds, list := pair.Value.(*ast.CompositeLit)
		if !ok || !list {
			return true
		}
		number, known := stages[stage.Name]
		if !known {
			return true
		}
		seen++
		var found []int8
		for _, e := range kinds.Elts {
			found = append(found, kindsByName[e.(*ast.Ident).Name])
		}
		if !slices.Equal(found, scanKinds[number]) {
			t.Errorf("%s reads %v in the store, %v here", stage.Name, found, scanKinds[number])
		}
		return true
	})
	if seen != len(stages) {
		t.Errorf("%d of %d stages found in the store", seen, len(stages))
	}
}
