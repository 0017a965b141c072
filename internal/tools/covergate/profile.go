package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// block is a run of statements that a coverage profile counts together.
type block struct {
	file       string // base name
	span       string // startLine.startColumn,endLine.endColumn
	statements int
	covered    bool
}

// A profile line: import/path/file.go:startLine.startColumn,endLine.endColumn statements count
var profileLine = regexp.MustCompile(`^(.+):(\d+\.\d+,\d+\.\d+) (\d+) (\d+)$`)

// parseProfile reads a coverage profile. A block that stands in it several times is covered when any of them is.
func parseProfile(text string) ([]block, error) {
	found := map[string]*block{}
	var order []*block
	for number, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		part := profileLine.FindStringSubmatch(line)
		if part == nil {
			return nil, fmt.Errorf("coverage profile, line %d: %q is not understood", number+1, line)
		}
		statements, err := strconv.Atoi(part[3])
		if err != nil {
			return nil, fmt.Errorf("coverage profile, line %d: %w", number+1, err)
		}
		key := part[1] + ":" + part[2]
		b := found[key]
		if b == nil {
			b = &block{file: path.Base(part[1]), span: part[2], statements: statements}
			found[key] = b
			order = append(order, b)
		}
		b.covered = b.covered || part[4] != "0"
	}
	blocks := make([]block, len(order))
	for i, b := range order {
		blocks[i] = *b
	}
	return blocks, nil
}

// testNames lists the tests, examples and fuzz targets (run with their seeds) that the files declare.
func testNames(files []string) ([]string, error) {
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range parsed.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil || function.Name.Name == "TestMain" {
				continue
			}
			for _, prefix := range []string{"Test", "Fuzz", "Example"} {
				if strings.HasPrefix(function.Name.Name, prefix) {
					names = append(names, function.Name.Name)
				}
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s declare no test", strings.Join(files, ", "))
	}
	sort.Strings(names)
	return names, nil
}
