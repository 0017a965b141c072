package samtemplate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/infra"
)

func equal(t *testing.T, what string, got, want any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func keyNames(schema any) (names []string) {
	for _, key := range schema.([]any) {
		names = append(names, textAt(key, "AttributeName")+" "+textAt(key, "KeyType"))
	}
	return names
}

func wantedKeys(schema []types.KeySchemaElement) (names []string) {
	for _, key := range schema {
		names = append(names, aws.ToString(key.AttributeName)+" "+string(key.KeyType))
	}
	return names
}

func TestTable_IsInfras(t *testing.T) {
	t.Parallel()
	want := infra.TableInput("runs")
	resource := evaluate(t, nil).Resources["Table"]
	table := resource.Properties
	equal(t, "keys", keyNames(table["KeySchema"]), wantedKeys(want.KeySchema))
	equal(t, "billing", textAt(table, "BillingMode"), string(want.BillingMode))
	equal(t, "stream", textAt(table, "StreamSpecification", "StreamViewType"), string(want.StreamSpecification.StreamViewType))
	equal(t, "time to live", table["TimeToLiveSpecification"], any(map[string]any{"AttributeName": infra.TTLAttribute, "Enabled": true}))
	got, wanted := map[string]string{}, map[string]string{}
	for _, attribute := range listAt(table, "AttributeDefinitions") {
		got[textAt(attribute, "AttributeName")] = textAt(attribute, "AttributeType")
	}
	for _, attribute := range want.AttributeDefinitions {
		wanted[aws.ToString(attribute.AttributeName)] = string(attribute.AttributeType)
	}
	equal(t, "attributes", got, wanted)
	indexes := listAt(table, "GlobalSecondaryIndexes")
	if len(indexes) != len(want.GlobalSecondaryIndexes) {
		t.Fatalf("%d indexes, want %d", len(indexes), len(want.GlobalSecondaryIndexes))
	}
	for i, index := range want.GlobalSecondaryIndexes {
		equal(t, "index", textAt(indexes[i], "IndexName"), aws.ToString(index.IndexName))
		equal(t, "keys of an index", keyNames(at(indexes[i], "KeySchema")), wantedKeys(index.KeySchema))
		equal(t, "projection", textAt(indexes[i], "Projection", "ProjectionType"), string(index.Projection.ProjectionType))
		var projected []string
		for _, name := range listAt(indexes[i], "Projection", "NonKeyAttributes") {
			projected = append(projected, name.(string))
		}
		equal(t, "projected attributes", projected, index.Projection.NonKeyAttributes)
	}
	if table["LocalSecondaryIndexes"] != nil {
		t.Error("the table has local indexes")
	}
}

// The table outlives its stack, and can be restored.
func TestTable_IsKept(t *testing.T) {
	t.Parallel()
	for _, protected := range []string{"true", "false"} {
		table := evaluate(t, map[string]string{"DeletionProtection": protected, "RecoveryDays": "7"}).Resources["Table"]
		equal(t, "policies", []string{table.DeletionPolicy, table.UpdateReplacePolicy}, []string{"Retain", "Retain"})
		equal(t, "protection", table.Properties["DeletionProtectionEnabled"], any(protected))
		equal(t, "recovery", table.Properties["PointInTimeRecoverySpecification"],
			any(map[string]any{"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": "7"}))
	}
}

func TestTable_Limits_HoldForItAndEachIndex(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		parameters map[string]string
		want       any
	}{
		{nil, nil},
		{map[string]string{"MaximumReadUnits": "5"}, map[string]any{"MaxReadRequestUnits": "5"}},
		{map[string]string{"MaximumWriteUnits": "7"}, map[string]any{"MaxWriteRequestUnits": "7"}},
		{map[string]string{"MaximumReadUnits": "5", "MaximumWriteUnits": "7"}, map[string]any{"MaxReadRequestUnits": "5", "MaxWriteRequestUnits": "7"}},
	} {
		table := evaluate(t, tc.parameters).Resources["Table"].Properties
		equal(t, "limit of the table", table["OnDemandThroughput"], tc.want)
		for _, index := range listAt(table, "GlobalSecondaryIndexes") {
			equal(t, "limit of an index", at(index, "OnDemandThroughput"), tc.want)
		}
	}
}

// attributes are a queue's properties as SQS has them: everything is text.
func attributes(t *testing.T, properties map[string]any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, value := range properties {
		switch value := value.(type) {
		case map[string]any:
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(text)
		default:
			out[name] = fmt.Sprint(value)
		}
	}
	delete(out, "QueueName")
	return out
}

func TestQueues_AreInfrasForEveryTimeout(t *testing.T) {
	t.Parallel()
	template := load(t)
	timeouts := template.Parameters["BridgeTimeout"].AllowedValues
	if !slices.Contains(timeouts, any(fmt.Sprint(int(infra.DefaultFunctionTimeout/time.Second)))) {
		t.Errorf("timeouts are %v, without infra's default", timeouts)
	}
	for _, timeout := range timeouts {
		seconds, err := strconv.Atoi(timeout.(string))
		if err != nil {
			t.Fatal(err)
		}
		out := evaluate(t, map[string]string{"FifoQueue": "orders", "BridgeTimeout": timeout.(string)})
		equal(t, "timeout of the bridge", out.Resources["Bridge"].Properties["Timeout"], timeout)
		for work, dead := range map[string]string{"WorkQueue": "WorkDeadLetters", "FifoWorkQueue": "FifoWorkDeadLetters"} {
			name := textAt(out.Resources[work].Properties, "QueueName")
			want, err := infra.QueueAttributes(name, "${"+dead+".Arn}", &infra.QueueOptions{FunctionTimeout: time.Duration(seconds) * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, work, attributes(t, out.Resources[work].Properties), want)
			deadName := textAt(out.Resources[dead].Properties, "QueueName")
			equal(t, "name of "+dead, deadName, infra.DeadLetterName(name))
			want = maps.Clone(infra.DeadLetterAttributes(deadName))
			want["RedriveAllowPolicy"], err = infra.RedriveAllowPolicy(
				"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:" + name)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, dead, attributes(t, out.Resources[dead].Properties), want)
		}
	}
}

func TestQueues_OfFailures_KeepThemAndTakeNobodyElses(t *testing.T) {
	t.Parallel()
	template := evaluate(t, nil)
	for _, name := range []string{"RelayFailures", "TickDeadLetters"} {
		want := maps.Clone(infra.DeadLetterAttributes(name))
		want["RedriveAllowPolicy"] = `{"redrivePermission":"denyAll"}`
		equal(t, name, attributes(t, template.Resources[name].Properties), want)
	}
}

func TestMappings_AreInfras(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"FifoQueue": "orders", "BridgeConcurrency": "9"})
	report := []any{infra.BatchItemFailures}
	scaling := map[string]any{"MaximumConcurrency": "9"}
	wakeups := func(queue string) map[string]any {
		return map[string]any{
			"Queue": queue, "BatchSize": fmt.Sprint(infra.WakeupBatch), "FunctionResponseTypes": report, "ScalingConfig": scaling,
		}
	}
	ordered := wakeups("${FifoWorkQueue.Arn}")
	ordered["Enabled"] = true
	equal(t, "queues", at(template.Resources["Bridge"].Properties, "Events"), any(map[string]any{
		"Wakeups":     map[string]any{"Type": "SQS", "Properties": wakeups("${WorkQueue.Arn}")},
		"FifoWakeups": map[string]any{"Type": "SQS", "Properties": ordered},
	}))
	unbound := evaluate(t, nil).Resources["Bridge"].Properties
	equal(t, "mapping of a FIFO queue that nothing is bound to", at(unbound, "Events", "FifoWakeups", "Properties", "Enabled"), any(false))
	equal(t, "stream", at(template.Resources["Relay"].Properties, "Events"), any(map[string]any{"Commits": map[string]any{
		"Type": "DynamoDB", "Properties": map[string]any{
			"Stream": "${Table.StreamArn}", "StartingPosition": infra.StreamStart, "BatchSize": infra.StreamBatch,
			"BisectBatchOnFunctionError": true, "MaximumRetryAttempts": infra.StreamRetries,
			"MaximumRecordAgeInSeconds": int(infra.StreamMaxAge / time.Second), "FunctionResponseTypes": report,
			"FilterCriteria":    map[string]any{"Filters": []any{map[string]any{"Pattern": infra.StreamFilter}}},
			"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Type": "SQS", "Destination": "${RelayFailures.Arn}"}},
		},
	}}))
	tick := template.Resources["Tick"].Properties
	schedule := template.Resources["TickEveryMinute"].Properties
	equal(t, "rate", textAt(schedule, "ScheduleExpression"), infra.TickRate)
	equal(t, "window", textAt(schedule, "FlexibleTimeWindow", "Mode"), "OFF")
	equal(t, "target", []string{textAt(schedule, "Target", "Arn"), textAt(schedule, "Target", "RoleArn")}, []string{"${Tick.Arn}:live", "${TickScheduleRole.Arn}"})
	equal(t, "environments of its own", tick["ReservedConcurrentExecutions"], any("2"))
	none := evaluate(t, map[string]string{"TickConcurrency": "0"}).Resources["Tick"].Properties
	equal(t, "environments of its own", none["ReservedConcurrentExecutions"], nil)
	equal(t, "timeout of the tick", tick["Timeout"], any(int(infra.TickTimeout/time.Second)))
	for _, place := range []any{at(tick, "EventInvokeConfig"), at(schedule, "Target", "RetryPolicy")} {
		equal(t, "repetitions", place, any(map[string]any{"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}))
	}
	equal(t, "dead letters", textAt(tick, "DeadLetterQueue", "TargetArn"), "${TickDeadLetters.Arn}")
	equal(t, "dead letters of the schedule", textAt(schedule, "Target", "DeadLetterConfig", "Arn"), "${TickDeadLetters.Arn}")
}

// Local mappings and the real ones agree, and the filter is about what the store writes.
func TestMappings_AreTheLocalOnes(t *testing.T) {
	t.Parallel()
	equal(t, "batch of wakeups", infra.WakeupBatch, eventsource.DefaultBatchSize)
	equal(t, "batch of records", infra.StreamBatch, eventsource.DefaultStreamBatchSize)
	equal(t, "retries", infra.StreamRetries, eventsource.DefaultMaxRetries)
	equal(t, "timeout", infra.DefaultFunctionTimeout, eventsource.DefaultTimeout)
	var filter, want any
	if err := json.Unmarshal([]byte(infra.StreamFilter), &filter); err != nil {
		t.Fatal(err)
	}
	image := strings.NewReplacer("NAME", dynamostore.RelayAttribute, "VALUE", dynamostore.RelayValue).Replace(
		`{"eventName": ["INSERT"], "dynamodb": {"NewImage": {"NAME": {"S": ["VALUE"]}}}}`)
	if err := json.Unmarshal([]byte(image), &want); err != nil {
		t.Fatal(err)
	}
	equal(t, "filter", filter, want)
}
