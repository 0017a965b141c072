package runlane_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/runlane/runlane-go"
)

// constants reads the values of the package's constants of a type from its source, so that no list can forget one.
func constants(t *testing.T, file, typeName string) []string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(tree, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
			for _, value := range spec.Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typeName)
	}
	return values
}

func TestStatuses_ListsEveryConstant(t *testing.T) {
	t.Parallel()
	listed := runlane.Statuses()
	for _, value := range constants(t, "status.go", "Status") {
		if !slices.Contains(listed, runlane.Status(value)) {
			t.Errorf("%s is not listed", value)
		}
	}
	if want := len(constants(t, "status.go", "Status")); len(listed) != want {
		t.Errorf("%d listed, %d constants", len(listed), want)
	}
	listed[0] = "changed"
	if runlane.Statuses()[0] != runlane.StatusQueued {
		t.Error("callers share one list")
	}
}

func TestStatus_End_OfTerminalOnesAlone(t *testing.T) {
	t.Parallel()
	fn := runlane.NewFunc[int, int]("status.end", nil)
	for _, status := range append(runlane.Statuses(), "of a newer version") {
		end := status.End()
		if end.End() != end || (end != "") != status.Terminal() {
			t.Errorf("%s counts as %q, which counts as %q", status, end, end.End())
		}
		if slices.Contains(runlane.TerminalStatuses(), status) != status.Terminal() {
			t.Errorf("%s: in the list of terminal ones: %t", status, !status.Terminal())
		}
		_, err := fn.Result(&runlane.Run{TaskID: "status.end", Status: status})
		if unended := runlane.CodeOf(err) == runlane.ErrValidationFailed; unended == status.Terminal() {
			t.Errorf("%s: its result is %v", status, err)
		}
	}
}

func TestStatus_EachIsOfOneKind(t *testing.T) {
	t.Parallel()
	ended := false
	for _, s := range runlane.Statuses() {
		if ended && !s.Terminal() {
			t.Errorf("%s is listed behind terminal ones", s)
		}
		ended = s.Terminal()
		kinds := 0
		for _, is := range []bool{s == runlane.StatusQueued, s.Waiting(), s.Owned(), s.Terminal()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 || !s.Known() || s.Active() == s.Terminal() {
			t.Errorf("%s is of %d kinds; known %t, active %t, terminal %t", s, kinds, s.Known(), s.Active(), s.Terminal())
		}
	}
	for _, s := range []runlane.Status{"", "Queued", "of a newer version"} {
		if s.Waiting() || s.Owned() || s.Terminal() || s.Known() || !s.Active() {
			t.Errorf("%q, which is unknown, has a kind", s)
		}
	}
}
