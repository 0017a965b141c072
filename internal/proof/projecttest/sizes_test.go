package projecttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the code may not exceed. What did when the limits came is in testdata/sizes.txt, and may only shrink.
const (
	fileLines      = 400
	functionLines  = 70
	fieldsOfALine  = 3
	sizesName      = "sizes.txt"
	sizesExplained = "# What exceeds a limit of sizes_test.go, and by how much. Nothing here may grow; with -update, what shrank is lowered.\n"
)

// sizesOf measures a Go file: what exceeds a limit, and its size. Literals are counted for each package, outside of tests.
func sizesOf(name, source string) (map[string]int, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int{}
	line := func(at token.Pos) int { return fset.Position(at).Line }
	if lines := strings.Count(source, "\n"); lines > fileLines {
		sizes["file "+name] = lines
	}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			if lines := 1 + line(f.End()) - line(f.Pos()); lines > functionLines {
				sizes["function "+name+" "+f.Name.Name] = lines
			}
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return sizes, nil // cases of a table are rows
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok && crowded(literal, line) {
			sizes["literals "+path.Dir(name)]++
		}
		return true
	})
	return sizes, nil
}

// crowded reports whether a literal of a struct has more fields than a line may, and not one a line.
func crowded(literal *ast.CompositeLit, line func(token.Pos) int) bool {
	if _, ok := literal.Type.(*ast.MapType); ok {
		return false
	}
	fields, lines := 0, map[int]bool{}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if _, ok := pair.Key.(*ast.Ident); ok {
				fields++
				lines[line(pair.Pos())] = true
			}
		}
	}
	return fields > fieldsOfALine && len(lines) < fields
}

// sizeFaults compares what exceeds a limit with the list of exceptions.
func sizeFaults(sizes, allowed map[string]int) []string {
	var faults []string
	for what, size := range sizes {
		switch most, listed := allowed[what]; {
		case !listed:
			faults = append(faults, fmt.Sprintf("%s: %d, which is too much: split it", what, size))
		case size > most:
			faults = append(faults, fmt.Sprintf("%s: %d, and was %d: split it", what, size, most))
		case size < most:
			faults = append(faults, fmt.Sprintf("%s: %d, and was %d: write that down (-run Sizes -update)", what, size, most))
		}
	}
	for what := range allowed {
		if _, still := sizes[what]; !still {
			faults = append(faults, fmt.Sprintf("%s: within the limits: leave the exception out (-run Sizes -update)", what))
		}
	}
	slices.Sort(faults)
	return faults
}

// lowered is the list with what shrank; nothing in it grows and nothing is added.
func lowered(sizes, allowed map[string]int) map[string]int {
	after := map[string]int{}
	for what, most := range allowed {
		if size, still := sizes[what]; still {
			after[what] = min(size, most)
		}
	}
	return after
}

// parseSizes reads lines of a number and what has that size.
func parseSizes(text string) (map[string]int, error) {
	sizes := map[string]int{}
	for line := range strings.Lines(text) {
		number, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number == "" || number == "#" {
			continue
		}
		size, err := strconv.Atoi(number)
		if err != nil || what == "" {
			return nil, fmt.Errorf("%q is no number with what has that size", line)
		}
		sizes[what] = size
	}
	return sizes, nil
}

// formatSizes writes them sorted by what they are of.
func formatSizes(sizes map[string]int) string {
	var text strings.Builder
	text.WriteString(sizesExplained)
	for _, what := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(&text, "%d %s\n", sizes[what], what)
	}
	return text.String()
}

func TestSizes_AreWithinTheLimits(t *testing.T) {
	t.Parallel()
	sizes, files := map[string]int{}, 0
	for name, text := range textFiles(t) {
		if filepath.Ext(name) != ".go" {
			continue
		}
		files++
		of, err := sizesOf(name, text)
		if err != nil {
			continue // a fixture that is no Go
		}
		for what, size := range of {
			sizes[what] += size
		}
	}
	if files < 500 {
		t.Fatalf("only %d files were measured", files)
	}
	allowed, err := parseSizes(read(t, "internal", "proof", "projecttest", "testdata", sizesName))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		allowed = lowered(sizes, allowed)
		if err := os.WriteFile(filepath.Join("testdata", sizesName), []byte(formatSizes(allowed)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range sizeFaults(sizes, allowed) {
		t.Error(fault)
	}
}

func TestSizes_AreMeasured(t *testing.T) {
	t.Parallel()
	long := "package a\nfunc (t T) F() {\n" + strings.Repeat("\tf()\n", functionLines) + "}\n" + strings.Repeat("\n", fileLines)
	for source, want := range map[string]map[string]int{
		long: {"file p/a.go": 473, "function p/a.go F": 72},
		"package a\nvar b, c = T{A: 1, B: 2, C: 3, D: 4}, T{A: 1, B: 2, C: 3}\n": {"literals p": 1},
		"package a\nvar b = []T{{A: 1, B: 2,\n C: 3, D: 4}, {1, 2, 3, 4}}\n":     {"literals p": 1},
		"package a\nvar b = map[K]int{A: 1, B: 2, C: 3, D: 4}\n":                 {},
		"package a\nvar b = T{\nA: 1,\nB: 2,\nC: 3,\nD: 4,\n}\n":                 {},
	} {
		got, err := sizesOf("p/a.go", source)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%.80q: %v, %v", source, got, err)
		}
	}
	if got, err := sizesOf("p/a_test.go", "package a\nvar b = T{A: 1, B: 2, C: 3, D: 4}\n"); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

func TestSizes_MayOnlyShrink(t *testing.T) {
	t.Parallel()
	allowed, err := parseSizes("# text\n10 file a\n20 file b\n30 file c\n")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{"file a": 11, "file b": 19, "file d": 5}
	if faults := sizeFaults(sizes, allowed); len(faults) != 4 {
		t.Errorf("%q", faults)
	}
	want := map[string]int{"file a": 10, "file b": 19}
	if got := lowered(sizes, allowed); !maps.Equal(got, want) {
		t.Error(got)
	}
	if again, err := parseSizes(formatSizes(want)); err != nil || !maps.Equal(again, want) {
		t.Error(again, err)
	}
	if _, err := parseSizes("many file a\n"); err == nil {
		t.Error("a size that is no number was read")
	}
}
