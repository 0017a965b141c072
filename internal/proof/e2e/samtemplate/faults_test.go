package samtemplate

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTemplate_HasNoFaultThatToolsMiss(t *testing.T) {
	t.Parallel()
	for _, parameters := range []map[string]string{
		nil, withFIFO, {"BridgeTimeout": "30"}, {"BridgeTimeout": "900", "FifoQueue": "orders"},
		{"Alarms": "false", "Dashboard": "false", "Metrics": "false", "Deployment": "AllAtOnce"},
	} {
		if faults := Faults(evaluate(t, parameters)); len(faults) > 0 {
			t.Errorf("%v: %q", parameters, faults)
		}
	}
}

// Each mistake is put into the real template, and found.
func TestFaults_AreFound(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	const wakeups = "            BatchSize: !Ref BridgeBatchSize\n"
	for name, tc := range map[string]struct{ old, new, says string }{
		"visibility":             {`"60": {Seconds: 360,`, `"60": {Seconds: 359,`, "visibility timeout 359 s"},
		"batch without window":   {wakeups, "            BatchSize: 11\n", "BatchSize 11 needs a batching window"},
		"FIFO batching window":   {"            Enabled: !If [HasFifo, true, false]\n", "            MaximumBatchingWindowInSeconds: 1\n", "a FIFO queue has no batching window"},
		"destination of a queue": {wakeups, wakeups + "            DestinationConfig: {OnFailure: {Destination: x}}\n", "no failure destination"},
		"filter of a queue":      {wakeups, wakeups + "            FilterCriteria: {Filters: []}\n", "deletes the wakeups"},
		"no partial responses":   {"            FunctionResponseTypes: [ReportBatchItemFailures]\n            ScalingConfig", "            ScalingConfig", "whole batch"},
		"no redrive":             {"        deadLetterTargetArn: !GetAtt WorkDeadLetters.Arn\n        maxReceiveCount: 5\n", "", "no dead-letter queue"},
		"filter is no JSON":      {`'{"eventName":["INSERT"],`, `'{"eventName":["INSERT"]`, "is no JSON"},
		"unknown operator":       {`{"S":["1"]}`, `{"S":[{"numeric":["=",1]}]}`, `operator "numeric"`},
		"filter without a list":  {`{"S":["1"]}`, `{"S":"1"}`, "no list of values"},
		"filter of a typo":       {`"dynamodb":{"NewImage"`, `"dynamoDB":{"NewImage"`, "no part of a record"},
		"no filter":              {"            FilterCriteria:\n              Filters:\n", "            Ignored:\n              Filters:\n", "every record"},
		"short record age":       {"MaximumRecordAgeInSeconds: 3600", "MaximumRecordAgeInSeconds: 30", "is 30, want 60"},
		"no record age":          {"            MaximumRecordAgeInSeconds: 3600\n", "", "is -1, want 60"},
		"no retries":             {"            MaximumRetryAttempts: 10\n", "", "without end"},
		"no stream destination":  {"            DestinationConfig:\n              OnFailure:\n                Type", "            Ignored:\n              OnFailure:\n                Type", "goes nowhere"},
		"rate in the plural":     {"rate(1 minute)", "rate(1 minutes)", "no rate"},
		"rate of seconds":        {"rate(1 minute)", "rate(30 seconds)", "no rate"},
		"window as a truth":      {`Mode: "OFF"`, "Mode: false", "want the text OFF"},
		"schedule without name":  {"      Name: !Sub \"${AWS::StackName}-tick\"\n", "", "called alike"},
		"right too few":          {"                  - sqs:ReceiveMessage\n                Resource:\n                  - !GetAtt WorkQueue.Arn\n", "                  - sqs:ReceiveMessage\n                Resource:\n", "may receive from [FifoWorkQueue], and"},
		"right too many":         {"Queue: !GetAtt FifoWorkQueue.Arn", "Queue: !GetAtt WorkQueue.Arn", "may receive from [FifoWorkQueue WorkQueue], and"},
		"binding not its own":    {`{Fifo: !If [HasFifo, !Sub ",${FifoQueue}", ""]}]`, `{Fifo: ""}]`, "RUNLANE_BINDINGS has [WorkQueue], and its events are of [FifoWorkQueue WorkQueue]"},
		"queue without an owner": {"Queue: !GetAtt WorkQueue.Arn", "Queue: !GetAtt Table.Arn", "no queue of this template"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(string(text), tc.old) == 0 {
				t.Fatalf("the template has no %q", tc.old)
			}
			broken, err := Parse([]byte(strings.Replace(string(text), tc.old, tc.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			given := map[string]string{"WebhookSecret": "secret", "FifoQueue": "orders"}
			out, err := broken.Evaluate(given)
			if err != nil {
				t.Fatal(err)
			}
			if faults := fmt.Sprint(Faults(out)); !strings.Contains(faults, tc.says) {
				t.Errorf("found %s, want %q", faults, tc.says)
			}
		})
	}
}

// CloudFormation knows no aliases of YAML, though the tools expand them.
func TestTemplate_HasNoYAMLAliases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(templatePath)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^[^#"']*[:-] +[&*][A-Za-z]`).FindAll(text, -1); len(found) > 0 {
		t.Errorf("%q", found)
	}
}
