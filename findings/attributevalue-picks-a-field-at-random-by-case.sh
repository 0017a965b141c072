#!/usr/bin/env bash
# aws-sdk-go-v2/feature/dynamodb/attributevalue v1.21.18.
# Believed: an item with the attributes "status" and "STATUS", two names to DynamoDB, fills a field tagged `status` from "status".
# Seen: a field takes any spelling, and the attributes come in the random order of a map: the same item gives either value. (encoding/json
# ignores case too, but the text has an order.) A copy of an attribute under another case is enough.
# Output: both values seen
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'M'
module finding

go 1.24

require (
	github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue v1.21.18
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.73.0
)
M
cat >main.go <<'G'
package main

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func main() {
	item := map[string]types.AttributeValue{
		"status": &types.AttributeValueMemberS{Value: "exact"},
		"STATUS": &types.AttributeValueMemberS{Value: "other"},
	}
	seen := map[string]bool{}
	for range 1000 {
		var row struct {
			Status string `dynamodbav:"status"`
		}
		if err := attributevalue.UnmarshalMap(item, &row); err != nil {
			panic(err)
		}
		seen[row.Status] = true
	}
	if seen["exact"] && seen["other"] {
		fmt.Println("both values seen")
	} else {
		fmt.Println(seen)
	}
}
G
go mod tidy >/dev/null 2>&1
diff <(echo "both values seen") <(go run .)
echo "as described"
