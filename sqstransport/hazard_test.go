package sqstransport_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// What SQS takes as a message group or as a deduplication id.
var sqsID = regexp.MustCompile("^[0-9A-Za-z!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]{1,128}$")

// strict refuses a request like SQS when an id is not one.
func strict(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, bool, error) {
	for _, e := range in.Entries {
		for _, id := range []*string{e.MessageGroupId, e.MessageDeduplicationId} {
			if id != nil && !sqsID.MatchString(*id) {
				return nil, true, &types.InvalidMessageContents{Message: aws.String("id " + *id)}
			}
		}
	}
	return nil, false, nil
}

// Concurrency keys and ids may be longer than SQS's own ids, and hold what these may not. Every one that this project takes is sent,
// on FIFO queues and for fairness on standard ones, and what differs stays apart.
func TestHazard22_WhateverAKeyHolds_IsSentAndKeptApart(t *testing.T) {
	t.Parallel()
	longRun := strings.Repeat("r", runlane.MaxIDBytes)
	keys := []string{
		strings.Repeat("k", runlane.MaxKeyBytes), strings.Repeat("k", runlane.MaxKeyBytes-1), strings.Repeat("ü", runlane.MaxKeyBytes/2),
		"https://example.com/orders?customer=7&x=a b", "\u4f60\u597d", "a:b", "a", "",
	}
	for _, key := range keys {
		if err := runlane.ValidateKey("concurrency key", key); err != nil {
			t.Fatal(err)
		}
	}
	for queue, options := range map[runlane.QueueName]*sqstransport.Options{"orders": nil, "mail": {Fair: true}} {
		client := newFakeSQS()
		client.onSend = strict
		var list []lane.PublishAttempt
		for i, key := range keys {
			list = append(list, lane.PublishAttempt{
				OutboxRef: lane.OutboxRef{ID: fmt.Sprintf("%s:%010d:%d", longRun, 2, i)}, Wakeup: wakeup(queue, longRun), GroupKey: key,
			})
		}
		for i, outcome := range publish(t, open(t, client, options), list) {
			if outcome.Type != lane.Published {
				t.Errorf("queue %s, key %q: %+v", queue, keys[i], outcome)
			}
		}
		groups, ids := map[string]bool{}, map[string]bool{}
		for _, in := range client.sends {
			for _, e := range in.Entries {
				groups[aws.ToString(e.MessageGroupId)], ids[aws.ToString(e.MessageDeduplicationId)] = true, true
			}
		}
		equal(t, "groups of "+string(queue), len(groups), len(keys))
		if queue == "orders" {
			equal(t, "deduplication ids", len(ids), len(keys))
		}
	}
}
