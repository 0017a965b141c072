package projecttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// importRule says what the packages of a folder may import outside tests. In allow "$gostd" is the
// standard library, a trailing "$" means exactly this package, everything else is a prefix.
type importRule struct {
	folder string // "core" means that folder, "core/..." what is below it too
	allow  []string
}

const (
	runlanePkg = module + "$"
	lanePkg    = module + "/lane$"
	corePkg    = module + "/core$"
	awsSDK     = "github.com/aws/aws-sdk-go-v2"
	smithy     = "github.com/aws/smithy-go"
	lambdaGo   = "github.com/aws/aws-lambda-go"
	compress   = "github.com/klauspost/compress"
	xsync      = "golang.org/x/sync"
	otelAPI    = "go.opentelemetry.io/otel"

	hostOf  = module + "/internal/host$"
	blindOf = module + "/internal/blind$"
	apartOf = module + "/internal/apart$"

	reducerFolder = "core/internal/reducer"

	failPkg   = module + "/core/internal/fail$"
	originPkg = module + "/core/internal/origin$"

	itemPkg     = module + "/dynamostore/internal/item$"
	dynamoTypes = awsSDK + "/service/dynamodb/types$"
)

// The import table. A package that no rule names is an error, so a new folder gets its line here.
var importRules = []importRule{
	{"", []string{"$gostd"}},
	{"lane/...", []string{"$gostd", runlanePkg}},
	{reducerFolder, []string{runlanePkg, "fmt$", "reflect$", "slices$", "strings$", "time$"}},
	{"core", []string{
		"$gostd", runlanePkg, lanePkg, module + "/core/internal/", blindOf, apartOf, hostOf, "github.com/oklog/ulid/v2$", xsync,
	}},
	{"core/internal/move", []string{
		"$gostd", runlanePkg, lanePkg, failPkg, module + "/core/internal/flow$", module + "/" + reducerFolder + "$",
	}},
	{"core/internal/...", []string{"$gostd", runlanePkg, lanePkg, failPkg, originPkg, blindOf, apartOf, xsync}},
	{"internal/embedded", []string{"$gostd", runlanePkg, lanePkg}},
	{"memlane/...", []string{"$gostd", runlanePkg, lanePkg, module + "/internal/embedded$"}},
	{"dynamostore", []string{
		"$gostd", runlanePkg, lanePkg, itemPkg, module + "/dynamostore/internal/rows$", module + "/dynamostore/internal/ddb$", awsSDK, xsync,
	}},
	{"dynamostore/internal/item", []string{"$gostd", dynamoTypes}},
	{"dynamostore/internal/rows", []string{
		"$gostd", runlanePkg, lanePkg, itemPkg, dynamoTypes, compress,
	}},
	{"dynamostore/internal/ddb", []string{
		"$gostd", runlanePkg, itemPkg, awsSDK, smithy, xsync,
	}},
	{"sqstransport/...", []string{"$gostd", runlanePkg, lanePkg, awsSDK, smithy, xsync}},
	{"awslane/...", []string{
		"$gostd", runlanePkg, lanePkg, module + "/awslane$", module + "/awslane/s3bodies$", module + "/dynamostore$", module + "/sqstransport$",
		module + "/internal/awsclient$", hostOf, awsSDK, smithy, xsync,
	}},
	{"internal/awsclient/...", []string{"$gostd", awsSDK}},
	{"functions", []string{
		"$gostd", runlanePkg, lanePkg, corePkg, module + "/awslane$", module + "/awslane/secrets$", module + "/sqstransport$",
		module + "/dynamostore$", lambdaGo,
		awsSDK + "/service/dynamodb/types$", module + "/internal/causes$", module + "/internal/streamimage$", hostOf,
	}},
	{"functions/eventsource", []string{"$gostd", runlanePkg, awsSDK, smithy, lambdaGo, xsync}},
	{"functions/...", []string{
		"$gostd", runlanePkg, corePkg, module + "/awslane$", module + "/functions$", module + "/examples/webhooks",
	}},
	{"eventbus", []string{
		"$gostd", runlanePkg, module + "/awslane$", module + "/dynamostore$", module + "/internal/shown$", module + "/internal/streamimage$", awsSDK, lambdaGo,
	}},
	{"eventbus/...", []string{module + "/eventbus$"}},
	{"internal/streamimage", []string{awsSDK + "/service/dynamodb/types$", lambdaGo}},
	{"functionurl", []string{
		"$gostd", runlanePkg, corePkg, module + "/functions$", module + "/server$", module + "/console$", lambdaGo,
	}},
	{"functionurl/...", []string{module + "/functionurl$", module + "/examples/webhooks"}},
	{"cli", []string{
		"$gostd", runlanePkg, lanePkg, corePkg, apartOf, module + "/internal/causes$", module + "/internal/doctor$", module + "/internal/shown$",
		module + "/internal/taskbook$", module + "/server$", module + "/server/schema$", module + "/console$", module + "/cli/internal/samfile$", module + "/target$", hostOf,
		"github.com/aymanbagabas/go-udiff",
	}},
	{"target", []string{"$gostd", runlanePkg, module + "/internal/outbound$", "go.yaml.in/yaml/v3$"}},
	{"internal/doctor/...", []string{
		"$gostd", runlanePkg, corePkg, lanePkg, apartOf, module + "/internal/causes$", module + "/internal/shown$",
	}},
	{"server/schema", []string{"$gostd", "github.com/santhosh-tekuri/jsonschema"}},
	{"server/...", []string{
		"$gostd", runlanePkg, corePkg, lanePkg, blindOf, apartOf, module + "/internal/doctor$", module + "/internal/shown$", module + "/internal/taskbook$", module + "/internal/outbound$", compress,
	}},
	{"console", []string{
		"$gostd", runlanePkg, corePkg, lanePkg, apartOf, module + "/internal/doctor$", module + "/internal/shown$", module + "/internal/taskbook$",
		module + "/server$",
		"maragu.dev/gomponents",
	}},
	{"console/internal/world", []string{"$gostd", runlanePkg, corePkg, lanePkg}},
	{"mcp/...", []string{
		"$gostd", runlanePkg, module + "/server$", "github.com/modelcontextprotocol/go-sdk/mcp$", "github.com/google/jsonschema-go/jsonschema$",
	}},
	{"sqlitelane/...", []string{
		"$gostd", runlanePkg, lanePkg, module + "/internal/embedded$", module + "/sqlitelane/internal/", "modernc.org/sqlite", "modernc.org/libc",
		"golang.org/x/sys/unix$", compress,
	}},
	{"otel/...", []string{ // the API alone: the program brings the SDK
		"$gostd", runlanePkg, corePkg, otelAPI + "$", otelAPI + "/attribute$", otelAPI + "/codes$", otelAPI + "/metric$",
		otelAPI + "/propagation$", otelAPI + "/semconv/", otelAPI + "/trace$",
	}},
	{"cli/internal/samfile", []string{"$gostd"}},
	{"sealed/...", []string{"$gostd", runlanePkg, compress}},
	{"cmd/...", []string{
		"$gostd", runlanePkg, lanePkg, corePkg, module + "/awslane$", module + "/memlane$", module + "/sqlitelane$", module + "/dynamostore$",
		module + "/sealed$", module + "/cli$", module + "/mcp$", awsSDK,
	}},
	{"infra/...", []string{"$gostd", awsSDK, smithy}},
	{"localstack/...", []string{
		"$gostd", module + "/infra$", module + "/internal/tools/freeport$", awsSDK, smithy,
	}},
	{"lanetest/...", []string{
		"$gostd", runlanePkg, lanePkg, corePkg, module + "/internal/proof/fault/lanefault$", module + "/internal/proof/scenarios/patience$",
		module + "/internal/proof/scenarios$",
		"github.com/google/go-cmp",
	}},
	{"runlanetest/...", []string{"$gostd", runlanePkg, lanePkg, corePkg, module + "/memlane$"}},
	{"examples/invoices/cmd/...", []string{
		"$gostd", runlanePkg, corePkg, module + "/awslane$", module + "/cli$", lanePkg, module + "/memlane$", module + "/sqlitelane$", module + "/examples/invoices$", xsync,
	}},
	{"examples/...", []string{
		"$gostd", runlanePkg, lanePkg, corePkg, module + "/memlane$", module + "/sqlitelane$", module + "/awslane$", module + "/dynamostore$",
		module + "/sealed$", module + "/sqstransport$", module + "/functions$", module + "/functions/eventsource$", module + "/functionurl$", module + "/examples", awsSDK, lambdaGo, compress, xsync,
	}},
}

// reachRule says what packages may not reach, through however many imports.
type reachRule struct {
	why       string
	from      func(goPackage) bool
	forbidden []string // same form as allow
}

var reachRules = []reachRule{
	{
		why:       "adapters stand below the runtime",
		from:      inFolders("lane", "memlane", "dynamostore", "sqstransport", "awslane", "infra", "sealed"),
		forbidden: []string{module + "/core", module + "/functions"},
	},
	{
		why:  "test support never reaches a production binary",
		from: func(p goPackage) bool { return !inFolders("lanetest", "runlanetest", "internal")(p) },
		forbidden: []string{
			module + "/lanetest", module + "/runlanetest", module + "/internal/proof/",
			"testing$", "github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/anishathalye/porcupine",
		},
	},
	{
		why: "only programs and tests know the Lambda handlers",
		from: func(p goPackage) bool {
			return p.Name != "main" && !inFolders("functions", "functionurl", "internal")(p)
		},
		forbidden: []string{module + "/functions"},
	},
	{
		why:       "a function that executes or maintains starts without an HTTP server",
		from:      inFolders("functions"),
		forbidden: []string{module + "/server", module + "/console", module + "/cli", module + "/functionurl"},
	},
	{
		why:       "the server's function starts without JSON Schema, which makes the schemas of all drafts at its start",
		from:      inFolders("functionurl"),
		forbidden: []string{"github.com/santhosh-tekuri/jsonschema"},
	},
	{
		why:       "a function that starts makes no schemas of a service of which it calls one operation (go.mod)",
		from:      inFolders("functions", "functionurl"),
		forbidden: []string{awsSDK + "/service/ssm/schemas"},
	},
	{
		why:       "the embedded lane needs no AWS",
		from:      inFolders("lane", "memlane", "core", "sealed", "server"),
		forbidden: []string{awsSDK, smithy, lambdaGo},
	},
}

// pureFolders do no I/O, and neither wait nor choose: what is there follows from its arguments alone.
var pureFolders = []string{"dynamostore/internal/item", "dynamostore/internal/rows"}

// impure are packages of the standard library by which one waits, chooses, or reaches out. (Package time is for times: no clock is asked,
// which TestPureFolders_AskNoClock holds.)
var impure = []string{"context$", "os$", "os/", "io/fs$", "net$", "net/", "syscall$", "math/rand", "crypto/rand$", "runtime$"}

func inFolders(folders ...string) func(goPackage) bool {
	return func(p goPackage) bool {
		first, _, _ := strings.Cut(p.folder(), "/")
		return slices.Contains(folders, first)
	}
}

func matchesImport(path, pattern string) bool {
	if pattern == "$gostd" {
		first, _, _ := strings.Cut(path, "/")
		return !strings.Contains(first, ".")
	}
	if exact, ok := strings.CutSuffix(pattern, "$"); ok {
		return path == exact
	}
	return strings.HasPrefix(path, pattern)
}

func matchesAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesImport(path, pattern) })
}

// ruleOf returns the first rule whose folder holds the package.
func ruleOf(p goPackage) (importRule, bool) {
	for _, rule := range importRules {
		below, subtree := strings.CutSuffix(rule.folder, "/...")
		if p.folder() == rule.folder || subtree && (p.folder() == below || strings.HasPrefix(p.folder(), below+"/")) {
			return rule, true
		}
	}
	return importRule{}, false
}

// importFaults judges packages by both tables.
func importFaults(packages []goPackage) []string {
	var faults []string
	for _, p := range packages {
		if p.Error != nil {
			faults = append(faults, p.ImportPath+" cannot be loaded: "+p.Error.Err)
		}
		if rule, ok := ruleOf(p); ok || !inFolders("internal")(p) {
			if !ok {
				faults = append(faults, p.ImportPath+" is in no line of the import table")
			}
			for _, imported := range p.Imports {
				if ok && !matchesAny(imported, rule.allow) {
					faults = append(faults, fmt.Sprintf("%s imports %s", p.ImportPath, imported))
				}
			}
		}
		if slices.Contains(pureFolders, p.folder()) {
			for _, imported := range p.Imports {
				if matchesAny(imported, impure) {
					faults = append(faults, fmt.Sprintf("%s imports %s, and is pure", p.ImportPath, imported))
				}
			}
		}
		for _, rule := range reachRules {
			if !rule.from(p) {
				continue
			}
			for _, reached := range p.Deps {
				if matchesAny(reached, rule.forbidden) {
					faults = append(faults, fmt.Sprintf("%s reaches %s: %s", p.ImportPath, reached, rule.why))
				}
			}
		}
	}
	return faults
}

func TestImports_FollowTheTable(t *testing.T) {
	t.Parallel()
	packages := goPackages(t)
	for _, folder := range slices.Concat(programModules, libraryModules) {
		packages = append(packages, packagesOf(t, folder)...)
	}
	for _, fault := range importFaults(packages) {
		t.Error(fault)
	}
}

// What the reducer may import includes time, for instants. Of that package it may name nothing that asks a clock or starts a timer.
func TestImports_TheReducerHasNoClock(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root(t), reducerFolder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|NewTimer|NewTicker|Tick|Sleep)\b`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := clock.Find(source); found != nil {
			t.Errorf("%s names %s", file, found)
		}
	}
}
