// Command runlanevet finds misuse of steps and waits that compiles: what a step writes to a variable of its handler, a
// name that does not change in a loop or that a block uses twice, a step or a wait within a step, a result that JSON
// does not hold, a suspension that is dropped. It is a tool for go vet:
//
//	go install github.com/runlane/runlane-go/cmd/runlanevet@VERSION
//	go vet -vettool=$(which runlanevet) ./...
//
// A finding that is meant is silenced by a comment on its line: //runlanevet:ignore and the reason.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	found, err := run(os.Args[1:], os.Stdout)
	for _, f := range found {
		fmt.Fprintf(os.Stderr, "%s: %s\n", f.at, f.text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runlanevet:", err)
	}
	if err != nil || len(found) > 0 {
		os.Exit(1)
	}
}

// run answers the questions that go vet asks a tool: its version, its flags, and what it finds in a package, for a
// person or as JSON.
func run(args []string, out io.Writer) (found []finding, err error) {
	asJSON := len(args) == 2 && args[0] == "-json"
	if asJSON {
		args = args[1:]
	}
	switch {
	case len(args) == 1 && args[0] == "-V=full":
		return nil, version(out)
	case len(args) == 1 && args[0] == "-flags":
		_, err = fmt.Fprintln(out, `[{"Name": "json", "Bool": true, "Usage": "write findings as JSON"}]`)
		return nil, err
	case len(args) != 1 || !strings.HasSuffix(args[0], ".cfg"):
		const usage = "it is called by go vet: go vet -vettool=$(which runlanevet) ./..."
		return nil, fmt.Errorf("%s and not with %q", usage, args)
	}
	u, err := readUnit(args[0])
	if err != nil {
		return nil, err
	}
	if found, err = u.vet(); err != nil || !asJSON {
		return found, err
	}
	text, err := json.Marshal(u.tree(found))
	if err != nil {
		return nil, err
	}
	if u.Stdout != "" { // where go vet reads it, from Go 1.26 on
		return nil, os.WriteFile(u.Stdout, text, 0o600)
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return nil, err
}

// version names the program by its bytes, so that go vet's cache notices another one.
func version(out io.Writer) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "runlanevet version devel buildID=%02x\n", sha256.Sum256(program))
	return err
}

// unit is what go vet says of a package.
type unit struct {
	ID                        string
	ImportPath                string
	GoFiles                   []string
	ImportMap                 map[string]string
	PackageFile               map[string]string
	VetxOnly                  bool
	VetxOutput                string
	Stdout                    string
	SucceedOnTypecheckFailure bool
}

func readUnit(path string) (*unit, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	u := &unit{}
	return u, json.Unmarshal(text, u)
}

// vet finds what is wrong in a package that uses runlane.
func (u *unit) vet() (found []finding, err error) {
	if u.VetxOutput != "" { // facts for who imports the package: there are none
		if err := os.WriteFile(u.VetxOutput, nil, 0o600); err != nil {
			return nil, err
		}
	}
	if _, uses := u.ImportMap[runlanePath]; u.VetxOnly || !uses {
		return nil, nil
	}
	found, err = u.check()
	if err != nil && u.SucceedOnTypecheckFailure {
		return nil, nil
	}
	return found, err
}

// diagnostic is a finding as go vet reads it.
type diagnostic struct {
	Position string `json:"posn"`
	Message  string `json:"message"`
}

// tree has findings by package and tool.
func (u *unit) tree(found []finding) map[string]map[string][]diagnostic {
	var all []diagnostic
	for _, f := range found {
		all = append(all, diagnostic{f.at.String(), f.text})
	}
	if len(all) == 0 {
		return map[string]map[string][]diagnostic{}
	}
	return map[string]map[string][]diagnostic{u.ID: {"runlanevet": all}}
}

// check reads the package and the types of what it imports.
func (u *unit) check() ([]finding, error) {
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range u.GoFiles {
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	open := func(path string) (io.ReadCloser, error) {
		name, ok := u.PackageFile[path]
		if !ok {
			return nil, fmt.Errorf("no package file for %q", path)
		}
		return os.Open(filepath.Clean(name))
	}
	compiled := importer.ForCompiler(set, "gc", open)
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: mapped{u.ImportMap, compiled}}
	if _, err := config.Check(u.ImportPath, set, files, info); err != nil {
		return nil, err
	}
	return checkFiles(set, files, info), nil
}

// mapped imports what a path of the source stands for.
type mapped struct {
	paths map[string]string
	types.Importer
}

// Import implements types.Importer.
func (m mapped) Import(path string) (*types.Package, error) {
	if is, ok := m.paths[path]; ok {
		path = is
	}
	return m.Importer.Import(path)
}
