//go:build validate

package deployforms

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const modulePath = "../../../deploy/terraform"

// notInTerraform are the template's parameters that the module does without, with the reason.
var notInTerraform = map[string]string{
	"Deployment": "gradual deployment is an update policy of CloudFormation: the alias goes to a new version at once",
}

// terraformSets are what the module is applied with, by the template's names. Together they take each way of each condition.
var terraformSets = map[string]map[string]string{
	"defaults": nil,
	"everything": {
		"Environment": "live", "StandardQueue": "mail", "FifoQueue": "orders", "BridgeTimeout": "900", "BridgeMemory": "1024",
		"BridgeBatchSize": "1", "BridgeConcurrency": "7", "TickConcurrency": "0", "MaximumReadUnits": "100",
		"AlarmTopic": "arn:aws:sns:eu-central-1:123456789012:alarms", "DeletionProtection": "false", "RecoveryDays": "7",
		"LogRetention": "90", "LogLevel": "DEBUG", "Revision": "two", "InvocationsLimit": "5", "ServerScopes": "read,trigger",
	},
	"an existing table": {
		"ExistingTable":     "arn:aws:dynamodb:eu-central-1:123456789012:table/restored/stream/2026-11-01T00:00:00.000",
		"MaximumWriteUnits": "10",
	},
	"a company's rules": {
		"KmsKey": "arn:aws:kms:eu-central-1:123456789012:key/1", "Subnets": "subnet-1a,subnet-2b", "SecurityGroups": "sg-1a,sg-2b",
		"PermissionsBoundary": "arn:aws:iam::123456789012:policy/bound",
		"Layers":              "arn:aws:lambda:eu-central-1:123456789012:layer:l:1,arn:aws:lambda:eu-central-1:123456789012:layer:m:2",
		"BridgeSecrets":       "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop,arn:aws:ssm:eu-central-1:123456789012:parameter/a",
		"TickSecrets":         "arn:aws:ssm:eu-central-1:123456789012:parameter/a",
		"ServerScopes":        "read",
		"ServerSecrets":       "arn:aws:ssm:eu-central-1:123456789012:parameter/b",
	},
	"bare":            {"Alarms": "false", "Dashboard": "false", "Metrics": "false", "MaximumWriteUnits": "10"},
	"without metrics": {"Metrics": "false", "AlarmThrottles": "false", "AlarmErrors": "false", "AlarmConcurrency": "false"},
	"few alarms": {
		"FifoQueue": "orders", "AlarmConflicts": "false", "AlarmDeadLetters": "false", "AlarmInvocations": "false",
		"AlarmOldestDue": "false", "AlarmOldestMessage": "false", "AlarmRefusedWakeups": "false",
	},
}

func with(set map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	maps.Copy(out, set)
	out[name] = value
	return out
}

// lists are the parameters that are texts with commas in the template, and lists elsewhere.
var lists = map[string]bool{
	"BridgeSecrets": true, "RelaySecrets": true, "TickSecrets": true, "ServerSecrets": true, "ServerScopes": true, "Subnets": true, "SecurityGroups": true, "Layers": true,
}

// snake is a parameter's name in Terraform.
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// tofu runs OpenTofu in a folder, with the provider of testdata/tofu instead of AWS's.
func tofu(t *testing.T, folder string, arguments ...string) ([]byte, error) {
	t.Helper()
	program := os.Getenv("RUNLANE_TOFU")
	if program == "" {
		t.Fatal("RUNLANE_TOFU names no OpenTofu: run this test by make validate")
	}
	command := exec.CommandContext(context.Background(), program, append([]string{"-chdir=" + folder}, arguments...)...)
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("tofu %s: %w: %s%s", arguments[0], err, out, said.String())
	}
	return out, nil
}

// module is a copy of the module with a program, ready to plan.
func module(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(modulePath)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "code.zip"), []byte("the program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tofu(t, folder, "init", "-input=false", "-no-color"); err != nil {
		t.Fatal(err)
	}
	return folder
}

// applied is what the module makes for parameters by the template's names.
func applied(t *testing.T, folder string, parameters map[string]string) *state {
	t.Helper()
	arguments := []string{"apply", "-auto-approve", "-input=false", "-no-color", "-var=name=app", "-var=code=code.zip", "-var=server_code=code.zip"}
	for name, value := range parameters {
		if lists[name] {
			value = `["` + strings.ReplaceAll(value, ",", `","`) + `"]`
		}
		arguments = append(arguments, "-var="+snake(name)+"="+value)
	}
	if _, err := tofu(t, folder, arguments...); err != nil {
		t.Fatal(err)
	}
	shown, err := tofu(t, folder, "show", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal(shown, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// The module makes what the template makes: every resource, every property, every statement of every policy and every output is
// compared, for several sets of parameters. SAM's own translator says what the template makes, OpenTofu what the module does.
func TestTerraform_MakesWhatTheTemplateMakes(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(terraformSets))
	sets := make([]map[string]string, len(names))
	for i, name := range names {
		sets[i] = with(terraformSets[name], "Deployment", "AllAtOnce")
	}
	translated := translate(t, templatePath, sets)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, err := translated[i].Evaluate(sets[i])
			if err != nil {
				t.Fatal(err)
			}
			made := applied(t, module(t), terraformSets[name])
			compareResources(t, template, made)
			compareOutputs(t, template, made)
		})
	}
}

func TestTerraform_Example_IsValid(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(modulePath, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```hcl\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("deploy/terraform/README.md has no example")
	}
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "module"), os.DirFS(modulePath)); err != nil {
		t.Fatal(err)
	}
	source := regexp.MustCompile(`source += "[^"]*runlane[^"]*"`)
	if got := len(source.FindAllString(example, -1)); got != 1 {
		t.Fatalf("the example names the module %d times", got)
	}
	example = source.ReplaceAllString(example, `source = "./module"`)
	if err := os.WriteFile(filepath.Join(folder, "main.tf"), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "bin", "code.zip"), []byte("the program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"init"}, {"validate"}, {"plan"}} {
		if _, err := tofu(t, folder, append(arguments, "-no-color")...); err != nil {
			t.Fatal(err)
		}
	}
}

// Two environments in one account and Region, and a third that keeps its table when all else goes.
func TestTerraform_SeveralInstances(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "module"), os.DirFS(modulePath)); err != nil {
		t.Fatal(err)
	}
	const both = `
module "first" {
  source = "./module"
  name   = "first"
  code   = "main.tf"
}
module "second" {
  source = "./module"
  name   = "second"
  code   = "main.tf"
}
`
	if err := os.WriteFile(filepath.Join(folder, "main.tf"), []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"init", "-no-color"}, {"apply", "-auto-approve", "-no-color"}} {
		if _, err := tofu(t, folder, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing changes without a change.
	if out, err := tofu(t, folder, "plan", "-detailed-exitcode", "-concise", "-no-color"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	shown, err := tofu(t, folder, "show", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal(shown, &s); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, child := range s.Values.Root.Children {
		for _, r := range child.Resources {
			id, _ := r.Values["arn"].(string)
			if r.Mode != "managed" || id == "" || r.Type == "aws_lambda_event_source_mapping" { // those have no names
				continue
			}
			if other := seen[r.Type+" "+id]; other != "" {
				t.Errorf("%s and %s are both %s", r.Address, other, id)
			}
			seen[r.Type+" "+id] = r.Address
		}
	}
	if len(seen) < 2*30 {
		t.Errorf("%d resources have an ARN", len(seen))
	}
	if _, err := tofu(t, folder, "destroy", "-auto-approve", "-no-color"); err == nil || !strings.Contains(err.Error(), "prevent_destroy") {
		t.Errorf("the tables can be destroyed: %v", err)
	}
}

// Each parameter of the template is a variable with the same default, and bears the same values.
func TestTerraform_HasTheTemplatesParameters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(modulePath, "variables.tf"))
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for _, part := range strings.Split(string(text), "\nvariable ") {
		name, body, _ := strings.Cut(strings.TrimPrefix(part, "variable "), " {")
		variables[strings.Trim(name, `"`)] = body
	}
	template := load(t)
	known := []string{"code", "code_variables", "name", "server_code"}
	for name, p := range template.Parameters {
		if notInTerraform[name] != "" {
			continue
		}
		known = append(known, snake(name))
		body := variables[snake(name)]
		value := fmt.Sprint(p.Default)
		if lists[name] {
			if !strings.Contains(body, "list(string)") || !strings.Contains(body, "= []\n") {
				t.Errorf("%s is no list that is empty by default: %s", snake(name), body)
			}
			// One of the list, in the template's pattern, stands before the next with a comma.
			first, _, _ := strings.Cut(strings.TrimPrefix(p.AllowedPattern, "("), "(,")
			if !strings.Contains(body, "(?:"+first+")") {
				t.Errorf("%s: one is %s in the template", snake(name), first)
			}
			continue
		}
		if !strings.Contains(body, "= "+value+"\n") && !strings.Contains(body, `= "`+value+"\"\n") {
			t.Errorf("%s: the default of the template is %q: %s", snake(name), value, body)
		}
		for _, allowed := range p.AllowedValues {
			if text := fmt.Sprint(allowed); text != "true" && text != "false" && !strings.Contains(body, text) {
				t.Errorf("%s: %s is allowed in the template", snake(name), text)
			}
		}
		pattern := strings.ReplaceAll(p.AllowedPattern, `\`, `\\`)
		if !strings.Contains(body, pattern) {
			t.Errorf("%s: the template's pattern is %s", snake(name), pattern)
		}
		for _, limit := range []*int{p.MinValue, p.MaxValue} {
			if limit != nil && !strings.Contains(body, fmt.Sprint("= ", *limit)) {
				t.Errorf("%s: the template has the limit %d", snake(name), *limit)
			}
		}
	}
	slices.Sort(known)
	equal(t, "variables", slices.Sorted(maps.Keys(variables)), known)
}

func TestTerraform_RefusesWhatTheTemplateRefuses(t *testing.T) {
	t.Parallel()
	folder := module(t)
	for _, wrong := range []string{"bridge_timeout=61", "log_level=LOUD", "existing_table=name", "fifo_queue=default", "name=a.b", `subnets=["subnet-1"]`, `layers=["l"]`,
		`server_scopes=["work"]`, `server_scopes=["read"]`} {
		_, err := tofu(t, folder, "plan", "-input=false", "-no-color", "-var=name=app", "-var=code=code.zip", "-var="+wrong)
		if err == nil || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
