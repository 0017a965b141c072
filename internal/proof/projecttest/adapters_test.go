package projecttest

import (
	"go/ast"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

const adaptersGuide = "docs/internals/adapters.md"

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
