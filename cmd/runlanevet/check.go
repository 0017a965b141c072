package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

const (
	runlanePath = "github.com/runlane/runlane-go"
	ignoreMark  = "runlanevet:ignore"
)

// calls are those that belong to an attempt, with the positions of their name, their work and the attempt; -1: none.
// Those that suspend return an error that has to reach the caller.
var calls = map[string]struct {
	name, work, attempt int
	suspends            bool
}{
	"Step":             {2, 3, 1, false},
	"Attempt.Do":       {1, 2, -1, false},
	"Attempt.Sleep":    {1, -1, -1, true},
	"Attempt.Snapshot": {1, -1, -1, false},
	"Attempt.CallRuns": {-1, -1, -1, true},
	"Attempt.WaitNode": {-1, -1, -1, true},
	"Signal.Wait":      {-1, -1, 1, true},
	"WaitAny":          {-1, -1, 1, true},
	"WaitAll":          {-1, -1, 1, true},
	"Func.Call":        {-1, -1, 1, true},
	"CallAll":          {-1, -1, 1, true},
	"Ref.Wait":         {-1, -1, 1, true},
}

// once are those whose name is that of one call in an attempt.
var once = []string{"Step", "Attempt.Do", "Attempt.Sleep"}

// use is a name that an attempt is given by a block of statements: all of these are executed together.
type use struct {
	block         ast.Node
	attempt, name string
}

// checker looks at one file.
type checker struct {
	set      *token.FileSet
	info     *types.Info
	ignored  map[int]bool // lines with the mark
	used     map[use]bool
	findings []finding
}

type finding struct {
	at   token.Position
	text string
}

// checkFiles returns what is wrong in a package, by position.
func checkFiles(set *token.FileSet, files []*ast.File, info *types.Info) (found []finding) {
	for _, file := range files {
		c := &checker{set: set, info: info, ignored: map[int]bool{}, used: map[use]bool{}}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(strings.TrimPrefix(comment.Text, "//"), ignoreMark) {
					c.ignored[set.Position(comment.Pos()).Line] = true
				}
			}
		}
		c.walk(file, nil)
		slices.SortFunc(c.findings, func(a, b finding) int { return a.at.Offset - b.at.Offset })
		found = append(found, c.findings...)
	}
	return found
}

func (c *checker) report(at token.Pos, format string, args ...any) {
	position := c.set.Position(at)
	if !c.ignored[position.Line] {
		c.findings = append(c.findings, finding{position, fmt.Sprintf(format, args...)})
	}
}

// walk visits nodes with the nodes around them, the innermost last.
func (c *checker) walk(root ast.Node, around []ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			c.call(n, around)
		case *ast.ExprStmt:
			c.dropped(n.X)
		case *ast.AssignStmt:
			if last, ok := n.Lhs[len(n.Lhs)-1].(*ast.Ident); ok && last.Name == "_" && len(n.Rhs) == 1 {
				c.dropped(n.Rhs[0])
			}
		case *ast.GoStmt:
			c.dropped(n.Call)
		case *ast.DeferStmt:
			c.dropped(n.Call)
		}
		around = append(around, n)
		return true
	})
}

// named is which of the calls an expression is, "" for none.
func (c *checker) named(e ast.Expr) string {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return ""
	}
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) { // of a generic function
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	var name *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun
	case *ast.SelectorExpr:
		name = fun.Sel
	default:
		return ""
	}
	f, ok := c.info.Uses[name].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != runlanePath {
		return ""
	}
	text := f.Name()
	if receiver := f.Signature().Recv(); receiver != nil {
		t := receiver.Type()
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			text = named.Obj().Name() + "." + text
		}
	}
	rule, known := calls[text]
	if !known {
		return ""
	}
	if at := rule.attempt; at >= 0 && (at >= len(call.Args) || !isAttempt(c.info.TypeOf(call.Args[at]))) {
		return "" // a runtime blocks where an attempt is suspended
	}
	return text
}

func isAttempt(t types.Type) bool {
	pointer, ok := t.(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := pointer.Elem().(*types.Named)
	return ok && named.Obj().Name() == "Attempt" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == runlanePath
}

// twice finds a constant name that two calls of one block have.
func (c *checker) twice(name string, call *ast.CallExpr, around []ast.Node) {
	rule := calls[name]
	if !slices.Contains(once, name) || rule.name >= len(call.Args) {
		return
	}
	given := call.Args[rule.name]
	value := c.info.Types[given].Value
	if value == nil {
		return
	}
	one := use{block: blockOf(around), name: value.ExactString()}
	if rule.attempt >= 0 {
		one.attempt = types.ExprString(call.Args[rule.attempt])
	} else if fun, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		one.attempt = types.ExprString(fun.X)
	}
	if c.used[one] {
		c.report(given.Pos(), "%s has the name %s of a call before it: an attempt uses a name once", name, one.name)
	}
	c.used[one] = true
}

// blockOf is the innermost list of statements around a node.
func blockOf(around []ast.Node) ast.Node {
	for _, n := range slices.Backward(around) {
		switch n.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			return n
		}
	}
	return nil
}

// dropped finds suspensions whose error reaches no one.
func (c *checker) dropped(e ast.Expr) {
	if name := c.named(e); calls[name].suspends {
		c.report(e.Pos(), "the error of %s is dropped: a suspension has to be returned by the handler", name)
	}
}

func (c *checker) call(call *ast.CallExpr, around []ast.Node) {
	name := c.named(call)
	if name == "" {
		return
	}
	rule := calls[name]
	if name != "Attempt.Snapshot" && c.step(around) != "" {
		c.report(call.Pos(), "%s within a step: call one after the other, or let one step do both", name)
	}
	if rule.name >= 0 && rule.name < len(call.Args) && inLoop(around) {
		if given := call.Args[rule.name]; c.info.Types[given].Value != nil {
			c.report(given.Pos(), "%s has the same name in each round of the loop: add what tells them apart", name)
		}
	}
	c.twice(name, call, around)
	if rule.work < 0 || rule.work >= len(call.Args) {
		return
	}
	if work, ok := ast.Unparen(call.Args[rule.work]).(*ast.FuncLit); ok {
		c.writes(work)
	}
	if name == "Step" {
		c.result(call)
	}
}

// step is the call whose work the node is in, "" for none.
func (c *checker) step(around []ast.Node) string {
	for i := len(around) - 1; i > 0; i-- {
		work, ok := around[i].(*ast.FuncLit)
		if !ok {
			continue
		}
		outer, ok := around[i-1].(*ast.CallExpr)
		if !ok {
			continue
		}
		name := c.named(outer)
		rule := calls[name]
		if name != "" && rule.work >= 0 && rule.work < len(outer.Args) && outer.Args[rule.work] == work {
			return name
		}
	}
	return ""
}

// inLoop reports that the node is in the body of a loop, within its function.
func inLoop(around []ast.Node) bool {
	var inner ast.Node
	for _, n := range slices.Backward(around) {
		switch n := n.(type) {
		case *ast.ForStmt:
			if inner == n.Body {
				return true
			}
		case *ast.RangeStmt:
			if inner == n.Body {
				return true
			}
		case *ast.FuncLit, *ast.FuncDecl:
			return false
		}
		inner = n
	}
	return false
}

// writes finds assignments to variables from outside of the work: a later attempt does not execute it.
func (c *checker) writes(work *ast.FuncLit) {
	assigned := func(e ast.Expr) {
		name, ok := ast.Unparen(e).(*ast.Ident)
		if !ok || name.Name == "_" {
			return
		}
		v, ok := c.info.Uses[name].(*types.Var)
		if ok && !v.IsField() && (v.Pos() < work.Pos() || v.Pos() > work.End()) {
			c.report(name.Pos(), "the step sets %s, which no later attempt does: return it as the step's result",
				name.Name)
		}
	}
	ast.Inspect(work.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					assigned(e)
				}
			}
		case *ast.IncDecStmt:
			assigned(n.X)
		}
		return true
	})
}

// result finds types that JSON does not hold.
func (c *checker) result(call *ast.CallExpr) {
	results, ok := c.info.Types[call].Type.(*types.Tuple)
	if !ok || results.Len() == 0 {
		return
	}
	t := results.At(0).Type()
	if what := unencodable(t, map[types.Type]bool{}); what != "" {
		c.report(call.Pos(), "the result of the step, %s, has %s: JSON does not hold it",
			types.TypeString(t, types.RelativeTo(nil)), what)
	}
}

// unencodable names what JSON does not hold of a type, "" for nothing.
func unencodable(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	if encodesItself(t) {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return "a channel"
	case *types.Signature:
		return "a function"
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 {
			return "a complex number"
		}
	case *types.Pointer:
		return unencodable(u.Elem(), seen)
	case *types.Slice:
		return unencodable(u.Elem(), seen)
	case *types.Array:
		return unencodable(u.Elem(), seen)
	case *types.Map:
		return unencodable(u.Elem(), seen)
	case *types.Struct:
		return unencodableFields(u, seen)
	}
	return ""
}

func unencodableFields(s *types.Struct, seen map[types.Type]bool) string {
	exported := 0
	for i := range s.NumFields() {
		field := s.Field(i)
		if !field.Exported() && !field.Embedded() || strings.Contains(s.Tag(i), `json:"-"`) {
			continue
		}
		exported++
		if what := unencodable(field.Type(), seen); what != "" {
			return what
		}
	}
	if exported == 0 && s.NumFields() > 0 {
		return "no exported field"
	}
	return ""
}

// encodesItself reports a type with an encoding that it chose.
func encodesItself(t types.Type) bool {
	for _, method := range []string{"MarshalJSON", "MarshalText"} {
		if m, _, _ := types.LookupFieldOrMethod(t, true, nil, method); m != nil {
			return true
		}
	}
	return false
}
