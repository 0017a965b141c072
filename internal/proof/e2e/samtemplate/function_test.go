package samtemplate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/lane"
)

// each returns the functions by name.
func each(template *Template) map[string]map[string]any {
	out := map[string]map[string]any{}
	for name, r := range template.Resources {
		if r.Type == "AWS::Serverless::Function" {
			out[name] = r.Properties
		}
	}
	return out
}

func TestFunctions_AreBuiltAndRunAlike(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"LogLevel": "WARN", "LogRetention": "7", "ServerScopes": "read", "EventBus": busARN})
	found := each(template)
	equal(t, "functions", slices.Sorted(maps.Keys(found)), []string{"Bridge", "EventSender", "Relay", "Server", "Tick"})
	for name, f := range found {
		for property, want := range map[string]any{
			"Runtime": "provided.al2023", "Architectures": []any{"arm64"}, "Handler": "bootstrap", "CodeUri": ".",
			"AutoPublishAlias": "live", "AutoPublishAliasAllProperties": true, "Tracing": "PassThrough",
			"RuntimeManagementConfig": map[string]any{"UpdateRuntimeOn": "Auto"},
			"LoggingConfig": map[string]any{
				"LogGroup": "${" + name + "Logs}", "LogFormat": "JSON", "ApplicationLogLevel": "WARN", "SystemLogLevel": "WARN",
			},
		} {
			equal(t, name+": "+property, f[property], want)
		}
		equal(t, name+": build", template.Resources[name].Metadata["BuildMethod"], any("makefile"))
		equal(t, name+": retention", template.Resources[name+"Logs"].Properties["RetentionInDays"], any("7"))
	}
	// Only those that send messages which invoke themselves, or that a schedule invokes.
	equal(t, "recursion", []any{found["Bridge"]["RecursiveLoop"], found["Tick"]["RecursiveLoop"]}, []any{"Allow", "Allow"})
}

func TestDeployment_AlarmsRollItBack(t *testing.T) {
	t.Parallel()
	for name, f := range each(evaluate(t, nil)) {
		equal(t, name, f["DeploymentPreference"], any(map[string]any{
			"Enabled": "true", "Type": "Canary10Percent5Minutes", "Role": "${DeploymentRole.Arn}", "Alarms": []any{"${AWS::StackName}-canary-" + strings.ToLower(name)},
		}))
	}
	template := evaluate(t, withServer)
	for _, name := range []string{"Bridge", "Relay", "Tick", "Server"} { // only the version under test can stop its deployment
		alarm := template.Resources[name+"CanaryAlarm"].Properties
		equal(t, "name of the alarm", alarm["AlarmName"], any("${AWS::StackName}-canary-"+strings.ToLower(name)))
		equal(t, "what it counts", alarmMetrics(alarm), []metric{{"AWS/Lambda", "Errors", map[string]string{
			"FunctionName": "${" + name + "}", "Resource": "${" + name + "}:live", "ExecutedVersion": "${" + name + ".Version.Version}",
		}}}, cmp.AllowUnexported(metric{}))
	}
	for _, name := range ofType(evaluate(t, map[string]string{"Deployment": "AllAtOnce", "ServerScopes": "read", "EventBus": busARN}), "AWS::CloudWatch::Alarm") {
		if strings.HasSuffix(name, "CanaryAlarm") {
			t.Errorf("%s watches no deployment", name)
		}
	}
	for name, f := range each(evaluate(t, map[string]string{"Deployment": "AllAtOnce", "Alarms": "false"})) {
		equal(t, name, f["DeploymentPreference"], any(map[string]any{"Enabled": "false", "Type": "AllAtOnce", "Role": "${DeploymentRole.Arn}", "Alarms": []any{}}))
	}
	template = load(t)
	for _, kind := range template.Parameters["Deployment"].AllowedValues {
		if template.Mappings["CodeDeploy"][kind.(string)] == nil {
			t.Errorf("mapping CodeDeploy lacks %s", kind)
		}
	}
}

func variables(properties map[string]any) map[string]string {
	out := map[string]string{}
	for name, value := range at(properties, "Environment", "Variables").(map[string]any) {
		out[name] = value.(string)
	}
	return out
}

func TestVariables_HaveTheirValues(t *testing.T) {
	t.Parallel()
	parameters := map[string]string{
		"Environment": "prod", "StandardQueue": "mail", "FifoQueue": "orders", "WebhookEndpoints": "a=https://a.example", "Metrics": "false",
		"Revision": "7",
	}
	for name, f := range each(evaluate(t, parameters)) {
		equal(t, name, variables(f), bridgeOnly(name, "mail,orders", map[string]string{
			"AWS_NEW_RETRIES_2026": "true", "RUNLANE_BODIES_BUCKET": "", "RUNLANE_ENV": "prod", "RUNLANE_TABLE": "${Table}", "RUNLANE_METRICS": "off",
			"RUNLANE_QUEUES": "mail=${WorkQueue},orders=${FifoWorkQueue}", "RUNLANE_FUNCTION": strings.ToLower(name), "RUNLANE_REVISION": "7  ",
			"RUNLANE_SECRETS": "bridge= relay= tick=", "WEBHOOK_ENDPOINTS": "a=https://a.example", "WEBHOOK_SECRET": "secret",
		}))
	}
	bridge := variables(each(evaluate(t, nil))["Bridge"])
	equal(t, "without FIFO", bridge["RUNLANE_QUEUES"], "default=${WorkQueue}")
	equal(t, "metrics", bridge[functions.MetricsVariable], "on")
}

// bridgeOnly adds what only a bridge reads.
func bridgeOnly(function, bindings string, variables map[string]string) map[string]string {
	delete(variables, functions.BindingsVariable)
	if function == "Bridge" {
		variables[functions.BindingsVariable] = bindings
	}
	return variables
}

// The template sets exactly what the code that it deploys reads.
func TestVariables_AreThoseThatTheCodeReads(t *testing.T) {
	t.Parallel()
	read := map[string]bool{"RUNLANE_REVISION": true} // its change is what matters
	for _, folder := range []string{"awslane", "functions", "examples/webhooks"} {
		for _, name := range variablesRead(t, filepath.Join("..", "..", "..", "..", folder)) {
			// Lambda itself sets the ones; another is of networks with their own authority, which no function is in. Without a name the
			// lane is that on AWS. Event queues are doctor's, which programs outside and the server have.
			read[name] = !strings.HasPrefix(name, "AWS_LAMBDA_") &&
				!slices.Contains([]string{"AWS_CA_BUNDLE", lane.Variable, awslane.EventQueuesVariable}, name)
		}
	}
	maps.DeleteFunc(read, func(_ string, expected bool) bool { return !expected })
	for name, f := range each(evaluate(t, nil)) {
		want := map[string]string{}
		for variable := range read {
			want[variable] = ""
		}
		equal(t, name, slices.Sorted(maps.Keys(variables(f))), slices.Sorted(maps.Keys(bridgeOnly(name, "", want))))
	}
}

// variablesRead are the arguments of os.Getenv and os.LookupEnv in a package, constants by their value.
func variablesRead(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	constants := constantsOf(t, filepath.Join("..", "..", "..", "..", "lane", "open.go")) // some are called after these
	maps.Copy(constants, constantsOf(t, filepath.Join("..", "..", "..", "..", "awslane", "awslane.go")))
	var calls []ast.Expr
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		maps.Copy(constants, constantsOf(t, name))
		ast.Inspect(parse(t, name), func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Getenv" || s.Sel.Name == "LookupEnv") {
				calls = append(calls, call.Args[0])
			}
			return true
		})
	}
	for _, argument := range calls {
		name := literal(argument)
		switch a := argument.(type) {
		case *ast.Ident:
			name = constants[a.Name]
		case *ast.SelectorExpr: // of package lane or awslane
			name = constants[a.Sel.Name]
		}
		if name == "" {
			t.Errorf("%s reads a variable whose name is not a constant", folder)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Errorf("%s reads no variable: it was not understood", folder)
	}
	return names
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// constantsOf are the named texts of a file.
func constantsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	ast.Inspect(parse(t, path), func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				if text := literal(value); text != "" && i < len(spec.Names) {
					out[spec.Names[i].Name] = text
				}
			}
		}
		return true
	})
	return out
}

func literal(e ast.Expr) string {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(basic.Value)
	return text
}

// What a program outside needs is an output, alone and as one line for a shell.
func TestOutputs_OpenALane(t *testing.T) {
	t.Parallel()
	for _, parameters := range []map[string]string{nil, withFIFO} {
		template := evaluate(t, parameters)
		bridge := variables(each(template)["Bridge"])
		equal(t, "environment", template.Outputs["EnvironmentName"].Value, any(bridge["RUNLANE_ENV"]))
		equal(t, "table", template.Outputs["TableName"].Value, any(bridge["RUNLANE_TABLE"]))
		equal(t, "queues", template.Outputs["Queues"].Value, any(bridge["RUNLANE_QUEUES"]))
		line := map[string]string{}
		for _, pair := range strings.Fields(template.Outputs["Variables"].Value.(string)) {
			name, value, _ := strings.Cut(pair, "=")
			line[name] = value
		}
		equal(t, "line", line, map[string]string{
			"RUNLANE_ENV": bridge["RUNLANE_ENV"], "RUNLANE_TABLE": bridge["RUNLANE_TABLE"], "RUNLANE_QUEUES": bridge["RUNLANE_QUEUES"],
			"AWS_REGION": "${AWS::Region}",
		})
		for name := range template.Resources { // every queue that an operator has to check
			if strings.HasSuffix(name, "DeadLetters") || name == "RelayFailures" {
				equal(t, name, template.Outputs[name+"Url"].Value, any("${"+name+"}"))
			}
		}
	}
}

// `make` knows the targets that the build method calls.
func TestBuild_HasATargetForEachFunction(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, name := range []string{"Makefile", "build.mk"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	for name := range each(evaluate(t, withEverything)) {
		if !strings.Contains(text.String(), "\nbuild-"+name+":") {
			t.Errorf("there is no target build-%s", name)
		}
	}
}
