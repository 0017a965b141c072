package projecttest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Named strings that have constants but are no closed vocabulary: their constants are defaults.
var openStrings = []string{"runlane.Environment", "runlane.TaskID", "runlane.QueueName", "runlane.RunID", "runlane.ScheduleID", "runlane.Cursor"}

// enums maps "package.Type" to "Constant = value" of every exported constant of a string-based named type of the package.
func enums(name string, files []*ast.File) (map[string][]string, error) {
	types := stringTypes(files)
	found := map[string][]string{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			d, ok := declaration.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				if err := collect(name, types, spec.(*ast.ValueSpec), found); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, members := range found {
		slices.Sort(members)
	}
	return found, nil
}

// stringTypes are the types declared as `type T string`.
func stringTypes(files []*ast.File) map[string]bool {
	found := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if underlying, ok := spec.Type.(*ast.Ident); ok && underlying.Name == "string" && !spec.Assign.IsValid() {
					found[spec.Name.Name] = true
				}
			}
			return true
		})
	}
	return found
}

func collect(packageName string, types map[string]bool, spec *ast.ValueSpec, found map[string][]string) error {
	for i, constant := range spec.Names {
		var typeName string
		var value ast.Expr
		if named, is := spec.Type.(*ast.Ident); is {
			typeName = named.Name
		}
		if i < len(spec.Values) {
			value = spec.Values[i]
		}
		if conversion, is := value.(*ast.CallExpr); is && len(conversion.Args) == 1 { // const X = T("x")
			if named, is := conversion.Fun.(*ast.Ident); is {
				typeName, value = named.Name, conversion.Args[0]
			}
		}
		if !types[typeName] || !constant.IsExported() {
			continue
		}
		literal, is := value.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return fmt.Errorf("%s.%s: write the value of an enum's constant as a literal", packageName, constant.Name)
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return err
		}
		key := packageName + "." + typeName
		if slices.Contains(openStrings, key) {
			continue
		}
		found[key] = append(found[key], text+" "+constant.Name)
	}
	return nil
}

// TestEnums_HaveTheirStrings holds every closed vocabulary to its golden file: these strings are stored in tables and logs
// and branched on by programs, so a change is never an accident. Run with -update to accept one.
func TestEnums_HaveTheirStrings(t *testing.T) {
	t.Parallel()
	all := map[string][]string{}
	for _, p := range goPackages(t) {
		if !slices.Contains([]string{"", "lane", "core"}, p.folder()) {
			continue
		}
		found, err := enums(p.Name, parsePackage(t, p))
		if err != nil {
			t.Fatal(err)
		}
		for key, members := range found {
			all[key] = members
			for i := 1; i < len(members); i++ {
				this, _, _ := strings.Cut(members[i], " ")
				if before, _, _ := strings.Cut(members[i-1], " "); before == this {
					t.Errorf("%s: two constants are %q", key, this)
				}
			}
		}
	}
	var text strings.Builder
	text.WriteString("# Every closed vocabulary: the string at rest and its constant. internal/proof/projecttest writes this with -update.\n")
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "\n%s\n", key)
		for _, member := range all[key] {
			value, constant, _ := strings.Cut(member, " ")
			fmt.Fprintf(&text, "  %-28s %s\n", value, constant)
		}
	}
	path := filepath.Join("testdata", "enums.golden")
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
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("(-golden +code), accept with: go test ./internal/proof/projecttest -run Enums -update\n%s", diff)
	}
}
