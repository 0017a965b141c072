package samtemplate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
)

// beside are properties of a function that are no part of what a version of it holds.
var beside = []string{"DeploymentPreference", "EventInvokeConfig", "Events", "ReservedConcurrentExecutions", "Role", "Tracing"}

// withheld are parameters that the configuration depends on and the version does not follow, with the one that has to go with them.
var withheld = map[string]string{"WebhookSecret": "Revision"}

// parametersOf finds every parameter that a value depends on, by itself, by its conditions or by its mappings.
func parametersOf(template *Template, value any, found map[string]bool) {
	name, argument := Function(value)
	switch {
	case name == "Ref":
		if _, ok := template.Parameters[fmt.Sprint(argument)]; ok {
			found[argument.(string)] = true
		}
		return
	case name == "Condition":
		parametersOf(template, template.Conditions[fmt.Sprint(argument)], found)
		return
	case name == "Fn::If":
		parametersOf(template, template.Conditions[fmt.Sprint(argument.([]any)[0])], found)
	case name == "Fn::Sub":
		text, _ := argument.(string)
		if list, ok := argument.([]any); ok {
			text, _ = list[0].(string)
		}
		for _, match := range regexp.MustCompile(`\$\{([^}.]+)\}`).FindAllStringSubmatch(text, -1) {
			parametersOf(template, map[string]any{"Ref": match[1]}, found)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			parametersOf(template, v, found)
		}
	case []any:
		for _, v := range value {
			parametersOf(template, v, found)
		}
	}
}

// A version is published when its logical id changes, and SAM computes that from the function's Tracing, where alone it resolves
// parameters. One that is missing there never reaches the alias; one too many makes AWS refuse the deployment.
func TestVersions_FollowEveryParameterThatAFunctionSees(t *testing.T) {
	t.Parallel()
	template := load(t)
	globals, _ := template.Globals["Function"].(map[string]any)
	for name, own := range each(template) {
		properties := merge(globals, own)
		followed, seen := map[string]bool{}, map[string]bool{}
		parametersOf(template, properties["Tracing"], followed)
		for property, value := range properties {
			if !slices.Contains(beside, property) {
				parametersOf(template, value, seen)
			}
		}
		for parameter, instead := range withheld {
			if !seen[parameter] || !followed[instead] {
				t.Errorf("%s: sees %s: %t; follows %s: %t", name, parameter, seen[parameter], instead, followed[instead])
			}
			delete(seen, parameter)
		}
		equal(t, name, slices.Sorted(maps.Keys(followed)), slices.Sorted(maps.Keys(seen)))
	}
}

// What SAM resolves in Tracing stands in the processed template, which shows no parameter with NoEcho otherwise.
func TestVersions_CarryNoSecret(t *testing.T) {
	t.Parallel()
	template := load(t)
	for name, function := range each(template) {
		followed := map[string]bool{}
		parametersOf(template, function["Tracing"], followed)
		for parameter := range followed {
			if template.Parameters[parameter].NoEcho {
				t.Errorf("%s carries %s", name, parameter)
			}
		}
	}
}

// otherValues are values besides the default, of parameters that list none.
var otherValues = map[string]string{
	"AlarmTopic": "arn:aws:sns:eu-west-1:123456789012:alarms", "Environment": "prod", "StandardQueue": "mail", "FifoQueue": "orders",
	"WebhookEndpoints": "shop=https://shop.example", "WebhookSecret": "another", "Revision": "2",
	"BridgeMemory": "512", "TickConcurrency": "1", "BridgeBatchSize": "1", "BridgeConcurrency": "7", "MaximumReadUnits": "100", "MaximumWriteUnits": "100",
	"BodiesBucket": "bodies", "RecoveryDays": "7", "InvocationsLimit": "5", "FailedRunsLimit": "5", "FailedRunsPercent": "5", "ExistingTable": existingStream,
	"BridgeSecrets": secretARN, "RelaySecrets": secretARN, "TickSecrets": secretARN, "ServerSecrets": secretARN, "ServerScopes": "read,trigger", "EventBus": busARN, "EventStatuses": "failed", "KmsKey": keyARN, "Subnets": "subnet-1,subnet-2",
	"SecurityGroups": "sg-1", "PermissionsBoundary": boundaryARN, "Layers": "arn:aws:lambda:us-east-1:123456789012:layer:watch:1",
}

// another returns an allowed value of a parameter that is not its default.
func another(t *testing.T, name string, p *Parameter) string {
	t.Helper()
	for _, value := range p.AllowedValues {
		if text := fmt.Sprint(value); text != fmt.Sprint(p.Default) {
			return text
		}
	}
	value := otherValues[name]
	if value == "" || !p.allows(value) || value == fmt.Sprint(p.Default) {
		t.Fatalf("parameter %s is new: give it a value in otherValues", name)
	}
	return value
}

func TestVersions_EveryParameterHasAnotherValue(t *testing.T) {
	t.Parallel()
	template := load(t)
	for name, p := range template.Parameters {
		evaluate(t, map[string]string{name: another(t, name, &p)})
	}
	for name := range otherValues {
		if _, ok := template.Parameters[name]; !ok {
			t.Errorf("there is no parameter %s", name)
		}
	}
}
