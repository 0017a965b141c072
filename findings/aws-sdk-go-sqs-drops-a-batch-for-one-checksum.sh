#!/usr/bin/env bash
# aws-sdk-go-v2/service/sqs v1.52.9.
# Believed: the checksum of each received or sent message is judged by itself; the good ones of a batch are returned, as Failed entries are.
# Seen: one wrong checksum makes the whole call an error with no output. ReceiveMessage loses the good messages, with their receipt
# handles: they are hidden until the visibility timeout ends and have been received once. SendMessageBatch does not tell that the queue
# took them all. Neither is tried again.
# Output: received: output false, error true / sent: output false, error true / requests 2
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'M'
module finding

go 1.24

require (
	github.com/aws/aws-sdk-go-v2 v1.47.6
	github.com/aws/aws-sdk-go-v2/service/sqs v1.52.9
)
M
cat >main.go <<'G'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func main() {
	const good, bad = "5d41402abc4b2a76b9719d911017c592", "00000000000000000000000000000000"
	body, requests := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "k", SecretAccessKey: "s"}, nil
		}),
	})
	queue, ctx := aws.String(server.URL+"/1/q"), context.Background()

	body = `{"Messages":[{"MessageId":"1","ReceiptHandle":"r","Body":"hello","MD5OfBody":"` + good + `"},
		{"MessageId":"2","ReceiptHandle":"s","Body":"hello","MD5OfBody":"` + bad + `"}]}`
	received, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: 10})
	fmt.Printf("received: output %t, error %t\n", received != nil, err != nil)

	body = `{"Failed":[],"Successful":[{"Id":"a","MessageId":"1","MD5OfMessageBody":"` + good + `"},
		{"Id":"b","MessageId":"2","MD5OfMessageBody":"` + bad + `"}]}`
	sent, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: queue, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("a"), MessageBody: aws.String("hello")}, {Id: aws.String("b"), MessageBody: aws.String("hello")},
	}})
	fmt.Printf("sent: output %t, error %t\n", sent != nil, err != nil)
	fmt.Println("requests", requests)
}
G
go mod tidy >/dev/null 2>&1
want='received: output false, error true
sent: output false, error true
requests 2'
diff <(echo "$want") <(go run .)
echo "as described"
