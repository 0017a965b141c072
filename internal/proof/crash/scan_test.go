package crash_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const module = "github.com/runlane/runlane-go"

// engine are the packages whose every call that leads to an effect is a site.
var engine = []string{
	"core", "core/internal/flow", "core/internal/move", "core/internal/remote", "core/internal/schedule",
	"dynamostore", "dynamostore/internal/ddb", "sqstransport", "awslane", "functions",
}

// operations are the requests that change something.
var operations = map[string]bool{
	"TransactWriteItems": true, "PutItem": true, "UpdateItem": true, "DeleteItem": true, "BatchWriteItem": true,
	"ExecuteStatement": true, "BatchExecuteStatement": true, "ExecuteTransaction": true,
	"SendMessage": true, "SendMessageBatch": true, "DeleteMessage": true, "DeleteMessageBatch": true,
	"ChangeMessageVisibility": true, "ChangeMessageVisibilityBatch": true, "PurgeQueue": true, "StartMessageMoveTask": true,
}

// site is a call in the source that leads to an effect.
type site struct {
	name        string // caller > callee, numbered where a function has several
	file        string // relative to the module
	first, last int    // lines
	callee      string // without its package and type
}

// root is the module's folder, as the compiler writes it into stacks.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(filepath.ToSlash(file), "/internal/proof/crash/scan_test.go")
}

// source is the type-checked part of the module. Packages of others, the standard library too, are empty: what is called of them leads
// nowhere, and what their types would be is not known. Go's type checker goes on without.
type source struct {
	dir      string // of the module, to read from
	files    *token.FileSet
	packages map[string]*types.Package
	parsed   map[string][]*ast.File // by import path
	info     types.Info
}

func newSource(dir string) *source {
	return &source{
		dir: dir, files: token.NewFileSet(), packages: map[string]*types.Package{}, parsed: map[string][]*ast.File{},
		info: types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}},
	}
}

// Import implements types.Importer.
func (s *source) Import(name string) (*types.Package, error) {
	if p, known := s.packages[name]; known {
		return p, nil
	}
	if name == "unsafe" {
		return types.Unsafe, nil
	}
	if name != module && !strings.HasPrefix(name, module+"/") {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		s.packages[name] = p
		return p, nil
	}
	folder := filepath.Join(s.dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(name, module), "/")))
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, p := range paths {
		if match, err := build.Default.MatchFile(folder, filepath.Base(p)); err != nil || !match || strings.HasSuffix(p, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: s, Error: func(error) {}, FakeImportC: true}
	p, _ := config.Check(name, s.files, files, &s.info) // its errors are about the empty packages
	s.packages[name], s.parsed[name] = p, files
	return p, nil
}

// function is what a declaration calls. Functions that are passed on as values are not followed: their own calls are sites anyway.
type function struct {
	name  string // as on a stack, without the module
	base  string
	calls []call
	leads bool // to an effect
}

type call struct {
	to        string // a key of graph.functions, or an operation
	operation bool
	position  token.Pos
	end       token.Pos
	callee    string
}

type graph struct {
	source    *source
	functions map[string]*function
	methods   map[string][]string // the keys of methods of concrete types, by name
}

// scan finds the sites of the engine.
func scan(dir string) ([]site, error) {
	g := graph{source: newSource(dir), functions: map[string]*function{}, methods: map[string][]string{}}
	for _, folder := range engine {
		if _, err := g.source.Import(module + "/" + folder); err != nil {
			return nil, err
		}
	}
	for _, folder := range engine {
		name := module + "/" + folder
		for _, file := range g.source.parsed[name] {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					g.declare(f)
				}
			}
		}
	}
	g.propagate()
	return g.sites(), nil
}

func key(o *types.Func) string { return shortName(o.Origin().FullName()) }

// shortName is a function's name without the module, and without type arguments.
func shortName(name string) string {
	name = strings.ReplaceAll(name, module+"/", "")
	name = strings.ReplaceAll(name, module+".", "runlane.")
	if method, ok := strings.CutPrefix(name, "(*"); ok { // (*core.Runtime).Trigger is core.(*Runtime).Trigger on a stack
		folder, rest := splitFolder(method)
		name = folder + ".(*" + rest
	} else if method, ok := strings.CutPrefix(name, "("); ok {
		folder, rest := splitFolder(method)
		name = folder + "." + strings.Replace(rest, ")", "", 1)
	}
	return typeArguments.ReplaceAllString(name, "")
}

func splitFolder(name string) (folder, rest string) {
	at := strings.LastIndexByte(name, '/') + 1
	dot := at + strings.IndexByte(name[at:], '.')
	return name[:dot], name[dot+1:]
}

var typeArguments = regexp.MustCompile(`\[.*?\]`)

// declare notes the calls of one declaration, those of its closures too.
func (g *graph) declare(d *ast.FuncDecl) {
	o, ok := g.source.info.Defs[d.Name].(*types.Func)
	if !ok {
		return
	}
	f := &function{name: key(o), base: d.Name.Name}
	g.functions[f.name] = f
	if d.Recv != nil {
		g.methods[f.base] = append(g.methods[f.base], f.name)
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if n, ok := n.(*ast.CallExpr); ok {
			g.note(f, calleeOf(n.Fun), n)
		}
		return true
	})
}

func calleeOf(fun ast.Expr) *ast.Ident {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return fun
	case *ast.SelectorExpr:
		return fun.Sel
	case *ast.IndexExpr:
		return calleeOf(fun.X)
	case *ast.IndexListExpr:
		return calleeOf(fun.X)
	default:
		return nil
	}
}

func (g *graph) note(f *function, name *ast.Ident, n ast.Node) {
	if name == nil {
		return
	}
	c := call{position: n.Pos(), end: n.End(), callee: name.Name}
	o, known := g.source.info.Uses[name].(*types.Func)
	switch {
	case operations[name.Name]:
		c.to, c.operation = name.Name, true
	case known && o.Pkg() != nil && strings.HasPrefix(o.Pkg().Path(), module):
		c.to = key(o)
	default:
		return
	}
	f.calls = append(f.calls, c)
}

// propagate finds the functions from which an effect can be reached. A method of an interface may be any method of that name.
func (g *graph) propagate() {
	for changed := true; changed; {
		changed = false
		for _, f := range g.functions {
			if !f.leads && slices.ContainsFunc(f.calls, g.leads) {
				f.leads, changed = true, true
			}
		}
	}
}

func (g *graph) leads(c call) bool {
	if c.operation {
		return true
	}
	if f, concrete := g.functions[c.to]; concrete {
		return f.leads
	}
	between := strings.HasPrefix(c.to, "lane.") || strings.HasPrefix(c.to, "core/internal/") // whose interfaces stand between packages
	if !between || strings.Contains(c.to, "(*") {
		return false
	}
	return slices.ContainsFunc(g.methods[c.callee], func(name string) bool { return g.functions[name].leads })
}

// sites lists the calls that lead to effects, by name.
func (g *graph) sites() []site {
	var all []site
	for _, f := range g.functions {
		calls := slices.DeleteFunc(slices.Clone(f.calls), func(c call) bool { return !g.leads(c) })
		slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.position, b.position) })
		count := map[string]int{}
		for _, c := range calls {
			count[c.to]++
		}
		number := map[string]int{}
		for _, c := range calls {
			number[c.to]++
			s := site{
				name: f.name + " > " + c.to, callee: c.callee,
				first: g.source.files.Position(c.position).Line, last: g.source.files.Position(c.end).Line,
			}
			if count[c.to] > 1 {
				s.name += fmt.Sprintf(" (%d)", number[c.to])
			}
			file, _ := filepath.Rel(g.source.dir, g.source.files.Position(c.position).Filename)
			s.file = filepath.ToSlash(file)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b site) int { return cmp.Compare(a.name, b.name) })
	return all
}
