package lambdatest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
)

// The small template of `runlane init --minimal` has the table and the mappings of the whole one.
func TestMinimal_TemplateHasTheTableAndTheMappingsOfTheProject(t *testing.T) {
	t.Parallel()
	example, own := loadTemplate(t, "../../../../cli/project/minimal/template.yaml"), loadTemplate(t, "../../../../template.yaml")
	for _, name := range []string{"AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "StreamSpecification", "TimeToLiveSpecification"} {
		want, got := own["Table"].Properties[name], example["Table"].Properties[name]
		if indexes, ok := want.([]any); ok && name == "GlobalSecondaryIndexes" {
			for _, index := range indexes {
				delete(index.(map[string]any), "OnDemandThroughput") // the limits of the project's template are parameters
			}
		}
		if got == nil {
			t.Errorf("the table has no %s", name)
		}
		equal(t, name, got, want)
	}
	schedule := eventsOf(t, example["Tick"])["EveryMinute"]
	equal(t, "ScheduleExpression", schedule.(map[string]any)["ScheduleExpression"], own["TickEveryMinute"].Properties["ScheduleExpression"])
	for _, function := range []string{"Bridge", "Relay", "Tick"} {
		if example[function].Metadata["BuildMethod"] != "makefile" {
			t.Errorf("%s is built by %v", function, example[function].Metadata)
		}
		if got := textOf(t, example[function].Properties["Environment"]); !strings.Contains(got, `"RUNLANE_FUNCTION":"`+strings.ToLower(function)+`"`) {
			t.Errorf("%s has %s", function, got)
		}
		if function == "Tick" {
			continue // the project's is no event of the function
		}
		got, want := eventsOf(t, example[function]), eventsOf(t, own[function])
		for name, properties := range got {
			wanted, ok := want[name].(map[string]any)
			if !ok {
				t.Errorf("%s has the event %s, which the project's has not", function, name)
				continue
			}
			for _, key := range []string{"FilterCriteria", "FunctionResponseTypes", "BisectBatchOnFunctionError", "MaximumRetryAttempts"} {
				equal(t, function+" "+name+" "+key, properties.(map[string]any)[key], wanted[key])
			}
		}
	}
	if got := textOf(t, example["WorkQueue"].Properties); !strings.Contains(got, `"maxReceiveCount":5`) || !strings.Contains(got, `"VisibilityTimeout":360`) {
		t.Errorf("the queue is %s", got)
	}
}

func loadTemplate(t *testing.T, path string) map[string]*samtemplate.Resource {
	t.Helper()
	template, err := samtemplate.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]*samtemplate.Resource{}
	for name := range template.Resources {
		r := template.Resources[name]
		resources[name] = &r
	}
	return resources
}

func eventsOf(t *testing.T, function *samtemplate.Resource) map[string]any {
	t.Helper()
	all, ok := function.Properties["Events"].(map[string]any)
	if !ok {
		t.Fatal("a function without events")
	}
	properties := map[string]any{}
	for name, event := range all {
		properties[name] = event.(map[string]any)["Properties"]
	}
	return properties
}

func textOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
