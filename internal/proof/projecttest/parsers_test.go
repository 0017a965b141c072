package projecttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parserTargets name the fuzz target of everything that reads what others wrote. What has none says why, behind a dash.
var parserTargets = map[string]string{
	"KeyRetention.UnmarshalJSON":                "FuzzKeyRetention",
	"EventRecord.UnmarshalJSON":                 "FuzzEventRecord",
	"UnmarshalBody":                             "FuzzEventRecord",
	"ParseDuration":                             "FuzzParseDuration",
	"Rate.UnmarshalText":                        "FuzzRate",
	"longPart":                                  "FuzzParseDuration",
	"Task.Decode":                               "FuzzPayload",
	"fillResult":                                "FuzzStepResult",
	"decodeNumbers":                             "FuzzStepResult",
	"invalidJSON":                               "FuzzPayload",
	"Run.DecodeOutput":                          "- the application's own output, into the application's own type",
	"lane/ParseBodyKey":                         "FuzzBodyKey",
	"lane/parseKeyPart":                         "FuzzBodyKey",
	"lane/ParseReference":                       "FuzzReference",
	"awslane/ParseQueues":                       "FuzzParseQueues",
	"awslane/secrets/secretVariables":           "FuzzSecretVariables",
	"cli/jsonFault":                             "FuzzBatchLine",
	"cli/readBatchLine":                         "FuzzBatchLine",
	"cli/parseFlags":                            "FuzzFilter",
	"scripts/validate/tofu/provider/main":       "- its own record",
	"parseCron":                                 "FuzzCron",
	"dynamostore/ParseStreamImage":              "FuzzParseStreamImage",
	"dynamostore/ParseStreamRun":                "FuzzBatch",
	"eventbus/Sender.Handle":                    "FuzzBatch",
	"eventbus/Sender.sendMessages":              "FuzzBatch",
	"eventbus/Sender.sendRecords":               "FuzzBatch",
	"dynamostore/internal/rows/ParseDueRow":     "FuzzKeys",
	"dynamostore/internal/rows/ParseRunPK":      "FuzzKeys",
	"dynamostore/internal/rows/ParseFlowPK":     "FuzzKeys",
	"dynamostore/internal/rows/Run.source":      "- the source of a run, which this package wrote; what is no number counts as round 0",
	"cli/readTime":                              "FuzzFilter",
	"cli/unknownField":                          "FuzzBatchLine",
	"cmd/runlane/parseLimits":                   "FuzzParseLimits",
	"core/feed.check":                           "FuzzCursors",
	"core/logWalk.check":                        "FuzzCursors",
	"core/logWalk.record":                       "- a record of the run, which this package wrote; anything else is a fault in its place",
	"core/internal/move/eachLine":               "FuzzImport",
	"core/internal/flow/CheckPlan":              "FuzzImport",
	"core/Runtime.endSleeps":                    "- a time that Sleep wrote; any other counts as none",
	"core/internal/flow/Flows.Settle":           "FuzzImport",
	"target/parse":                              "FuzzRead",
	"target/codes.UnmarshalYAML":                "FuzzRead",
	"target/builder.requestURL":                 "FuzzRead",
	"target/valuesOf":                           "FuzzTemplate",
	"target/part.value":                         "FuzzTemplate",
	"target/request.address":                    "FuzzTemplate",
	"core/receiptsOf":                           "- a receipt, which this package wrote; anything else has a Fault",
	"core/Runtime.metVersion":                   "- a name that versionRecord made; any other counts as none",
	"core/internal/flow/readGraph":              "- the graph of a flow, which this package wrote; anything else is invariant_violation",
	"core/openBulkCursor":                       "FuzzCursors",
	"core/openCursor":                           "FuzzCursors",
	"core/Runtime.newPruning":                   "FuzzCursors",
	"dynamostore/internal/rows/ReadPauses":      "- JSON that this package wrote, read by encoding/json into plain fields",
	"sqlitelane/pauses":                         "- JSON that this package wrote, read by encoding/json into plain fields",
	"dynamostore/internal/rows/decode":          "FuzzParseStreamImage",
	"dynamostore/internal/rows/decodeEvents":    "FuzzLogItem",
	"dynamostore/internal/rows/decompress":      "FuzzDecompress",
	"dynamostore/internal/rows/Log.First":       "FuzzLogItem",
	"dynamostore/internal/item/Number":          "- reads its own counters; anything else counts as 0",
	"dynamostore/internal/rows/OpenCursor":      "FuzzOpenCursor",
	"dynamostore/internal/rows/ParseClaim":      "FuzzKeys",
	"dynamostore/internal/rows/ParseMillis":     "FuzzKeys",
	"dynamostore/internal/rows/ParseOutboxID":   "FuzzKeys",
	"dynamostore/internal/rows/Run.Waiting":     "FuzzWait",
	"dynamostore/Store.GetKeep":                 "- a record of the table, which this package wrote; anything else is invariant_violation",
	"dynamostore/Store.checkShards":             "- doctor's: what is no number is a violation that it reports",
	"functionurl/checkEvent":                    "FuzzFunctionURL",
	"functions/newRecord":                       "- a count; anything else counts as not known",
	"infra/parseRedrive":                        "FuzzParseRedrive",
	"memlane/holds":                             "FuzzOutboxIDs",
	"core/internal/move/exporter.unread":        "- records of waits, which this package wrote; what does not decode counts as one signal that was read",
	"core/moveHost.NamesSignals":                "- a record of a wait, which this package wrote; what does not decode is an answer with its signals",
	"core/execution.readAnswer":                 "- a record of the run, which this package wrote; anything else is validation_failed",
	"core/namesOf":                              "- a record of the run, which this package wrote; what does not decode names no signal",
	"core/limitCame":                            "- a record of a wait, which this package wrote; what does not decode is an answer",
	"core/internal/remote/Parse":                "FuzzClaimToken",
	"server/schema/numbersFit":                  "FuzzTasks",
	"server/schema/loops.lookUp":                "FuzzTasks",
	"core/parseToken":                           "FuzzToken",
	"core/parseTokenKeys":                       "FuzzTokenKeys",
	"core/decodeRecord":                         "- a record of the run, which this package wrote; anything else is validation_failed",
	"Signal.Into":                               "FuzzPayload",
	"core/parseCoded":                           "FuzzParseCoded",
	"sealed/decompress":                         "FuzzDecode",
	"sealed/parseEntries":                       "FuzzParseKeys",
	"sealed/ParseKeys":                          "FuzzParseKeys",
	"internal/embedded/OpenPage":                "FuzzCursors",
	"internal/embedded/ParseEventID":            "FuzzEventIDs",
	"mcp/caller.readHistory":                    "- pages of this project's own API, in the same process",
	"mcp/describe":                              "- this project's own description of its API, the same in every process",
	"mcp/description.complete":                  "- this project's own description of its API, the same in every process",
	"mcp/operation.request":                     "FuzzRequest",
	"mcp/plain":                                 "FuzzRequest",
	"mcp/runPath":                               "FuzzRequest",
	"sqlitelane/Storage.GetKeep":                "- a record of the file, which this package wrote; anything else is invariant_violation",
	"sqlitelane/Storage.schedule":               "- a record of the file, which this package wrote; anything else is invariant_violation",
	"sqlitelane/internal/file/atLeast":          "- SQLite's own version; what is no number is none that is new enough",
	"sqlitelane/internal/record/DecodeWakeup":   "FuzzRecord",
	"sqlitelane/internal/record/Open":           "FuzzRecord",
	"sqlitelane/internal/record/reader.waiting": "FuzzRecord",
	"sqlitelane/listRecords":                    "- records of the file, which this package wrote; anything else is invariant_violation",
	"sqlitelane/parseName":                      "FuzzSchemeName",
	"sqlitelane/readOccurrence":                 "- a record of the file, which this package wrote; anything else is invariant_violation",
	"sqstransport/newBinding":                   "FuzzQueueURL",
	"sqstransport/ParseMessage":                 "FuzzParseMessage",
	"sqstransport/decodeField":                  "FuzzParseMessage",
	"sqstransport/newRecord":                    "- a count; anything else counts as not known",
	"sqstransport/settler.delete":               "- an index that this package chose and SQS repeats; any other is left out",
	"sqstransport/Transport.changeVisibility":   "- an index that this package chose and SQS repeats; any other is left out",
	"sqstransport/Transport.InvocationTime":     "- seconds that SQS says; anything else counts as not known",
	"sqstransport/Transport.Depth":              "- a count that SQS says; anything else is transport_unavailable",
	"console/bodyFields":                        "FuzzForm",
	"console/field.tidy":                        "FuzzForm",
	"console/fieldsOf":                          "FuzzForm",
	"bodySchema.UnmarshalJSON":                  "FuzzSignalSchema",
	"schemaTypes.UnmarshalJSON":                 "FuzzSignalSchema",
	"decodeExactly":                             "FuzzSignalSchema",
	"numberFits":                                "FuzzSignalSchema",
	"console/pathHere":                          "FuzzPathHere",
	"console/textOf":                            "FuzzForm",
	"console/visitor.tree":                      "FuzzTree",
	"server/schema/nesting":                     "FuzzTasks",
	"server/field.read":                         "FuzzQuery",
	"server/input.readRequest":                  "FuzzQuery",
	"server/call.streamRun":                     "FuzzQuery",
	"server/parseBody":                          "FuzzBody",
	"server/span.UnmarshalJSON":                 "FuzzBody",
	"server/named.UnmarshalJSON":                "FuzzBody",
	"server/noNulls":                            "FuzzBody",
	"server/limitsOf":                           "- tags of this package",
	"server/statusWords.UnmarshalJSON":          "FuzzBody",
	"server/api.checkOrigin":                    "FuzzHeaders",
	"server/peerOf":                             "FuzzHeaders",
	"server/Reachable":                          "- the address of a listener; what is no address is none of loopback",
	"server/Webhook.parsedURL":                  "FuzzWebhook",
	"server/markOf":                             "- runs of this package; what is no mark is passed over",
	"server/parsedSecrets":                      "FuzzWebhook",
	"server/TokenAccess":                        "- the owner's configuration; what is no hash is configuration_invalid",
	"cli/parseTokens":                           "FuzzTokens",
	"cli/serveFlags.proxy":                      "FuzzTokens",
}

var (
	// toolFolders read what the project itself wrote, on a developer's machine, but for what the lanes share.
	toolFolders = []string{"internal", "localstack", "lanetest", "runlanetest", "examples", "bench", "testdata"}
	// readingCalls are how Go reads what others wrote, by the package and the function, or by the method.
	readingCalls = regexp.MustCompile(`^(json\.(Unmarshal|NewDecoder)|strconv\.(Atoi|ParseInt|ParseUint|ParseFloat|ParseBool)|` +
		`time\.(Parse|ParseDuration|ParseInLocation)|url\.(Parse|ParseQuery)|netip\.Parse\w*|(xml|gob|yaml|csv)\.\w+|.*\.(DecodeString|DecodeAll))$`)
	parserName = regexp.MustCompile(`^(P|p)arse[A-Z]`)
	fuzzTarget = regexp.MustCompile(`^Fuzz[A-Z]\w*$`)
)

// parsersOf are the functions of a file that read what others wrote.
func parsersOf(name, source string) (parsers []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		reads := parserName.MatchString(f.Name.Name)
		ast.Inspect(f.Body, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok {
					owner := "_"
					if id, ok := s.X.(*ast.Ident); ok {
						owner = id.Name
					}
					reads = reads || readingCalls.MatchString(owner+"."+s.Sel.Name)
				}
			}
			return true
		})
		if reads {
			parsers = append(parsers, path.Join(path.Dir(name), receiverOf(f)+f.Name.Name))
		}
	}
	return parsers, nil
}

// receiverOf is "Type." of a method.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return fmt.Sprint(t) + "."
}

func parserFaults(parsers []string, targets map[string]bool, table map[string]string) (faults []string) {
	for _, p := range parsers {
		if table[p] == "" {
			faults = append(faults, p+" reads what others wrote and has no fuzz target: write one, and name it in parserTargets")
		}
	}
	for p, target := range table {
		if !slices.Contains(parsers, p) {
			faults = append(faults, p+" of the table reads nothing any more")
		}
		if !strings.HasPrefix(target, "- ") && !targets[target] {
			faults = append(faults, fmt.Sprintf("%s names %s, which does not exist", p, target))
		}
	}
	slices.Sort(faults)
	return faults
}

// Everything that reads what others wrote has a fuzz target, which scripts/fuzz.sh runs, or a reason to have none.
func TestParsers_EachHasAFuzzTarget(t *testing.T) {
	t.Parallel()
	var parsers []string
	targets := map[string]bool{}
	for name, text := range textFiles(t) {
		switch {
		case !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/"):
		case strings.HasSuffix(name, "_test.go"):
			for _, line := range strings.Split(text, "\n") {
				if f, _, ok := strings.Cut(strings.TrimPrefix(line, "func "), "("); ok && strings.HasPrefix(line, "func ") && fuzzTarget.MatchString(f) {
					targets[f] = true
				}
			}
		case strings.HasPrefix(name, "internal/embedded/"), !slices.Contains(toolFolders, strings.SplitN(name, "/", 2)[0]):
			found, err := parsersOf(name, text)
			if err != nil {
				t.Fatal(err)
			}
			parsers = append(parsers, found...)
		}
	}
	if len(parsers) < 30 || len(targets) < 15 {
		t.Errorf("only %d parsers and %d targets were found", len(parsers), len(targets))
	}
	for _, fault := range parserFaults(parsers, targets, parserTargets) {
		t.Error(fault)
	}
	if script := read(t, "scripts", "fuzz.sh"); !strings.Contains(script, "'^func Fuzz' .") {
		t.Error("scripts/fuzz.sh does not look for the targets itself")
	}
}
