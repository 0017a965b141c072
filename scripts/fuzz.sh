#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME. A crash is kept under its package's testdata/fuzz and is a test from then on.
# Which parser has which target is held by a test in internal/projecttest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=0
for package in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do
  targets=$(go test -short -list '^Fuzz' "$package" | grep '^Fuzz' || true)
  if [ -z "$targets" ]; then
    echo "fuzz: $package has no fuzz target that is built here" >&2
    exit 1
  fi
  for target in $targets; do
    echo "fuzz: $target"
    go test -short -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 20x "$package"
    count=$((count + 1))
  done
done
echo "fuzz: $count targets"
