package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The variables of the environment that the instrumented tests read: the condition that is taken out, and a file that
// gets the conditions that are reached.
const (
	mutantVariable  = "RUNLANE_MUTANT"
	reachedVariable = "RUNLANE_REACHED"
)

// The folders whose conditions are tried, and the one of the package that they all take conditions from.
var (
	conditioned = []string{".", "internal/rows", "internal/ddb"}
	vocabulary  = filepath.Join("internal", "item")
)

// switches is compiled into the copy. A condition that is switched off stays in the request, so that all its values are
// used, but is true whatever the item is.
const switches = `package item

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

var (
	mutant  = os.Getenv("` + mutantVariable + `")
	reached sync.Map
)

func Mutated(site int, c Condition) Condition {
	return Condition{Text: MutatedText(site, c.Text), Values: c.Values}
}

func MutatedText(site int, text string) string {
	if _, before := reached.LoadOrStore(site, true); !before {
		if f, err := os.OpenFile(os.Getenv("` + reachedVariable + `"), os.O_APPEND|os.O_WRONLY, 0); err == nil {
			fmt.Fprintln(f, site)
			f.Close()
		}
	}
	if strconv.Itoa(site) != mutant {
		return text
	}
	term, joined := strings.CutPrefix(text, " AND ")
	term = "(" + term + " OR attribute_exists(#pk) OR attribute_not_exists(#pk))"
	if joined {
		return " AND " + term
	}
	return term
}
`

// instrument puts every condition of dynamostore, which is in dir, behind its switch and returns the conditions in the
// order of the source.
func instrument(dir string) ([]*removal, error) {
	var paths []string
	for _, folder := range conditioned {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	var sites []*removal
	names := map[string]int{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		changed, found, err := rewrite(filepath.Base(path), source, len(sites))
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			names[s.name()]++
			s.ordinal = names[s.name()]
		}
		sites = append(sites, found...)
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			return nil, err
		}
	}
	if len(sites) == 0 {
		return nil, fmt.Errorf("no conditions in %s", dir)
	}
	return sites, os.WriteFile(filepath.Join(dir, vocabulary, "mutant_switches.go"), []byte(switches), 0o600)
}

// rewrite wraps the conditions of one file. before is how many sites there are already.
func rewrite(name string, source []byte, before int) ([]byte, []*removal, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	var sites []*removal
	insertions := map[int]string{}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		for _, c := range conditions(function.Body) {
			var text bytes.Buffer
			if err := printer.Fprint(&text, files, c.node); err != nil {
				return nil, nil, err
			}
			s := condition(
				before+len(sites)+1,
				fmt.Sprintf("%s:%d", name, files.Position(c.node.Pos()).Line),
				function.Name.Name,
				strings.Join(strings.Fields(text.String()), " "),
			)
			sites = append(sites, s)
			insertions[files.Position(c.node.Pos()).Offset] += fmt.Sprintf("%s(%d, ", c.wrapper, s.id)
			insertions[files.Position(c.node.End()).Offset] = ")" + insertions[files.Position(c.node.End()).Offset]
		}
	}
	return insert(source, insertions), sites, nil
}

type found struct {
	node    ast.Expr
	wrapper string
}

// conditions are the expressions of a body that state a condition: item.Absent, item.Equal(…), item.Condition{…}, what
// is appended to a condition's text, and a literal ConditionExpression.
func conditions(body *ast.BlockStmt) []found {
	var out []found
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if isWord(n, "Absent") {
				out = append(out, found{n, "item.Mutated"})
			}
		case *ast.CallExpr:
			if isWord(n.Fun, "Equal") {
				out = append(out, found{n, "item.Mutated"})
				return false
			}
		case *ast.CompositeLit:
			if isWord(n.Type, "Condition") {
				if len(n.Elts) > 0 {
					out = append(out, found{n, "item.Mutated"})
				}
				return false
			}
		case *ast.AssignStmt:
			if s, ok := n.Lhs[0].(*ast.SelectorExpr); ok && n.Tok == token.ADD_ASSIGN && s.Sel.Name == "Text" {
				out = append(out, found{n.Rhs[0], "item.MutatedText"})
				return false
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "ConditionExpression" {
				if text := literalText(n.Value); text != nil {
					out = append(out, found{text, "item.MutatedText"})
				}
				return false
			}
		}
		return true
	})
	return out
}

// isWord reports a name of package item.
func isWord(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "item"
}

// literalText is the argument of aws.String, unless it is the text of a condition, which counts where it is made.
func literalText(e ast.Expr) ast.Expr {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	if s, ok := call.Args[0].(*ast.SelectorExpr); ok && s.Sel.Name == "Text" {
		return nil
	}
	return call.Args[0]
}

func insert(source []byte, insertions map[int]string) []byte {
	var out bytes.Buffer
	last := 0
	for _, at := range slices.Sorted(maps.Keys(insertions)) {
		out.Write(source[last:at])
		out.WriteString(insertions[at])
		last = at
	}
	out.Write(source[last:])
	return out.Bytes()
}
