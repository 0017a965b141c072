package samtemplate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The stream of a table that was restored, and its parts.
const (
	existingStream = existingARN + "/stream/2026-11-22T12:15:19.123"
	existingARN    = "arn:aws:dynamodb:eu-west-1:123456789012:table/" + existingName
	existingName   = "runs.Restored-7"
)

var withExistingTable = map[string]string{"FifoQueue": "orders", "ExistingTable": existingStream}

// asText is a template's evaluated resources and outputs.
func asText(t *testing.T, template *Template) string {
	t.Helper()
	text, err := json.Marshal([]any{template.Resources, template.Outputs})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What names a table is the same with one of the stack's and with one that exists: only which table differs.
func TestExistingTable_TakesThePlaceOfTheStacks(t *testing.T) {
	t.Parallel()
	own, adopted := evaluate(t, withFIFO), evaluate(t, withExistingTable)
	if _, makes := adopted.Resources["Table"]; makes {
		t.Error("the stack makes a table all the same")
	}
	if text := asText(t, adopted); strings.Contains(text, "${Table") {
		t.Errorf("something names the stack's table:\n%s", text[max(0, strings.Index(text, "${Table")-200):])
	}
	delete(own.Resources, "Table")
	revision := `"RUNLANE_REVISION":" `
	want := strings.NewReplacer(revision, revision+existingStream, "${Table.StreamArn}", existingStream, "${Table.Arn}", existingARN, "${Table}", existingName).Replace(asText(t, own))
	equal(t, "resources and outputs", asText(t, adopted), want)
}

// A role that named the old table could not read the new one, and a relay whose role names the old stream reads nothing.
func TestExistingTable_RolesNameItAndItsStream(t *testing.T) {
	t.Parallel()
	template := evaluate(t, withExistingTable)
	for role, want := range map[string][]string{
		"BridgeRole": {existingARN, existingARN + "/index/due"}, "TickRole": {existingARN, existingARN + "/index/done", existingARN + "/index/due"},
		"RelayRole": {"*", existingARN, existingStream},
	} {
		named := map[string]bool{}
		for _, permission := range allowed(t, template, role) {
			if action, resource, _ := strings.Cut(permission, " "); strings.HasPrefix(action, "dynamodb:") {
				named[resource] = true
			}
		}
		equal(t, role, slices.Sorted(maps.Keys(named)), want)
	}
	equal(t, "the mapping", textAt(template.Resources["Relay"].Properties, "Events", "Commits", "Properties", "Stream"), existingStream)
	equal(t, "the functions", variables(template.Resources["Bridge"].Properties)["RUNLANE_TABLE"], existingName)
	equal(t, "the output", template.Outputs["TableName"].Value, any(existingName))
}

func TestExistingTable_TakesStreamARNsOnly(t *testing.T) {
	t.Parallel()
	parameter := load(t).Parameters["ExistingTable"]
	for value, want := range map[string]bool{
		"": true, existingStream: true,
		"arn:aws-cn:dynamodb:cn-north-1:123456789012:table/abc/stream/2026-01-01T00:00:00.000": true,
		"arn:aws:dynamodb:us-east-1:000000000000:table/runs/stream/2026-01-01T00:00:00.000":    true,
		existingName: false, existingARN: false, existingARN + "/index/due": false, existingARN + "/stream/": false,
		"arn:aws:sqs:eu-west-1:123456789012:runs": false,
	} {
		if got := parameter.allows(value); got != want {
			t.Errorf("%q is allowed: %t", value, got)
		}
	}
}
