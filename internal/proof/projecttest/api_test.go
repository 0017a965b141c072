package projecttest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// api lists what a package exports: names and signatures, without comments and bodies, in the order of their text.
func api(files map[string][]byte) ([]string, error) {
	var declarations []string
	for name, content := range files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution) // without comments
		if err != nil {
			return nil, err
		}
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			for _, d := range singly(declaration) {
				var text bytes.Buffer
				if err := format.Node(&text, fset, d); err != nil {
					return nil, err
				}
				declarations = append(declarations, text.String())
			}
		}
	}
	slices.Sort(declarations)
	return declarations, nil
}

// singly takes groups of declarations apart, and leaves out imports, bodies and the values of variables.
func singly(declaration ast.Decl) (all []ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		d.Body = nil
		if d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type)) {
			return nil
		}
		return []ast.Decl{d}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && v.Type != nil {
				v.Values = nil
			}
			all = append(all, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
		}
	}
	return all
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	default:
		return ""
	}
}

// What applications and adapters can import is in testdata/api.golden: a change of it is never an accident.
func TestAPI_IsTheGoldenOne(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("Names and signatures of every package that can be imported. go test ./internal/proof/projecttest -run API -update writes this.\n")
	packages := goPackages(t)
	for _, folder := range libraryModules {
		packages = append(packages, packagesOf(t, folder)...)
	}
	for _, p := range packages {
		if p.Name == "main" || slices.Contains(strings.Split(p.folder(), "/"), "internal") || strings.HasPrefix(p.folder(), "examples") {
			continue
		}
		files := map[string][]byte{}
		for _, name := range p.GoFiles {
			files[name] = []byte(read(t, p.folder(), name))
		}
		declarations, err := api(files)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "\n# %s: %d\n\n%s\n", p.ImportPath, len(declarations), strings.Join(declarations, "\n"))
	}
	path := filepath.Join("testdata", "api.golden")
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("(-golden +code), accept with: go test ./internal/proof/projecttest -run API -update\n%s", diff)
	}
}
