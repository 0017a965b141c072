//go:build validate

package deployforms

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/samtemplate"
)

// state is what `tofu show -json` says.
type state struct {
	Values struct {
		Outputs map[string]struct{ Value any }
		Root    struct {
			Resources []stateResource
			Children  []struct{ Resources []stateResource } `json:"child_modules"`
		} `json:"root_module"`
	}
}

type stateResource struct {
	Address, Mode, Type string
	Values              map[string]any
}

// addresses are the module's resources by what the template calls them, but for alarms.
var addresses = map[string]string{
	"Table":                 `aws_dynamodb_table.runs[0]`,
	"WorkQueue":             `aws_sqs_queue.work["work"]`,
	"FifoWorkQueue":         `aws_sqs_queue.work["fifo"]`,
	"WorkDeadLetters":       `aws_sqs_queue.dead_letters["work"]`,
	"FifoWorkDeadLetters":   `aws_sqs_queue.dead_letters["fifo"]`,
	"RelayFailures":         `aws_sqs_queue.failures["relay"]`,
	"TickDeadLetters":       `aws_sqs_queue.failures["tick"]`,
	"BridgeLogs":            `aws_cloudwatch_log_group.function["bridge"]`,
	"RelayLogs":             `aws_cloudwatch_log_group.function["relay"]`,
	"ServerLogs":            `aws_cloudwatch_log_group.function["server"]`,
	"TickLogs":              `aws_cloudwatch_log_group.function["tick"]`,
	"BridgeRole":            `aws_iam_role.function["bridge"]`,
	"RelayRole":             `aws_iam_role.function["relay"]`,
	"ServerRole":            `aws_iam_role.function["server"]`,
	"TickRole":              `aws_iam_role.function["tick"]`,
	"TickScheduleRole":      `aws_iam_role.schedule`,
	"Bridge":                `aws_lambda_function.role["bridge"]`,
	"Relay":                 `aws_lambda_function.role["relay"]`,
	"Server":                `aws_lambda_function.role["server"]`,
	"ServerUrl":             `aws_lambda_function_url.server[0]`,
	"Tick":                  `aws_lambda_function.role["tick"]`,
	"BridgeAliaslive":       `aws_lambda_alias.live["bridge"]`,
	"RelayAliaslive":        `aws_lambda_alias.live["relay"]`,
	"ServerAliaslive":       `aws_lambda_alias.live["server"]`,
	"TickAliaslive":         `aws_lambda_alias.live["tick"]`,
	"BridgeWakeups":         `aws_lambda_event_source_mapping.wakeups["work"]`,
	"BridgeFifoWakeups":     `aws_lambda_event_source_mapping.wakeups["fifo"]`,
	"RelayCommits":          `aws_lambda_event_source_mapping.commits`,
	"TickEventInvokeConfig": `aws_lambda_function_event_invoke_config.tick`,
	"TickEveryMinute":       `aws_scheduler_schedule.tick`,
	"Board":                 `aws_cloudwatch_dashboard.runs[0]`,
}

// parts belong to another resource of the template, whose address is given.
var parts = regexp.MustCompile(`^aws_(sqs_queue_redrive_allow_policy|iam_role_policy|iam_role_policy_attachment|lambda_function_recursion_config)\.`)

// alarmAddress makes WorkDeadLettersAlarm `aws_cloudwatch_metric_alarm.watch["dead-letters"]`.
func alarmAddress(id string) string {
	name := strings.ReplaceAll(snake(strings.TrimSuffix(id, "Alarm")), "_", "-")
	name = strings.Replace(name, "work-dead", "dead", 1)
	return `aws_cloudwatch_metric_alarm.watch["` + name + `"]`
}

// attributesOf says which attribute a template's reference is, "" for Ref.
var attributesOf = map[string]map[string]string{
	"aws_cloudwatch_log_group": {"": "name"},
	"aws_dynamodb_table":       {"": "name", "Arn": "arn", "StreamArn": "stream_arn"},
	"aws_iam_role":             {"": "name", "Arn": "arn"},
	"aws_lambda_alias":         {"": "arn", "AliasArn": "arn"},
	"aws_lambda_function":      {"": "function_name", "Arn": "arn"},
	"aws_lambda_function_url":  {"FunctionUrl": "function_url"},
	"aws_sqs_queue":            {"": "url", "Arn": "arn", "QueueName": "name"},
}

// named are the properties that the module has to name and CloudFormation names itself.
var named = map[string]bool{
	"TableName": true, "RoleName": true, "FunctionName": true, "LogGroupName": true, "AlarmName": true, "DashboardName": true,
}

var placeholder = regexp.MustCompile(`\$\{[^}]+\}`)

type comparison struct {
	template *samtemplate.Template
	made     map[string]stateResource
	address  func(id string) string
}

func newComparison(template *samtemplate.Template, s *state) *comparison {
	c := &comparison{template: template, made: map[string]stateResource{}}
	for _, r := range s.Values.Root.Resources {
		if r.Mode == "managed" {
			c.made[r.Address] = r
		}
	}
	c.address = func(id string) string {
		if strings.HasSuffix(id, "Alarm") {
			return alarmAddress(id)
		}
		return addresses[id]
	}
	return c
}

// known says what a reference of the template is in the module: "Table.Arn".
func (c *comparison) known(t *testing.T, reference string) string {
	t.Helper()
	switch reference {
	case "AWS::StackName":
		return "app"
	case "AWS::Region":
		return "eu-central-1"
	case "AWS::AccountId":
		return "123456789012"
	case "AWS::Partition":
		return "aws"
	case "KnownTable.Value":
		parameter := c.template.Resources["KnownTable"].Properties["Value"]
		return fmt.Sprint(c.resolve(t, parameter))
	}
	id, attribute, _ := strings.Cut(reference, ".")
	if strings.Contains(id, "Version") {
		return "1"
	}
	r, found := c.made[c.address(id)]
	value, ok := r.Values[attributesOf[r.Type][attribute]].(string)
	if r.Type == "aws_cloudwatch_log_group" && attribute == "Arn" {
		value, ok = fmt.Sprint(r.Values["arn"], ":*"), true // CloudFormation's attribute is of the group's streams
	}
	if !found || !ok {
		t.Errorf("the template refers to %s: the module has no such thing", reference)
	}
	return value
}

// resolve replaces references, makes text of every scalar, and leaves nulls and empty maps out.
func (c *comparison) resolve(t *testing.T, value any) any {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range value {
			if inner = c.resolve(t, inner); inner != nil {
				out[name] = inner
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = c.resolve(t, inner)
		}
		return out
	case nil:
		return nil
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	default:
		text := placeholder.ReplaceAllStringFunc(fmt.Sprint(value), func(found string) string {
			return c.known(t, found[2:len(found)-1])
		})
		return text
	}
}

func compareResources(t *testing.T, template *samtemplate.Template, s *state) {
	t.Helper()
	c := newComparison(template, s)
	seen := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(template.Resources)) {
		want := template.Resources[id]
		if id == "DeploymentRole" { // for gradual deployments, which are an update policy of CloudFormation
			continue
		}
		switch want.Type {
		case "AWS::SSM::Parameter": // stands for the table's name, which Terraform has
			continue
		case "AWS::Lambda::Version": // published by the function itself
			function := textAt(want.Properties, "FunctionName")
			if r := c.made[c.address(strings.Trim(function, "${}"))]; r.Values["publish"] != true {
				t.Errorf("%s does not publish versions", r.Address)
			}
			continue
		}
		address := c.address(id)
		r, found := c.made[address]
		if !found {
			t.Errorf("%s of the template has no counterpart: %q", id, address)
			continue
		}
		seen[address] = true
		convert := conversions[r.Type]
		if convert == nil {
			t.Fatalf("there is no conversion for %s", r.Type)
		}
		got, properties := convert(c, &r), maps.Clone(want.Properties)
		for _, of := range []map[string]any{properties, got} {
			delete(of, "Code")
			delete(of, "Tags") // SAM's
			if want.Type != "AWS::Lambda::Alias" && want.Type != "AWS::Lambda::EventSourceMapping" &&
				want.Type != "AWS::Lambda::EventInvokeConfig" {
				maps.DeleteFunc(of, func(name string, _ any) bool { return named[name] })
			}
		}
		wanted := c.resolve(t, normalized(want.Type, properties))
		equal(t, id, c.resolve(t, got), wanted)
	}
	for address, r := range c.made {
		if !seen[address] && !parts.MatchString(address) {
			t.Errorf("the template has no %s (%s)", address, r.Type)
		}
	}
}

// normalized says a template's properties as the module's are said.
func normalized(kind string, properties map[string]any) map[string]any {
	out := maps.Clone(properties)
	switch kind {
	case "AWS::CloudWatch::Alarm":
		description := textAt(out, "AlarmDescription")
		for _, name := range []string{"BridgeConcurrency", "InvocationsLimit"} {
			description = strings.ReplaceAll(description, name, snake(name))
		}
		out["AlarmDescription"] = description
		out["Dimensions"] = pairs(out["Dimensions"])
		out["Metrics"] = byID(out["Metrics"])
	case "AWS::DynamoDB::Table":
		out["GlobalSecondaryIndexes"] = sorted(out["GlobalSecondaryIndexes"], "IndexName")
		out["AttributeDefinitions"] = sorted(out["AttributeDefinitions"], "AttributeName")
		for _, index := range listAt(out, "GlobalSecondaryIndexes") {
			if names := listAt(index, "Projection", "NonKeyAttributes"); names != nil { // a set
				slices.SortFunc(names, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case "AWS::Lambda::EventSourceMapping":
		for _, filter := range listAt(out, "FilterCriteria", "Filters") {
			filter.(map[string]any)["Pattern"] = parsed(textAt(filter, "Pattern"))
		}
		if out["Enabled"] == nil {
			out["Enabled"] = true
		}
	case "AWS::CloudWatch::Dashboard":
		out["DashboardBody"] = parsed(textAt(out, "DashboardBody"))
	}
	return out
}

// parsed is a JSON document, for documents are equal whatever the order of their names.
func parsed(text string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return text
	}
	return value
}

func sorted(list any, by string) any {
	items, _ := list.([]any)
	return slices.SortedFunc(slices.Values(items), func(a, b any) int { return strings.Compare(textAt(a, by), textAt(b, by)) })
}

// pairs makes a map of a list of names and values.
func pairs(list any) any {
	items, _ := list.([]any)
	out := map[string]any{}
	for _, item := range items {
		out[textAt(item, "Name")] = at(item, "Value")
	}
	return out
}

// byID orders the metrics of an alarm, whose order says nothing.
func byID(list any) any {
	items, _ := list.([]any)
	if items == nil {
		return nil
	}
	out := map[string]any{}
	for _, item := range items {
		metric := maps.Clone(item.(map[string]any))
		if inner, ok := at(metric, "MetricStat", "Metric").(map[string]any); ok {
			inner["Dimensions"] = pairs(inner["Dimensions"])
		}
		if metric["ReturnData"] == nil {
			metric["ReturnData"] = true
		}
		out[textAt(metric, "Id")] = metric
	}
	return out
}

func compareOutputs(t *testing.T, template *samtemplate.Template, s *state) {
	t.Helper()
	c := newComparison(template, s)
	wanted := map[string]any{"bridge_role": c.known(t, "BridgeRole")}
	for name, output := range template.Outputs {
		if name == "GradualDeployment" { // there is none
			continue
		}
		value := c.resolve(t, output.Value)
		wanted[snake(name)] = parsed(fmt.Sprint(value))
	}
	got := map[string]any{}
	for name, output := range s.Values.Outputs {
		got[name] = parsed(fmt.Sprint(output.Value))
	}
	equal(t, "outputs", got, wanted)
}
