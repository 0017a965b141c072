//go:build validate

package deployforms

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const goConstructPath = "../../../deploy/cdk/go/runlane.go.txt"

// goProperties says a set as the Go construct has it.
func goProperties(t *testing.T, set map[string]string) map[string]any {
	t.Helper()
	template, out := load(t), map[string]any{}
	for name, value := range set {
		number, err := strconv.Atoi(value)
		switch p := template.Parameters[name]; {
		case lists[name]:
			out[name] = strings.Split(value, ",")
		case value == "true" || value == "false":
			out[name] = value == "true"
		case err == nil && (p.Type == "Number" || len(p.AllowedValues) > 0):
			out[name] = number
		default:
			out[name] = value
		}
	}
	return out
}

// goWorkplace compiles the construct with the app of testdata and the example of the README, by the CDK's own modules for Go.
func goWorkplace(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/cdkgo")); err != nil {
		t.Fatal(err)
	}
	copied(t, goConstructPath, filepath.Join(folder, "runlane", "runlane.go"))
	copied(t, filepath.Join(constructPath, "template.json"), filepath.Join(folder, "runlane", "template.json"))
	readme, err := os.ReadFile(filepath.Join(filepath.Dir(goConstructPath), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```go\n")
	example, _, found := strings.Cut(example, "```")
	if !found || !strings.Contains(example, `"infra/runlane"`) {
		t.Fatal("deploy/cdk/go/README.md has no example")
	}
	example = strings.Replace(example, `"infra/runlane"`, `"example.com/app/runlane"`, 1)
	write(t, filepath.Join(folder, "infra", "infra.go"), []byte(example), 0o600)
	for _, code := range []string{"code", "bin/lambda"} {
		write(t, filepath.Join(folder, code, "bootstrap"), []byte("program"), 0o755)
	}
	given := map[string]any{}
	for name, set := range cdkSets {
		given[name] = goProperties(t, set)
	}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "sets.json"), text, 0o600)
	for _, place := range []string{".", "infra"} {
		// A built program, not `go run`: what it starts ends with it.
		program := filepath.Join(folder, "program-"+strings.Trim(place, "."))
		for _, arguments := range [][]string{{"go", "build", "-o", program, "."}, {program}} {
			command := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...) // what was just built
			command.Dir = filepath.Join(folder, place)
			command.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CDK_OUTDIR="+filepath.Join(folder, place, "cdk.out"))
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", arguments, err, out)
			}
		}
	}
	return folder
}

// The construct for Go makes, stack for stack, what the template makes, as SAM's translator says of both.
func TestCDKGo_MakesWhatTheTemplateMakes(t *testing.T) {
	t.Parallel()
	folder := goWorkplace(t)
	names := slices.Sorted(maps.Keys(cdkSets))
	sets := make([]map[string]string, len(names))
	files := []string{filepath.Join(folder, "infra", "cdk.out", "orders.template.json")}
	for i, name := range names {
		sets[i] = cdkSets[name]
		files = append(files, filepath.Join(folder, "cdk.out", name+".template.json"))
	}
	translated, made := translate(t, templatePath, sets), synthesized(t, files...)
	for i, name := range names {
		template, err := translated[i].Evaluate(sets[i])
		if err != nil {
			t.Fatal(err)
		}
		wanted, wantedOutputs := described(template)
		got, outputs := described(made[name])
		equal(t, name+", outputs", outputs, wantedOutputs)
		equal(t, name+", resources", got, wanted)
	}
	if got := len(made["orders"].Resources); got < 50 {
		t.Errorf("the example has %d resources", got)
	}
	related(t, stack(t, folder, "cdk.out", "related"))

	var refused []string
	text, err := os.ReadFile(filepath.Join(folder, "refused.json"))
	if err == nil {
		err = json.Unmarshal(text, &refused)
	}
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "refused", refused, []string{
		`BridgeTimeout: "61" is not one of [30 60 120 300 600 900]`,
		`LogLevel: "LOUD" is not one of [DEBUG INFO WARN ERROR]`,
		"StandardQueue and FifoQueue are two queues of the application; give them two names",
		"BridgeBatchSize: 11 is not from 1 to 10",
		"Subnets and SecurityGroups go together",
		"there is a Runlane in the stack already: queues are called after their stack",
	})
}

// related judges a stack whose construct has grants, and properties that are known on deployment alone.
func related(t *testing.T, made map[string]any) {
	t.Helper()
	for _, function := range []string{"Bridge", "Relay", "Tick"} {
		if textAt(made, "Resources", function, "Properties", "CodeUri", "Key") == "" {
			t.Errorf("%s has no program", function)
		}
		shop := textAt(made, "Resources", function, "Properties", "Environment", "Variables", "SHOP")
		equal(t, function, shop, "https://shop.example")
	}
	topic := "Topic" + suffix(t, made, "Topic")
	equal(t, "the topic", at(made, "Resources", "BridgeErrorsAlarm", "Properties", "AlarmActions"), any([]any{map[string]any{"Ref": topic}}))
	for role, action := range map[string]string{"Caller": "dynamodb:PutItem", "Reader": "dynamodb:Scan", "Operator": "dynamodb:Scan"} {
		id := role + "DefaultPolicy"
		statements := listAt(made, "Resources", id+suffix(t, made, id), "Properties", "PolicyDocument", "Statement")
		if len(statements) != 4 || !slices.Contains(listAt(statements[0], "Action"), any(action)) {
			t.Errorf("%s may not %s: %v", role, action, statements)
			continue
		}
		equal(t, role+"'s table", at(statements[0], "Resource"), any(map[string]any{"Fn::GetAtt": []any{"Table", "Arn"}}))
		equal(t, role+"'s key", at(statements[3], "Resource"), any(map[string]any{"Fn::GetAtt": []any{"Key" + suffix(t, made, "Key"), "Arn"}}))
	}
	granted := "RunlaneRolePolicy" + suffix(t, made, "RunlaneRolePolicy")
	equal(t, "who may publish", at(made, "Resources", granted, "Properties", "Roles"), any([]any{map[string]any{"Ref": "BridgeRole"}}))
}

// Each parameter of the template is a field, there is no other, and the file is formatted.
func TestCDKGo_HasTheTemplatesParameters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(goConstructPath)
	if err != nil {
		t.Fatal(err)
	}
	formatted, err := format.Source(text)
	if err != nil || string(formatted) != string(text) {
		t.Errorf("%s is not formatted: %v", goConstructPath, err)
	}
	_, declared, _ := strings.Cut(string(text), "type Props struct {")
	declared, _, _ = strings.Cut(declared, "\n}\n")
	got := []string{}
	for _, field := range regexp.MustCompile(`(?m)^\t(\w+) +\*`).FindAllStringSubmatch(declared, -1) {
		got = append(got, field[1])
	}
	want := slices.AppendSeq([]string{"Code", "CodeVariables", "ServerCode"}, maps.Keys(load(t).Parameters))
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "fields", fmt.Sprint(got), fmt.Sprint(want))
}
