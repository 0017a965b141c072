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
	if !slices.Contains(timeouts, any(fmt.Sprint(int(eventsource.DefaultTimeout/time.Second)))) {
		t.Errorf("timeouts are %v, without the default", timeouts)
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

// How AWS invokes the functions, beside what local AWS reads queues and the stream by: package functions/eventsource.
const (
	// batchItemFailures is the response type of both mappings: a record that is reported comes again, the others do
	// not.
	batchItemFailures = "ReportBatchItemFailures"
	// streamFilter lets only records with a row that is initially pending invoke the relay.
	streamFilter = `{"eventName":["INSERT"],"dynamodb":{"NewImage":{"relay":{"S":["1"]}}}}`
	// streamStart begins with everything that the stream still has: LATEST would miss writes while a mapping is
	// created.
	streamStart = "TRIM_HORIZON"
	// streamMaxAge and the retries end the repetitions of a batch, which hold up its shard. By then the tick has long
	// published its wakeups.
	streamMaxAge = time.Hour
	// tickRate is how often the tick is invoked, tickTimeout how long an invocation may take: it is over when the next
	// begins.
	tickRate    = "rate(1 minute)"
	tickTimeout = 55 * time.Second
)

// The most wakeups in one invocation are SQS's own maximum without a batching window, which would delay wakeups. The
// numbers of both mappings are those of the local ones.
func TestMappings_AreTheLocalOnes(t *testing.T) {
	t.Parallel()
	template := evaluate(t, map[string]string{"FifoQueue": "orders", "BridgeConcurrency": "9"})
	report := []any{batchItemFailures}
	scaling := map[string]any{"MaximumConcurrency": "9"}
	wakeups := func(queue string) map[string]any {
		return map[string]any{
			"Queue": queue, "BatchSize": fmt.Sprint(eventsource.DefaultBatchSize), "FunctionResponseTypes": report, "ScalingConfig": scaling,
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
			"Stream": "${Table.StreamArn}", "StartingPosition": streamStart, "BatchSize": eventsource.DefaultStreamBatchSize,
			"BisectBatchOnFunctionError": true, "MaximumRetryAttempts": eventsource.DefaultMaxRetries,
			"MaximumRecordAgeInSeconds": int(streamMaxAge / time.Second), "FunctionResponseTypes": report,
			"FilterCriteria":    map[string]any{"Filters": []any{map[string]any{"Pattern": streamFilter}}},
			"DestinationConfig": map[string]any{"OnFailure": map[string]any{"Type": "SQS", "Destination": "${RelayFailures.Arn}"}},
		},
	}}))
	tick := template.Resources["Tick"].Properties
	schedule := template.Resources["TickEveryMinute"].Properties
	equal(t, "rate", textAt(schedule, "ScheduleExpression"), tickRate)
	equal(t, "window", textAt(schedule, "FlexibleTimeWindow", "Mode"), "OFF")
	equal(t, "target", []string{textAt(schedule, "Target", "Arn"), textAt(schedule, "Target", "RoleArn")}, []string{"${Tick.Arn}:live", "${TickScheduleRole.Arn}"})
	equal(t, "environments reserved", tick["ReservedConcurrentExecutions"], any("2"))
	none := evaluate(t, map[string]string{"TickConcurrency": "0"}).Resources["Tick"].Properties
	equal(t, "environments reserved", none["ReservedConcurrentExecutions"], nil)
	equal(t, "timeout of the tick", tick["Timeout"], any(int(tickTimeout/time.Second)))
	for _, place := range []any{at(tick, "EventInvokeConfig"), at(schedule, "Target", "RetryPolicy")} {
		equal(t, "repetitions", place, any(map[string]any{"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}))
	}
	equal(t, "dead letters", textAt(tick, "DeadLetterQueue", "TargetArn"), "${TickDeadLetters.Arn}")
	equal(t, "dead letters of the schedule", textAt(schedule, "Target", "DeadLetterConfig", "Arn"), "${TickDeadLetters.Arn}")
}

func TestMappings_FilterIsAboutWhatTheStoreWrites(t *testing.T) {
	t.Parallel()
	var filter, want any
	if err := json.Unmarshal([]byte(streamFilter), &filter); err != nil {
		t.Fatal(err)
	}
	image := strings.NewReplacer("NAME", dynamostore.RelayAttribute, "VALUE", dynamostore.RelayValue).Replace(
		`{"eventName": ["INSERT"], "dynamodb": {"NewImage": {"NAME": {"S": ["VALUE"]}}}}`)
	if err := json.Unmarshal([]byte(image), &want); err != nil {
		t.Fatal(err)
	}
	equal(t, "filter", filter, want)
}
