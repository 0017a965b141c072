package samtemplate

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/eventbus"
	"github.com/runlane/runlane-go/functions"
)

const busARN = "arn:aws:events:eu-west-1:123456789012:event-bus/ends"

var withBus = map[string]string{"EventBus": busARN}

// Without a bus there is nothing of it, so that a stack that does not want one is as it was.
func TestEventBus_WithoutBus_IsNotThere(t *testing.T) {
	t.Parallel()
	without, with := evaluate(t, nil), evaluate(t, withBus)
	var more []string
	for name := range with.Resources {
		if _, ok := without.Resources[name]; !ok {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	equal(t, "resources", more, []string{
		"EventAgeAlarm", "EventDeadLetters", "EventDeadLettersAlarm", "EventRetries", "EventRetriesAlarm", "EventSender", "EventSenderCanaryAlarm",
		"EventSenderErrorsAlarm", "EventSenderLogs", "EventSenderRole",
	})
	for name, resource := range without.Resources {
		equal(t, name, with.Resources[name], resource)
	}
	for name, output := range without.Outputs {
		if strings.HasPrefix(name, "Event") {
			t.Errorf("there is an output %s", name)
		}
		if strings.Contains(output.Value.(string), "EVENT") {
			t.Errorf("%s is %s", name, output.Value)
		}
	}
	for name, want := range map[string]string{
		"EventSenderFunction": "${EventSender}", "EventRetriesUrl": "${EventRetries}", "EventDeadLettersUrl": "${EventDeadLetters}",
	} {
		equal(t, name, with.Outputs[name].Value, any(want))
	}
	if line := with.Outputs["Variables"].Value.(string); !strings.HasSuffix(line, " "+awslane.EventQueuesVariable+"=${EventRetries},${EventDeadLetters}") {
		t.Errorf("programs are told %s", line)
	}
}

// What the function calls is what two interfaces of one method have; the rest its mappings do in its name.
func TestEventBus_Role_AllowsWhatIsCalledAndNothingElse(t *testing.T) {
	t.Parallel()
	for api, method := range map[reflect.Type]string{reflect.TypeFor[eventbus.Bus](): "PutEvents", reflect.TypeFor[eventbus.Queue](): "SendMessageBatch"} {
		if api.NumMethod() != 1 || api.Method(0).Name != method {
			t.Errorf("%s has other methods than %s: the role has to follow", api, method)
		}
	}
	equal(t, "role", allowed(t, evaluate(t, withBus), "EventSenderRole"), []string{
		"dynamodb:DescribeStream ${Table.StreamArn}", "dynamodb:GetRecords ${Table.StreamArn}", "dynamodb:GetShardIterator ${Table.StreamArn}",
		"dynamodb:ListStreams *", "events:PutEvents " + busARN,
		"logs:CreateLogStream ${EventSenderLogs.Arn}", "logs:PutLogEvents ${EventSenderLogs.Arn}",
		"sqs:DeleteMessage ${EventRetries.Arn}", "sqs:GetQueueAttributes ${EventRetries.Arn}", "sqs:ReceiveMessage ${EventRetries.Arn}",
		"sqs:SendMessage ${EventDeadLetters.Arn}", "sqs:SendMessage ${EventRetries.Arn}",
	})
	// doctor counts what was refused, for operators, for who looks, and behind the server's URL.
	given := map[string]string{"EventBus": busARN, "ServerScopes": "read"}
	for name, list := range map[string][]string{
		"OperatorPolicy": granted(t, evaluate(t, given), "OperatorPolicy"), "ReadPolicy": granted(t, evaluate(t, given), "ReadPolicy"),
		"ServerRole": allowed(t, evaluate(t, given), "ServerRole"),
	} {
		for _, queue := range []string{"EventRetries", "EventDeadLetters"} {
			if !slices.Contains(list, "sqs:GetQueueAttributes ${"+queue+".Arn}") {
				t.Errorf("%s: %s cannot be counted", name, queue)
			}
		}
	}
}

func TestEventBus_Variables_AreThoseThatItsCodeReads(t *testing.T) {
	t.Parallel()
	own := map[string]string{}
	for _, name := range variablesRead(t, "../../../../eventbus") {
		own[name] = ""
	}
	all := each(evaluate(t, withBus))
	maps.Copy(own, variables(all["Tick"]))
	got := variables(all["EventSender"])
	equal(t, "variables", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(own)))
	equal(t, "values", []string{got[functions.RoleVariable], got[eventbus.BusVariable], got[eventbus.RetriesVariable]},
		[]string{eventbus.Role, busARN, "${EventRetries}"})
}

// The mapping keeps every record for 23 of the stream's 24 hours, however often it failed, and its filter is one that Lambda takes.
func TestEventBus_Mappings_LoseNothing(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"EventBus": busARN, "Environment": "prod", "EventStatuses": "failed,retrying"})
	ends := at(template.Resources["EventSender"].Properties, "Events", "Ends", "Properties")
	var filter any
	pattern := textAt(ends, "FilterCriteria", "Filters", 0, "Pattern")
	if err := json.Unmarshal([]byte(pattern), &filter); err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	equal(t, "filter", filter, any(map[string]any{
		"eventName": []any{"MODIFY"}, "dynamodb": map[string]any{
			"Keys": map[string]any{
				"pk": map[string]any{"S": []any{map[string]any{"prefix": "prod:run:"}}}, "sk": map[string]any{"S": []any{"run"}},
			},
			"NewImage": map[string]any{"st": map[string]any{"S": []any{"failed", "retrying"}}},
		},
	}))
	for property, want := range map[string]any{
		"StartingPosition": "TRIM_HORIZON", "MaximumRetryAttempts": -1, "MaximumRecordAgeInSeconds": 82800, "BisectBatchOnFunctionError": true,
		"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		"DestinationConfig":     map[string]any{"OnFailure": map[string]any{"Type": "SQS", "Destination": "${EventDeadLetters.Arn}"}},
	} {
		equal(t, property, at(ends, property), want)
	}
	retries := template.Resources["EventRetries"].Properties
	equal(t, "tries", []any{retries["VisibilityTimeout"], at(retries, "RedrivePolicy", "maxReceiveCount"), retries["MessageRetentionPeriod"]}, []any{900, 96, 1209600})
	equal(t, "retries", at(template.Resources["EventSender"].Properties, "Events", "Refused", "Properties", "FunctionResponseTypes"), any([]any{"ReportBatchItemFailures"}))
}

func TestEventBus_Parameters_AreChecked(t *testing.T) {
	t.Parallel()
	parameters := load(t).Parameters
	for name, values := range map[string]map[string]bool{
		"EventBus":      {"": true, busARN: true, "ends": false, busARN + "/more": true, "arn:aws:events:eu-west-1:1:event-bus/a": false},
		"EventStatuses": {"failed": true, "succeeded,retrying": true, "": false, "running": false, "failed,": false, "Failed": false},
	} {
		p := parameters[name]
		for value, allowed := range values {
			equal(t, name+"="+value, p.allows(value), allowed)
		}
	}
}

// Only the version under test can stop its deployment.
func TestEventBus_CanaryAlarm_IsOfItsVersion(t *testing.T) {
	t.Parallel()
	template := evaluate(t, withBus)
	equal(t, "alarm", template.Resources["EventSenderCanaryAlarm"].Properties["AlarmName"], any("${AWS::StackName}-canary-events"))
	equal(t, "deployment", at(template.Resources["EventSender"].Properties, "DeploymentPreference", "Alarms"), any([]any{"${AWS::StackName}-canary-events"}))
}
