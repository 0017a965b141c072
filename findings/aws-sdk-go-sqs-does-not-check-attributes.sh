#!/usr/bin/env bash
# aws-sdk-go-v2/service/sqs v1.52.9.
# Believed: as the client compares the MD5 of a message's body, it compares MD5OfMessageAttributes too, and misses a sum that is not there.
# Seen: only a body's sum that is there is compared. A wrong sum of the attributes, and an answer without any, pass; an emulator or a
# proxy that loses attributes is not noticed.
# Output: wrong body: error true / wrong attributes: error false / no sum: error false
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
	body := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	for _, answer := range [][2]string{
		{"wrong body", `,"MD5OfMessageBody":"` + bad + `"`},
		{"wrong attributes", `,"MD5OfMessageBody":"` + good + `","MD5OfMessageAttributes":"` + bad + `"`},
		{"no sum", ""},
	} {
		body = `{"MessageId":"1"` + answer[1] + `}`
		_, err := client.SendMessage(context.Background(), &sqs.SendMessageInput{
			QueueUrl: aws.String(server.URL + "/1/q"), MessageBody: aws.String("hello"),
			MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("x")}},
		})
		fmt.Printf("%s: error %t\n", answer[0], err != nil)
	}
}
G
go mod tidy >/dev/null 2>&1
want='wrong body: error true
wrong attributes: error false
no sum: error false'
diff <(echo "$want") <(go run .)
echo "as described"
