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

// The construct for Go makes what the template makes. The CDK's modules for Go are stood for by testdata/cdkgo, which declares what the
// construct calls, as they do, and includes a template in the same way.
func TestCDKGo_MakesWhatTheTemplateMakes(t *testing.T) {
	t.Parallel()
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
	names := slices.Sorted(maps.Keys(cdkSets))
	given, sets, files := map[string]any{}, make([]map[string]string, len(names)), make([]string, len(names))
	for i, name := range names {
		given[name], sets[i] = goProperties(t, cdkSets[name]), cdkSets[name]
		files[i] = filepath.Join(folder, name+".template.json")
	}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "sets.json"), text, 0o600)
	for _, arguments := range [][]string{{"vet", "./..."}, {"run", "."}, {"run", "./infra"}} {
		command := exec.CommandContext(t.Context(), "go", arguments...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", arguments, err, out)
		}
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

	related := stack(t, filepath.Dir(folder), filepath.Base(folder), "related")
	for _, function := range []string{"Bridge", "Relay", "Tick"} {
		equal(t, function, at(related, "Resources", function, "Properties", "CodeUri"), any(map[string]any{"Bucket": "assets", "Key": "code.zip"}))
		equal(t, function, textAt(related, "Resources", function, "Properties", "Environment", "Variables", "SHOP"), "https://shop.example")
	}
	equal(t, "the topic", at(related, "Resources", "BridgeErrorsAlarm", "Properties", "AlarmActions"), any([]any{"${Token[topic]}"}))
	var granted []map[string]any
	var refused []string
	for path, into := range map[string]any{"granted.json": &granted, "refused.json": &refused} {
		text, err := os.ReadFile(filepath.Join(folder, path))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(granted) != 4 || granted[3]["Resource"] != "${Token[key]}" {
		t.Errorf("GrantRead allows %v", granted)
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
	want := slices.AppendSeq([]string{"Code", "CodeVariables"}, maps.Keys(load(t).Parameters))
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "fields", fmt.Sprint(got), fmt.Sprint(want))
}
