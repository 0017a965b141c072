#!/usr/bin/env bash
# The product's own tests: did this change break the product? Called with local AWS behind it: see with-local-aws.sh.
# What looks for rare faults is in proof.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly limit=60m # ends a test that hangs; the longest package takes three minutes
failed=0
tests() { go -C "$1" test -vet=off -timeout "$limit" "${@:2}" || failed=1; } # make check vets

# Folders of proofs and tools are not the product; these few hold what every change may break.
readonly also=(
  ./internal/proof/{awstest,formats,hostiletest,projecttest,scenarios} ./internal/tools/clienttypes
)
# Where goroutines are the subject.
readonly concurrent=(./core/... ./memlane ./server)
apart=$(go list ./internal/proof/... ./internal/tools/... ./localstack/... ./dynamostore "${concurrent[@]}")
others=$(go list ./... | grep -vxF "$apart")

# dynamostore waits for DynamoDB Local most of the time: beside everything else. Its output comes at the end.
output=$(mktemp)
go test -vet=off -timeout "$limit" ./dynamostore >"$output" 2>&1 &
dynamostore=$!
trap 'kill "$dynamostore" 2>/dev/null || true; rm -f "$output"' EXIT

# shellcheck disable=SC2086 # names of packages have no spaces
tests . $others "${also[@]}"
tests . -short ./internal/proof/lives # half a minute of the random oracle
tests . -run 'TestDocuments_AreTrue/^(README.md|docs_tutorial.md)$' ./internal/tools/docstest
for module in mcp otel cmd/runlane examples/webhooks/cmd/demo examples/killed examples/invoices/cmd/invoices; do tests "$module" ./...; done

# SQLite is ten times slower under the race detector: what goes through very many states or runs is without it.
readonly many='^Test(Crash|PowerLoss|Restore.*Killed|Runtime_Scenarios|ListFlows_Reads|Storage_Slots)'
tests sqlitelane -run "$many" .
race=(-race)
if ! [ "$(go env CGO_ENABLED)" = 1 ] || ! command -v "$(go env CC)" >/dev/null; then
  echo "test: the race detector is left out: it needs a C compiler (gcc)" >&2
  race=()
fi
tests sqlitelane "${race[@]}" -skip "$many" ./...
tests . "${race[@]}" "${concurrent[@]}"

wait "$dynamostore" || failed=1
cat "$output"
exit "$failed"
