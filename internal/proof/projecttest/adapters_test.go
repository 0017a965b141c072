package projecttest

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

const adaptersGuide = "docs/internals/adapters.md"

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")

// excerptFaults finds Go blocks of a document that are not lines of one of the sources, as they stand there.
func excerptFaults(document string, sources []string) []string {
	var faults []string
	for i, match := range goBlock.FindAllStringSubmatch(document, -1) {
		if !slices.ContainsFunc(sources, func(source string) bool { return strings.Contains("\n"+source, "\n"+match[1]) }) {
			faults = append(faults, fmt.Sprintf("Go block %d is not in the code:\n%s", i+1, match[1]))
		}
	}
	return faults
}

// The guide shows the code of the example, which is compiled, vetted and put to the conformance suite like everything else.
func TestAdaptersGuide_ShowsTheExampleAsItIs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root(t), "examples", "toystorage", "*.go"))
	if err != nil || len(files) < 2 {
		t.Fatalf("the example has the files %v, %v", files, err)
	}
	var sources []string
	for _, file := range files {
		sources = append(sources, read(t, "examples", "toystorage", filepath.Base(file)))
	}
	document := read(t, adaptersGuide)
	if n := len(goBlock.FindAllString(document, -1)); n < 5 {
		t.Errorf("the guide shows %d blocks of Go", n)
	}
	for _, fault := range excerptFaults(document, sources) {
		t.Error(fault)
	}
}

func TestAdaptersGuide_TheRuleCanFail(t *testing.T) {
	t.Parallel()
	sources := []string{"package a\n\nfunc A() {\n\tb()\n}\n"}
	for block, sound := range map[string]bool{
		"package a\n": true, "\tb()\n}\n": true, "b()\n": false, "func A() {\n": true, "func A() {\n}\n": false, "func B() {\n": false,
	} {
		if faults := excerptFaults("text\n\n```go\n"+block+"```\n", sources); (len(faults) == 0) != sound {
			t.Errorf("%q: %v", block, faults)
		}
	}
}

// members are the methods of an interface or the fields of a struct.
func members(t reflect.Type) []string {
	var names []string
	if t.Kind() == reflect.Interface {
		for i := range t.NumMethod() {
			names = append(names, t.Method(i).Name)
		}
		return names
	}
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}

// A method, a flag or a hook that is added to the contract or the suite needs its words here.
func TestAdaptersGuide_NamesEverythingAnAdapterMeets(t *testing.T) {
	t.Parallel()
	document := read(t, adaptersGuide)
	for what, of := range map[string]reflect.Type{
		"method of lane.Storage":             reflect.TypeFor[lane.Storage](),
		"flag of lane.StorageCapabilities":   reflect.TypeFor[lane.StorageCapabilities](),
		"field of lanetest.StorageHarness":   reflect.TypeFor[lanetest.StorageHarness](),
		"field of lanetest.TransportHarness": reflect.TypeFor[lanetest.TransportHarness](),
	} {
		for _, name := range members(of) {
			if !strings.Contains(document, "`"+name+"`") {
				t.Errorf("%s does not name %s, a %s", adaptersGuide, name, what)
			}
		}
	}
}

var qualified = regexp.MustCompile("`(lane|lanetest)\\.([A-Z]\\w*)")

// topLevel are the exported names that the files of a package declare.
func topLevel(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

func TestAdaptersGuide_NamesWhatExists(t *testing.T) {
	t.Parallel()
	declared := map[string]map[string]bool{}
	for _, p := range goPackages(t) {
		if folder := p.folder(); folder == "lane" || folder == "lanetest" {
			declared[folder] = topLevel(parsePackage(t, p))
		}
	}
	mentions := qualified.FindAllStringSubmatch(read(t, adaptersGuide), -1)
	if len(mentions) < 10 {
		t.Fatalf("the guide mentions %v only", mentions)
	}
	for _, match := range mentions {
		if !declared[match[1]][match[2]] {
			t.Errorf("%s mentions %s.%s, which does not exist", adaptersGuide, match[1], match[2])
		}
	}
}
