//go:build validate

package samtemplate

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// translate gives the template to AWS's own translator, as CloudFormation does, once for each set of parameters over the defaults.
func translate(t *testing.T, sets []map[string]string) []*Template {
	t.Helper()
	templates, err := Translate(t.Context(), "../../../../scripts/validate/translate.py", templatePath, sets)
	if err != nil {
		t.Fatal(err)
	}
	return templates
}

// configurations evaluates what a version holds of each function, by the function's name.
func configurations(t *testing.T, translated *Template, parameters map[string]string) map[string]map[string]any {
	t.Helper()
	out, err := translated.Evaluate(parameters)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for name, resource := range out.Resources {
		if resource.Type == "AWS::Lambda::Function" {
			delete(resource.Properties, "ReservedConcurrentExecutions")
			found[name] = resource.Properties
		}
	}
	return found
}

// versions maps functions to the logical ids of their versions in a translated template.
func versions(translated *Template) map[string]string {
	out := map[string]string{}
	for id, resource := range translated.Resources {
		if function, ok := resource.Properties["FunctionName"].(map[string]any); ok && resource.Type == "AWS::Lambda::Version" {
			out[textAt(function, "Ref")] = id
		}
	}
	return out
}

// Each parameter is changed in turn. A function whose configuration changes with it gets another version id, and no other does: the
// alias would stay behind, or AWS would refuse to publish what is published.
func TestTranslated_VersionsChangeWithTheConfiguration(t *testing.T) {
	t.Parallel()
	template := load(t)
	parameters := slices.Sorted(maps.Keys(template.Parameters))
	all := maps.Clone(required)
	all["ServerScopes"], all["EventBus"] = "read", busARN+"/other"
	sets := []map[string]string{all}
	for _, name := range parameters {
		p := template.Parameters[name]
		given := maps.Clone(all)
		given[name] = another(t, name, &p)
		sets = append(sets, given)
	}
	translated := translate(t, sets)
	configuration, ids := configurations(t, translated[0], all), versions(translated[0])
	equal(t, "functions", slices.Sorted(maps.Keys(ids)), []string{"Bridge", "EventSender", "Relay", "Server", "Tick"})
	changes := map[string]int{}
	for i, name := range parameters {
		changed, published := configurations(t, translated[i+1], sets[i+1]), versions(translated[i+1])
		for function := range ids {
			sees, follows := !reflect.DeepEqual(configuration[function], changed[function]), ids[function] != published[function]
			if follows {
				changes[name]++
			}
			if withheld[name] != "" {
				sees = false
			}
			if sees != follows {
				t.Errorf("%s=%s: the configuration of %s changes: %t, its version id: %t", name, sets[i+1][name], function, sees, follows)
			}
		}
	}
	for parameter, functions := range map[string]int{
		"LogLevel": 5, "BridgeTimeout": 1, "FifoQueue": 5, "Revision": 5, "WebhookEndpoints": 5, "ServerScopes": 1, "ServerSecrets": 1, "TickSecrets": 3,
		"EventBus": 2, "EventStatuses": 0,
	} {
		equal(t, parameter, changes[parameter], functions)
	}
}

// SAM makes roles, too, where the template has none.
func TestTranslated_Boundary_BoundsEveryRole(t *testing.T) {
	t.Parallel()
	given := maps.Clone(required)
	given["PermissionsBoundary"], given["ServerScopes"], given["EventBus"] = boundaryARN, "read", busARN
	for name, role := range propertiesOf(translate(t, []map[string]string{given})[0], "AWS::IAM::Role") {
		if role["PermissionsBoundary"] == nil {
			t.Errorf("%s is not bound", name)
		}
	}
}
