#!/usr/bin/env bash
# Usage: proof.sh [NAME]        runs all proofs, or the one of that name; --list names them
#
# Looks for rare faults, which make test does not wait for. One proof after the other; a failure keeps none from running; a table at
# the end. Proofs are tests in internal/proof and internal/tools, tests with the build tag proof, and make targets.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A proof: its name, its minutes on two processors, whether it has local AWS to itself, and what it runs.
readonly proofs="
faults    | 5 | aws | go test -tags proof -run 'UnderFaults|UnderMoreFaults|EachCallOnce' ./core ./dynamostore && go -C sqlitelane test -tags proof -run UnderFaults .
front     | 4 | aws | go test -tags proof -parallel 16 -run 'Front\$' ./dynamostore && make demo-front
linear    | 4 | aws | go test -tags proof -run 'Linear|TestGrowth' ./dynamostore
localstack| 8 | aws | go test ./localstack/... && go test -tags proof -run TestConformance_Endpoint ./dynamostore
lives     | 3 | aws | go test ./internal/proof/lives && go -C sqlitelane test -tags proof -run TestLives .
crash     | 5 | aws | go test ./internal/proof/crash && go -C sqlitelane test -tags proof -run 'TestCrash|TestPowerLoss' .
chaos     | 4 | aws | make chaos CHAOS=3m
load      | 4 | aws | go test -run TestLoad ./internal/proof/e2e
lambda    | 6 | aws | go test ./internal/proof/e2e/lambdatest/...
model     | 4 | no  | go -C spec test ./... && make model
fuzz      | 5 | no  | make fuzz FUZZ=2000
e2e       | 6 | aws | make e2e
tryout    | 3 | aws | make tryout
template  | 3 | aws | make build validate && go test ./internal/proof/e2e/samtemplate && go test -run TestCheck_ ./internal/proof/e2e
costs     | 3 | aws | go test ./internal/tools/costs
documents | 4 | aws | go test ./internal/tools/docstest ./internal/tools/runbook
console   | 3 | aws | make test-console && make demo CONSOLE=once
clients   | 2 | no  | make test-clients
polyglot  | 2 | no  | make demo-polyglot
openapi   | 3 | no  | make openapi-fuzz
demos     | 3 | aws | make demo-limits demo-memory demo-order demo-nightly demo-aws
worker    | 4 | aws | go -C examples/worker test ./...
otel      | 3 | aws | go -C otel/proof test ./...
outside   | 1 | no  | go -C sqlitelane test -tags proof -run TestModule_OutsideProgram .
"

rows() { grep -v '^$' <<<"$proofs"; }
only=${1:-}
if [ "$only" = --list ]; then
  rows | cut -d '|' -f 1 | tr -d ' '
  exit
fi

failed=0 ran=0 report=()
note() { report+=("$(printf '%-10s %5d s  %s' "$1" "$2" "$3")"); }
while IFS='|' read -r name _ aws command; do
  name=${name// /}
  [ -z "$only" ] || [ "$name" = "$only" ] || continue
  ran=$((ran + 1)) began=$SECONDS result=ok
  printf '\n=== %s:%s\n' "$name" "$command"
  with=()
  [ "${aws// /}" = no ] || with=(scripts/with-local-aws.sh)
  # GOFLAGS: what was proven of the same code is proven again. The time-out ends what hangs.
  GOFLAGS="${GOFLAGS:-} -count=1 -timeout=60m" "${with[@]}" bash -euo pipefail -c "$command" </dev/null || { result=FAILED failed=1; }
  note "$name" $((SECONDS - began)) "$result"
done < <(rows)
[ "$ran" -gt 0 ] || { echo "proof: there is no $only: scripts/proof.sh --list names them" >&2; exit 2; }

if [ -z "$only" ]; then # nothing is forgotten
  for folder in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./internal/proof/... ./internal/tools/... | sed 's|.*/internal/|internal/|'); do
    case "$(cat scripts/test.sh scripts/proof.sh)" in
      *"${folder##*/}"*) ;;
      *) note "${folder##*/}" 0 "FAILED: no script names $folder"; failed=1 ;;
    esac
  done
fi
printf '\n'
printf '%s\n' "${report[@]}"
exit "$failed"
