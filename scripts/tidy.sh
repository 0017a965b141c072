#!/usr/bin/env bash
# Usage: tidy.sh [--check]
#
# go mod tidy for the modules of this repository that are released, and for the demos'. That of the command line has no replacements, so that
# `go install` takes it, and gets those of its go.work for as long as this takes. --check changes nothing, and fails where
# something would be changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check=${1:+-diff}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for module in . console/browser mcp otel spec sqlitelane examples/webhooks/cmd/demo examples/worker examples/killed examples/invoices/cmd/invoices; do
  GOWORK=off go -C "$module" mod tidy ${check:+"$check"}
done

if [ -z "$check" ]; then # a collector and other engines are no downloads of make check
  for module in otel/proof bench/peers; do GOWORK=off go -C "$module" mod tidy; done
fi

cd cmd/runlane
cp go.mod "$work/go.mod"
touch go.sum && cp go.sum "$work/go.sum"
main=github.com/runlane/runlane-go
go mod edit -replace "$main=../.." -replace "$main/mcp=../../mcp" -replace "$main/sqlitelane=../../sqlitelane" "$work/go.mod"
GOWORK=off go mod tidy -modfile "$work/go.mod" ${check:+"$check"}
if [ -z "$check" ]; then
  go mod edit -dropreplace "$main" -dropreplace "$main/mcp" -dropreplace "$main/sqlitelane" "$work/go.mod"
  cp "$work/go.mod" go.mod
  cp "$work/go.sum" go.sum
fi
