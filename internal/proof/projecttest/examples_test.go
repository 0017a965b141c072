package projecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// userPackages are the packages whose names people type. Those of adapter authors, lane and lanetest, are explained by package lane,
// whose code is compiled and tested.
var userPackages = []string{"", "core", "memlane", "awslane", "awslane/secrets", "functions", "cli", "runlanetest", "dynamostore", "sqstransport", "sealed"}

// protocol are methods that no code calls by name: fmt, errors and encoding/json do, or the runtime when it opens.
var protocol = []string{"Error", "Unwrap", "Is", "String", "GoString", "Format", "LogValue", "MarshalJSON", "UnmarshalJSON", "Validate", "IsZero"}

// composed are types whose values people write, beside those of options.
var composed = []string{
	"runlane.Queue", "runlane.Retry", "runlane.Exponential", "runlane.Fixed", "runlane.BackoffFunc", "runlane.Schedule", "runlane.Misfire",
	"runlane.Middleware", "core.BatchItem", "core.RunFilter", "core.World", "core.Hook", "core.Metrics", "cli.Check", "cli.Variable",
}

// excused are names that need no Example, with the reason. A name ending in "." stands for all methods of the type.
var excused = map[string]string{
	"runlane.WithAttempt":          "for runtimes",
	"runlane.MarshalBody":          "for storages",
	"runlane.UnmarshalBody":        "for storages",
	"runlane.NewConflict":          "for storages",
	"runlane.NewFailure":           "for runtimes and storages",
	"runlane.UTCMillis":            "for storages",
	"runlane.ValidateKey":          "for runtimes: Trigger calls it",
	"runlane.Environment.Name":     "for storages",
	"runlane.Event.":               "for storages; applications read records from Runs.Events",
	"runlane.EventRecord.":         "for storages",
	"runlane.Failure.":             "for storages",
	"runlane.Run.Clone":            "for storages",
	"runlane.Debounced.Clone":      "for storages",
	"runlane.Run.Summary":          "for storages: lists return summaries",
	"runlane.Run.Abandoned":        "for runtimes",
	"dynamostore.Writes.Kind":      "for the store",
	"runlane.Run.RunnableAt":       "for runtimes and storages",
	"runlane.RunnableSince":        "for storages",
	"runlane.Waiting.":             "for runtimes and storages",
	"runlane.SignalValue.":         "for runtimes: With makes them",
	"runlane.WaitingKinds":         "for tools that list the vocabulary",
	"runlane.FarMoment":            "for runtimes, storages and tools that show times",
	"runlane.ValidateSignalName":   "for runtimes",
	"runlane.ValidateStepName":     "for runtimes",
	"runlane.Definition.Record":    "for runtimes",
	"runlane.TaskRecord.":          "for runtimes and storages",
	"runlane.Lease.":               "for runtimes and storages",
	"runlane.Fixed.":               "a Backoff: the runtime calls it",
	"runlane.BackoffFunc.":         "a Backoff: the runtime calls it",
	"runlane.Exponential.":         "a Backoff: the runtime calls it",
	"runlane.Queue.Bounded":        "for runtimes and storages",
	"runlane.Queue.Rated":          "for runtimes and storages",
	"runlane.Rate.MarshalText":     "for encoders, as String",
	"runlane.EventTypes":           "for tools that list the vocabulary",
	"runlane.Statuses":             "for tools that list the vocabulary",
	"core.Waits":                   "for tools that list the vocabulary",
	"memlane.NewBodyStore":         "for lanes from parts: New has one",
	"memlane.Storage.":             "lane.Storage: the runtime calls it; package lane",
	"memlane.Transport.":           "lane.Transport: the runtime calls it; package lane",
	"dynamostore.Store.":           "lane.Storage: the runtime calls it; package lane",
	"sqstransport.Deliver":         "for package functions: it executes a batch of Lambda's",
	"sqstransport.HandBackDelay":   "for package functions",
	"core.Runtime.Suspect":         "for package functions",
	"sqstransport.ParseMessage":    "for package functions",
	"dynamostore.DropStreamBytes":  "for package eventbus",
	"dynamostore.ParseStreamRun":   "for package eventbus, which reads the table's stream",
	"dynamostore.ParseStreamImage": "for package functions: the relay reads the table's stream",
	"core.Runtime.CheckInvocation": "for package functions: the bridge calls it",
	"core.LongestTimeout":          "for package functions, and doctor",
	"core.Runtime.PublishWakeups":  "for package functions: the relay calls it",
	"sealed.Codec.":                "a Codec: the runtime calls it",
	"sqstransport.Transport.":      "lane.Transport: the runtime calls it; package lane",
}

// importsOf resolves imports from what the compiler wrote, which `go list -export` names.
type importsOf map[string]string

func (exports importsOf) importer(files *token.FileSet) types.Importer {
	return importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	})
}

// compiledPackage is what the rule needs of `go list -export`.
type compiledPackage struct {
	ImportPath, Name, Dir, Export string
	XTestGoFiles                  []string
}

func compiledPackages(t *testing.T, folders ...string) (packages map[string]compiledPackage, exports importsOf) {
	t.Helper()
	arguments := []string{"list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,XTestGoFiles"}
	for _, folder := range folders {
		arguments = append(arguments, "./"+folder)
	}
	packages, exports = map[string]compiledPackage{}, importsOf{}
	for decoder := json.NewDecoder(strings.NewReader(run(t, root(t), nil, "go", arguments...))); ; {
		var p compiledPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, exports
		}
		if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		packages[strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")] = p
	}
}

// nameOf is how the rule calls an object: "package.Name" or "package.Type.Method".
func nameOf(object types.Object) string {
	if object == nil || object.Pkg() == nil {
		return ""
	}
	name := object.Pkg().Name() + "."
	f, ok := object.(*types.Func)
	if !ok {
		return name + object.Name()
	}
	receiver := f.Origin().Signature().Recv()
	if receiver == nil {
		return name + object.Name()
	}
	of := receiver.Type()
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return name + named.Obj().Name() + "." + object.Name()
	}
	return ""
}

// typed are the names of a package that its users type: functions, methods, and what they fill in.
func typed(p *types.Package) []string {
	var names []string
	for _, name := range p.Scope().Names() {
		switch object := p.Scope().Lookup(name).(type) {
		case *types.Func:
			if object.Exported() {
				names = append(names, nameOf(object))
			}
		case *types.TypeName:
			named, ok := types.Unalias(object.Type()).(*types.Named)
			if !object.Exported() || !ok || object.IsAlias() {
				continue
			}
			_, isStruct := named.Underlying().(*types.Struct)
			if isStruct && strings.HasSuffix(name, "Options") || slices.Contains(composed, nameOf(object)) {
				names = append(names, nameOf(object))
			}
			for method := range named.Methods() {
				if method.Exported() && !slices.Contains(protocol, method.Name()) {
					names = append(names, nameOf(method))
				}
			}
		}
	}
	return names
}

// subject is what an Example is called after: "Name" or "Type.Method", by the rules of go doc.
func subject(function string) string {
	parts := strings.Split(strings.TrimPrefix(function, "Example"), "_")
	if last := parts[len(parts)-1]; len(parts) > 1 && last != "" && last[0] >= 'a' && last[0] <= 'z' {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, ".")
}

// shownBy are the names that the Example functions of some files use or are called after. Faults of the files are the compiler's to report.
func shownBy(files *token.FileSet, parsed []*ast.File, imports types.Importer) map[string]bool {
	names := map[string]bool{}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, Error: func(error) {}}
	_, _ = config.Check("examples", files, parsed, info)
	for _, file := range parsed {
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
				continue
			}
			names[strings.TrimSuffix(file.Name.Name, "_test")+"."+subject(f.Name.Name)] = true
			ast.Inspect(f.Body, func(node ast.Node) bool {
				if identifier, ok := node.(*ast.Ident); ok {
					names[nameOf(info.Uses[identifier])] = true
				}
				return true
			})
		}
	}
	return names
}

// exampleFaults finds names without an Example, and excuses that are not needed.
func exampleFaults(names []string, shown map[string]bool, excuses map[string]string) []string {
	var faults []string
	needed := map[string]bool{}
	for _, name := range names {
		if shown[name] {
			continue
		}
		of := name[:strings.LastIndexByte(name, '.')+1]
		switch {
		case excuses[name] != "":
			needed[name] = true
		case excuses[of] != "":
			needed[of] = true
		default:
			faults = append(faults, name+" is in no Example of its package")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(excuses)) {
		if !needed[name] {
			faults = append(faults, name+" is excused without need")
		}
	}
	return faults
}

// Everything that a user types is in an Example function of its package, or one is called after it, which go vet compiles and go test executes.
func TestExamples_ShowEverythingAUserTypes(t *testing.T) {
	t.Parallel()
	folders := slices.DeleteFunc(slices.Clone(userPackages), func(folder string) bool {
		_, err := os.Stat(filepath.Join(root(t), folder))
		return err != nil
	})
	packages, exports := compiledPackages(t, folders...)
	var names []string
	shown := map[string]bool{}
	for _, folder := range folders {
		p, ok := packages[folder]
		if !ok {
			t.Fatalf("go list does not list %q", folder)
		}
		files := token.NewFileSet()
		imports := exports.importer(files)
		own, err := imports.Import(p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, typed(own)...)
		var parsed []*ast.File
		for _, name := range p.XTestGoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		for name := range shownBy(files, parsed, imports) {
			if strings.HasPrefix(name, p.Name+".") {
				shown[name] = true
			}
		}
	}
	for _, name := range composed {
		if !slices.Contains(names, name) {
			t.Errorf("%s does not exist", name)
		}
	}
	if len(names) < 100 {
		t.Fatalf("people type %v only", names)
	}
	for _, fault := range exampleFaults(names, shown, excused) {
		t.Error(fault)
	}
}
