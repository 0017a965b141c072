#!/usr/bin/env bash
# aws-sdk-go-v2/service/dynamodb v1.73.0, smithy-go v1.28.8.
# Believed: an error with status 400, like ValidationException or AccessDeniedException, has ErrorFault() "client", so that a caller can
# tell a refused write (nothing was written) from a failed one (unknown) by the fault.
# Seen: only errors in the service's model have a fault. ValidationException, AccessDeniedException, ExpiredTokenException and
# UnrecognizedClientException, which every account meets, are "unknown", like a broken answer. The status of
# *smithyhttp.ResponseError has to decide. SQS answers with a header that names the sender, and has the fault.
# Output: ResourceNotFoundException client 400 / ValidationException unknown 400 / AccessDeniedException unknown 400 /
#         ExpiredTokenException unknown 400
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'M'
module finding

go 1.24

require (
	github.com/aws/aws-sdk-go-v2 v1.47.6
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.73.0
	github.com/aws/smithy-go v1.28.8
)
M
cat >main.go <<'G'
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func main() {
	kind := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":%q,"message":"no"}`, kind)
	}))
	defer server.Close()
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, DisableValidateResponseChecksum: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "k", SecretAccessKey: "s"}, nil
		}),
	})
	for _, kind = range []string{
		"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "com.amazon.coral.validate#ValidationException",
		"com.amazon.coral.service#AccessDeniedException", "com.amazon.coral.service#ExpiredTokenException",
	} {
		_, err := client.ListTables(context.Background(), nil)
		var api smithy.APIError
		var answer *smithyhttp.ResponseError
		if !errors.As(err, &api) || !errors.As(err, &answer) {
			panic(err)
		}
		fmt.Println(api.ErrorCode(), api.ErrorFault(), answer.HTTPStatusCode())
	}
}
G
go mod tidy >/dev/null 2>&1
got=$(go run .)
want='ResourceNotFoundException client 400
ValidationException unknown 400
AccessDeniedException unknown 400
ExpiredTokenException unknown 400'
if [ "$got" != "$want" ]; then
  printf 'changed:\n%s\n' "$got"
  exit 1
fi
echo "as described"
