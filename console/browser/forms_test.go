package browser

import (
	"bytes"
	"encoding/xml"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A form is named by its route, with the change in its place, and by the hidden fields that say what it does:
// "/runs/{run}/cancel", "/bulk/cancel sure". Fields that say to what it is done are no part of the name.
var toWhat = []string{"queue", "schedule", "seen", "signal", "source", "status", "task", "to", "waiting"}

// forms are those of the pages that a browser has got, and those that it has sent and that did something.
type forms struct {
	t      *testing.T
	routes *http.ServeMux // of what changes something

	mu      sync.Mutex
	offered map[string][]string // the hidden fields, by the name
	sent    map[string]bool     // by the name
	now     []string            // what was sent since begin
}

func newForms(t *testing.T) *forms {
	t.Helper()
	f := &forms{t: t, routes: http.NewServeMux(), offered: map[string][]string{}, sent: map[string]bool{}}
	patterns, _ := changesOf(t, sources(t))
	for _, pattern := range patterns {
		f.routes.Handle(pattern, http.NotFoundHandler())
	}
	return f
}

// around notes what a console offers, and what it is sent.
func (f *forms) around(root http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := url.Values{}
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				fields, err = url.ParseQuery(string(body))
			}
			if err != nil {
				f.t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		answer := &answer{ResponseWriter: w, status: http.StatusOK}
		root.ServeHTTP(answer, r)
		if r.Method == http.MethodPost && answer.status < http.StatusBadRequest {
			f.send(r.URL.Path, fields)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			f.offer(answer.page.Bytes())
		}
	})
}

// answer keeps what is written.
type answer struct {
	http.ResponseWriter

	status int
	page   bytes.Buffer
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.page.Write(b)
	return a.ResponseWriter.Write(b)
}

// route is the pattern of a path, with the change in its place.
func (f *forms) route(of string) string {
	_, pattern := f.routes.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: of}})
	if pattern == "" {
		return of // an address that a page offers and the console does not have
	}
	return strings.Replace(strings.TrimPrefix(pattern, "POST "), "{change}", path.Base(of), 1)
}

// send notes a form by that of its route's forms of which it has the most hidden fields.
func (f *forms) send(to string, fields url.Values) {
	f.mu.Lock()
	defer f.mu.Unlock()
	route := f.route(to)
	name, most := route, -1
	for offered, hidden := range f.offered {
		of, _, _ := strings.Cut(offered, " ")
		if lacks := func(field string) bool { return !fields.Has(field) }; of != route || slices.ContainsFunc(hidden, lacks) {
			continue
		}
		if len(hidden) > most {
			name, most = offered, len(hidden)
		}
	}
	f.sent[name] = true
	f.now = append(f.now, name)
}

// offer notes the forms of a page that change something.
func (f *forms) offer(page []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	html := xml.NewDecoder(bytes.NewReader(page))
	html.Strict, html.AutoClose, html.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	inside, action, hidden := false, "", []string(nil)
	for {
		element, err := html.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			f.t.Errorf("a page cannot be read: %v", err)
			return
		}
		switch e := element.(type) {
		case xml.StartElement:
			switch has := func(name string) string { return attribute(e, name) }; {
			case e.Name.Local == "form":
				inside, action, hidden = has("method") == "post", has("action"), nil
			case inside && e.Name.Local == "input" && has("type") == "hidden" && !slices.Contains(toWhat, has("name")):
				hidden = append(hidden, has("name"))
			}
		case xml.EndElement:
			if e.Name.Local == "form" && inside {
				f.offered[strings.Join(append([]string{f.route(action)}, hidden...), " ")] = hidden
				inside = false
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	i := slices.IndexFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		return ""
	}
	return e.Attr[i].Value
}

// begin forgets what was sent until now, for [forms.since].
func (f *forms) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = nil
}

// since are the forms that were sent since begin, each once.
func (f *forms) since() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.now)
	return slices.Compact(f.now)
}

// unsent are the forms that a page has offered and that the browser has not sent.
func (f *forms) unsent() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.offered {
		if !f.sent[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sources are the files of the console, without tests.
func sources(t *testing.T) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// routesOf reads the routes of a method: their patterns, and the functions that they lead to.
func routesOf(files []*ast.File, method string) map[string]string {
	routes := map[string]string{}
	route := func(pattern, does ast.Expr) {
		text := textOf(pattern)
		if !strings.HasPrefix(text, method+" ") {
			return
		}
		switch function := does.(type) {
		case *ast.SelectorExpr:
			routes[text] = function.Sel.Name
		case *ast.Ident:
			routes[text] = function.Name
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				route(n.Key, n.Value)
			case *ast.CallExpr:
				if len(n.Args) == 2 {
					route(n.Args[0], n.Args[1])
				}
			}
			return true
		})
	}
	return routes
}

// changesOf reads the routes that change something, and each change that they take: what their functions compare with.
func changesOf(t *testing.T, files []*ast.File) (patterns, changes []string) {
	t.Helper()
	known := map[string][]string{} // words by their functions
	for _, file := range files {
		for _, declared := range file.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok {
				known[function.Name.Name] = wordsOf(function)
			}
		}
	}
	for pattern, function := range routesOf(files, http.MethodPost) {
		patterns = append(patterns, pattern)
		at := strings.TrimPrefix(pattern, "POST ")
		if !strings.Contains(at, "{change}") {
			changes = append(changes, at)
			continue
		}
		if len(known[function]) == 0 {
			t.Errorf("%s takes a change, and %s compares it with none", pattern, function)
		}
		for _, change := range known[function] {
			changes = append(changes, strings.Replace(at, "{change}", change, 1))
		}
	}
	slices.Sort(patterns)
	slices.Sort(changes)
	return patterns, changes
}

// unopened are the pages of the console that none of the paths leads to.
func unopened(files []*ast.File, paths []string) (pages []string) {
	mux, routes := http.NewServeMux(), routesOf(files, http.MethodGet)
	delete(routes, "GET /assets/{name}") // what pages load
	delete(routes, "GET /")              // any other address: its answer is 404, which a browser's console has a word for
	for pattern := range routes {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	for _, path := range paths {
		path, _, _ = strings.Cut(path, "?")
		_, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
		delete(routes, pattern)
	}
	return slices.Sorted(maps.Keys(routes))
}

// wordsOf are the texts of a function's cases, and the keys of its maps.
func wordsOf(function *ast.FuncDecl) (words []string) {
	ast.Inspect(function, func(n ast.Node) bool {
		var all []ast.Expr
		switch n := n.(type) {
		case *ast.CaseClause:
			all = n.List
		case *ast.CompositeLit:
			if _, ok := n.Type.(*ast.MapType); !ok {
				break
			}
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					all = append(all, pair.Key)
				}
			}
		}
		for _, e := range all {
			if text := textOf(e); text != "" {
				words = append(words, text)
			}
		}
		return true
	})
	return words
}

// textOf is the text that is written there, "" for anything else.
func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// uncovered are the changes without a case, and the cases of no change.
func uncovered(changes []string, cases []change) (without, of []string) {
	var covered []string
	for _, c := range cases {
		for _, name := range c.sends {
			route, _, _ := strings.Cut(name, " ")
			covered = append(covered, route)
		}
	}
	for _, route := range changes {
		if !slices.Contains(covered, route) {
			without = append(without, route)
		}
	}
	for _, route := range covered {
		if !slices.Contains(changes, route) {
			of = append(of, route)
		}
	}
	return without, of
}

// A route of the console that changes something, and each change that it takes, has a case in a browser.
func TestChanges_EachHasACase(t *testing.T) {
	t.Parallel()
	_, routes := changesOf(t, sources(t))
	without, of := uncovered(routes, changes)
	for _, route := range without {
		t.Errorf("no case of changes sends %s", route)
	}
	for _, route := range of {
		t.Errorf("a case sends %s, which the console does not have", route)
	}
	checks.Add(int64(len(routes)))
}

// A new page, a new route that changes something, and a new word of one that takes several, is found.
func TestRoutes_OneWithoutACaseIsFound(t *testing.T) {
	t.Parallel()
	source := `package console
	func (c *console) routes() {
		c.mux.HandleFunc("POST /a", c.a)
		for range map[string]func(){"POST /b/{b}/{change}": (*visitor).b, "GET /d": d, "GET /e/{e}": (*visitor).e} {}
	}
	func (v *visitor) b() { switch change { case "x", "y": }; _ = map[string]int{"z": 1} }`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, routes := changesOf(t, []*ast.File{file})
	without, of := uncovered(routes, []change{{sends: []string{"/a sure", "/b/{b}/x", "/c"}}})
	if !slices.Equal(without, []string{"/b/{b}/y", "/b/{b}/z"}) || !slices.Equal(of, []string{"/c"}) {
		t.Errorf("without a case: %q; of no change: %q", without, of)
	}
	if pages := unopened([]*ast.File{file}, []string{"/e/1?f", "/a"}); !slices.Equal(pages, []string{"GET /d"}) {
		t.Errorf("pages that are not opened: %q", pages)
	}
}
