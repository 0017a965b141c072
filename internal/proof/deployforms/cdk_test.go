//go:build validate

package deployforms

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/runlane/runlane-go/internal/proof/samtemplate"
)

const constructPath = "../../../deploy/cdk/typescript"

// cdkSets are the properties of the compared stacks, by the template's names.
var cdkSets = map[string]map[string]string{
	"defaults":   nil,
	"everything": with(terraformSets["everything"], "Deployment", "Linear10PercentEvery1Minute"),
	"existing":   with(terraformSets["an existing table"], "Deployment", "AllAtOnce"),
	"company":    terraformSets["a company's rules"],
	"bare":       with(terraformSets["bare"], "Deployment", "AllAtOnce"),
	"unmeasured": terraformSets["without metrics"],
	"few":        terraformSets["few alarms"],
}

// properties says a set as the construct has it: in its case, with numbers and truths.
func properties(t *testing.T, set map[string]string) map[string]any {
	t.Helper()
	template, out := load(t), map[string]any{}
	for name, value := range set {
		p := template.Parameters[name]
		property := string(unicode.ToLower(rune(name[0]))) + name[1:]
		number, err := strconv.Atoi(value)
		switch {
		case lists[name]:
			out[property] = strings.Split(value, ",")
		case value == "true" || value == "false":
			out[property] = value == "true"
		case err == nil && (p.Type == "Number" || len(p.AllowedValues) > 0):
			out[property] = number
		default:
			out[property] = value
		}
	}
	return out
}

// cdkRun runs a program of the folder that has the CDK, quiet unless it fails.
func cdkRun(t *testing.T, folder string, variables []string, program string, arguments ...string) {
	t.Helper()
	tools := os.Getenv("RUNLANE_CDK")
	if tools == "" {
		t.Fatal("RUNLANE_CDK names no folder with the CDK: run this test by make validate")
	}
	if program != "node" {
		program = filepath.Join(tools, "node_modules", ".bin", program)
	}
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), variables...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", program, arguments, err, out)
	}
}

func write(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the mask
		t.Fatal(err)
	}
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, content, 0o600)
}

// workplace compiles the construct, the app of testdata and the example of the README.
func workplace(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(os.Getenv("RUNLANE_CDK"), "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	copied(t, "testdata/cdk/app.ts", filepath.Join(folder, "app.ts"))
	copied(t, "testdata/cdk/tsconfig.json", filepath.Join(folder, "tsconfig.json"))
	for _, of := range []string{"", "orders/infra/lib"} {
		copied(t, filepath.Join(constructPath, "runlane.ts"), filepath.Join(folder, of, "runlane.ts"))
		copied(t, filepath.Join(constructPath, "template.json"), filepath.Join(folder, "out", of, "template.json"))
	}
	readme, err := os.ReadFile(filepath.Join(constructPath, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```ts\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("deploy/cdk/typescript/README.md has no example")
	}
	write(t, filepath.Join(folder, "orders/infra/bin/infra.ts"), []byte(example), 0o600)
	for i, code := range []string{"code", "changed", "orders/bin/lambda"} {
		write(t, filepath.Join(folder, code, "bootstrap"), []byte{byte(i)}, 0o755)
	}
	sets := map[string]map[string]any{}
	for name, set := range cdkSets {
		sets[name] = properties(t, set)
	}
	text, err := json.Marshal(sets)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "sets.json"), text, 0o600)
	cdkRun(t, folder, nil, "tsc", "-p", ".")
	return folder
}

var versionID = regexp.MustCompile(`(Version)[0-9a-f]{10}\b`)

// plain makes text of every scalar, and leaves out empty maps and what versions are called after: their content.
func plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range value {
			empty, isMap := inner.(map[string]any)
			if !isMap || len(empty) > 0 {
				out[versionID.ReplaceAllString(name, "$1")] = plain(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = plain(inner)
		}
		return out
	default:
		return versionID.ReplaceAllString(fmt.Sprint(value), "$1")
	}
}

// described is all that a test compares of a template.
func described(template *samtemplate.Template) (resources, outputs map[string]any) {
	resources, outputs = map[string]any{}, map[string]any{}
	for id, r := range template.Resources {
		delete(r.Properties, "Code")
		resources[versionID.ReplaceAllString(id, "$1")] = map[string]any{
			"type": r.Type, "deletion": r.DeletionPolicy, "replacement": r.UpdateReplacePolicy, "properties": plain(r.Properties),
		}
	}
	for name, output := range template.Outputs {
		outputs[name] = plain(output.Value)
	}
	return resources, outputs
}

// synthesized has SAM translate templates that the CDK wrote, and maps the names of their files to them.
func synthesized(t *testing.T, files ...string) map[string]*samtemplate.Template {
	t.Helper()
	sets := make([]map[string]string, len(files))
	for i, file := range files {
		sets[i] = map[string]string{"": file}
	}
	out := map[string]*samtemplate.Template{}
	for i, translated := range translate(t, templatePath, sets) {
		evaluated, err := translated.Evaluate(nil)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(files[i]), ".template.json")] = evaluated
	}
	return out
}

// `cdk synth` makes, stack for stack, what the template makes: all resources, policies and outputs, as SAM's translator says of both.
func TestCDK_MakesWhatTheTemplateMakes(t *testing.T) {
	t.Parallel()
	folder := workplace(t)
	cdkRun(t, folder, []string{"CDK_DISABLE_CLI_TELEMETRY=true"}, "cdk", "synth", "--quiet", "--app", "node out/app.js", "--output", "cdk.out",
		"--no-notices", "--no-version-reporting", "--no-path-metadata", "--no-asset-metadata")
	names := slices.Sorted(maps.Keys(cdkSets))
	sets := make([]map[string]string, len(names))
	for i, name := range names {
		sets[i] = cdkSets[name]
	}
	place := filepath.Join(folder, "orders", "infra")
	cdkRun(t, place, []string{"CDK_OUTDIR=" + filepath.Join(place, "cdk.out")}, "node",
		filepath.Join("..", "..", "out", "orders", "infra", "bin", "infra.js"))
	files := []string{filepath.Join(place, "cdk.out", "orders.template.json")}
	for _, name := range append(slices.Clone(names), "changed") {
		files = append(files, filepath.Join(folder, "cdk.out", name+".template.json"))
	}
	translated, made := translate(t, templatePath, sets), synthesized(t, files...)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := translated[i].Evaluate(sets[i])
			if err != nil {
				t.Fatal(err)
			}
			wanted, wantedOutputs := described(template)
			got, outputs := described(made[name])
			equal(t, "outputs", outputs, wantedOutputs)
			equal(t, "resources", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(wanted)))
			for id := range wanted {
				equal(t, id, got[id], wanted[id])
			}
		})
	}
	t.Run("the program and its variables", func(t *testing.T) {
		t.Parallel()
		before, after := stack(t, folder, "cdk.out", "defaults"), stack(t, folder, "cdk.out", "changed")
		for _, function := range []string{"Bridge", "Relay", "Tick"} {
			key := textAt(before, "Resources", function, "Properties", "CodeUri", "Key")
			asset := filepath.Join(folder, "cdk.out", "asset."+strings.TrimSuffix(key, ".zip"), "bootstrap")
			if info, err := os.Stat(asset); err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("%s: the asset's program: %v, %v", function, info, err)
			}
			if key == textAt(after, "Resources", function, "Properties", "CodeUri", "Key") {
				t.Errorf("%s: two programs are one asset", function)
			}
			shop := textAt(after, "Resources", function, "Properties", "Environment", "Variables", "SHOP")
			equal(t, function, shop, "https://shop.example")
		}
		one, two := versions(made["defaults"]), versions(made["changed"])
		if len(one) != 3 || len(two) != 3 || slices.ContainsFunc(one, func(id string) bool { return slices.Contains(two, id) }) {
			t.Errorf("another program is no other version: %v, %v", one, two)
		}
		for role, action := range map[string]string{"Caller": "dynamodb:PutItem", "Reader": "dynamodb:Scan", "Operator": "dynamodb:Scan"} {
			id := "Runlane" + role + "DefaultPolicy"
			statements := listAt(after, "Resources", id+suffix(t, after, id), "Properties", "PolicyDocument", "Statement")
			if len(statements) != 3 || !slices.Contains(listAt(statements[0], "Action"), any(action)) {
				t.Errorf("%s may not %s: %v", role, action, statements)
			}
			equal(t, role+"'s table", at(statements[0], "Resource"), any(map[string]any{"Fn::GetAtt": []any{"Table", "Arn"}}))
		}
	})
	t.Run("what is known on deployment alone", func(t *testing.T) {
		t.Parallel()
		related := stack(t, folder, "cdk.out", "related")
		if at(related, "Resources", "Table") != nil || at(related, "Conditions") != nil {
			t.Error("a table is made beside the one that is given")
		}
		equal(t, "the stream", at(related, "Resources", "Relay", "Properties", "Events", "Commits", "Properties", "Stream"),
			any(map[string]any{"Fn::GetAtt": []any{"Runs", "StreamArn"}}))
		topic := "Topic" + suffix(t, related, "Topic")
		equal(t, "the topic", at(related, "Resources", "BridgeErrorsAlarm", "Properties", "AlarmActions"),
			any([]any{map[string]any{"Ref": topic}}))
		reader := "ReaderDefaultPolicy" + suffix(t, related, "ReaderDefaultPolicy")
		equal(t, "the key", at(related, "Resources", reader, "Properties", "PolicyDocument", "Statement", 3, "Resource"),
			any(map[string]any{"Fn::GetAtt": []any{"Key" + suffix(t, related, "Key"), "Arn"}}))
		granted := "RunlaneRolePolicy" + suffix(t, related, "RunlaneRolePolicy")
		equal(t, "who may publish", at(related, "Resources", granted, "Properties", "Roles"), any([]any{map[string]any{"Ref": "BridgeRole"}}))
	})
	t.Run("what is refused", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(filepath.Join(folder, "refused.json"))
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		if err := json.Unmarshal(text, &refused); err != nil {
			t.Fatal(err)
		}
		equal(t, "messages", refused, []string{
			"bridgeTimeout: 61 is not one of 30, 60, 120, 300, 600, 900",
			`logLevel: "LOUD" is not one of DEBUG, INFO, WARN, ERROR`,
			`existingTable: "name" is not of the form ` + load(t).Parameters["ExistingTable"].AllowedPattern,
			"standardQueue and fifoQueue are two queues of the application; give them two names",
			"bridgeBatchSize: 11 is not from 1 to 10",
			"codeVariables: RUNLANE_ENV is set by Runlane",
			"subnets and securityGroups go together", `serverScopes: ["work"] is not of the form ` + load(t).Parameters["ServerScopes"].AllowedPattern,
			"changed/Runlane is in the stack already: queues are called after their stack",
		})
	})
	if got := len(made["orders"].Resources); got < 50 {
		t.Errorf("the example has %d resources", got)
	}
}

func stack(t *testing.T, folder, output, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, output, name+".template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// suffix is what the CDK puts behind a name.
func suffix(t *testing.T, stack map[string]any, name string) string {
	t.Helper()
	resources, _ := stack["Resources"].(map[string]any)
	for id := range resources {
		if rest, found := strings.CutPrefix(id, name); found && regexp.MustCompile(`^[0-9A-F]{8}$`).MatchString(rest) {
			return rest
		}
	}
	t.Errorf("there is no %s", name)
	return ""
}

func versions(template *samtemplate.Template) (ids []string) {
	for id, r := range template.Resources {
		if r.Type == "AWS::Lambda::Version" {
			ids = append(ids, id)
		}
	}
	return ids
}

// Each parameter of the template is a property, and there is no other.
func TestCDK_HasTheTemplatesParameters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(constructPath, "runlane.ts"))
	if err != nil {
		t.Fatal(err)
	}
	_, declared, _ := strings.Cut(string(text), "export interface RunlaneProps {")
	declared, _, _ = strings.Cut(declared, "\n}\n")
	var got []string
	for _, property := range regexp.MustCompile(`(?m)^  readonly (\w+)\??:`).FindAllStringSubmatch(declared, -1) {
		got = append(got, property[1])
	}
	want := []string{"code", "codeVariables", "serverCode"}
	for name := range load(t).Parameters {
		want = append(want, string(unicode.ToLower(rune(name[0])))+name[1:])
	}
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "properties", got, want)
}
