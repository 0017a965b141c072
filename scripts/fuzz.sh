#!/usr/bin/env bash
# Runs each fuzz target of the reducer for FUZZTIME. A crash is kept under core/testdata/fuzz and is a test from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=$(go test -short -list '^Fuzz' ./core | grep '^Fuzz' || true)
if [ -z "$targets" ]; then
  echo "fuzz: ./core has no fuzz target" >&2
  exit 1
fi
for target in $targets; do
  go test -short -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-20s}" -fuzzminimizetime 20x ./core
done
