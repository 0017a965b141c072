package projecttest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// commentFaults lists the exported names of a package that have no comment. A constant or variable may share its block's;
// with members set, exported fields and interface methods need one too, a field at least a mention in its type's comment.
func commentFaults(files []*ast.File, members bool) []string {
	var faults []string
	missing := func(name string, comments ...*ast.CommentGroup) {
		for _, comment := range comments {
			if strings.TrimSpace(comment.Text()) != "" {
				return
			}
		}
		faults = append(faults, name)
	}
	for _, file := range files {
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if name, exported := functionName(d); exported {
					missing(name, d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range s.Names {
							if name.IsExported() {
								missing(name.Name, s.Doc, s.Comment, d.Doc)
							}
						}
					case *ast.TypeSpec:
						if !s.Name.IsExported() {
							continue
						}
						own := []*ast.CommentGroup{s.Doc, s.Comment}
						if !d.Lparen.IsValid() {
							own = append(own, d.Doc) // of a group, the group's comment is not the type's
						}
						missing(s.Name.Name, own...)
						if members {
							memberFaults(s.Name.Name, s.Type, own, missing)
						}
					}
				}
			}
		}
	}
	return faults
}

func memberFaults(owner string, expression ast.Expr, comments []*ast.CommentGroup, missing func(string, ...*ast.CommentGroup)) {
	var list *ast.FieldList
	mentioned := map[string]bool{}
	switch e := expression.(type) {
	case *ast.StructType:
		list = e.Fields
		for _, comment := range comments {
			for _, word := range strings.FieldsFunc(comment.Text(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
				mentioned[word] = true
			}
		}
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names { // an embedded type has none: its comment stands at the type
			if name.IsExported() && !mentioned[name.Name] {
				missing(owner+"."+name.Name, field.Doc, field.Comment)
			}
		}
	}
}

// functionName returns "Name" or "Type.Name", and whether users of the package can see it.
func functionName(d *ast.FuncDecl) (name string, exported bool) {
	if d.Recv == nil {
		return d.Name.Name, d.Name.IsExported()
	}
	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + d.Name.Name, r.IsExported() && d.Name.IsExported()
		default:
			return d.Name.Name, false
		}
	}
}

func parsePackage(t *testing.T, p goPackage) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func TestComments_EveryExportedNameHasOne(t *testing.T) {
	t.Parallel()
	checked := map[string]bool{}
	for _, p := range goPackages(t) {
		if p.Name == "main" || strings.Contains("/"+p.folder()+"/", "/internal/") { // there a name may say it all
			continue
		}
		checked[p.folder()] = true
		// Adapter authors work from package lane alone: there, fields and methods of interfaces count as names too.
		for _, name := range commentFaults(parsePackage(t, p), p.folder() == "lane") {
			t.Errorf("%s.%s has no comment", p.Name, name)
		}
	}
	for _, folder := range []string{"", "lane", "core"} {
		if !checked[folder] {
			t.Errorf("package %q was not checked", folder)
		}
	}
}
