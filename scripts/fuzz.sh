#!/usr/bin/env bash
# Runs each fuzz target for FUZZTIME. A crash is kept under its package's testdata/fuzz and is a test from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for package in ./core . ./sqstransport; do
  targets=$(go test -short -list '^Fuzz' "$package" | grep '^Fuzz' || true)
  if [ -z "$targets" ]; then
    echo "fuzz: $package has no fuzz target" >&2
    exit 1
  fi
  for target in $targets; do
    go test -short -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 20x "$package"
  done
done
