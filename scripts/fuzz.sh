#!/usr/bin/env bash
# Usage: fuzz.sh [INPUTS]
#
# Runs every fuzz target of the module with INPUTS each, 20000 unless given. A crash is kept under its package's testdata/fuzz and is a
# test from then on. It counts inputs and not seconds, because a time that is over may fail a target that found nothing: go.dev/issue/75804.
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
    go test -short -run '^$' -fuzz "^${target}\$" -fuzztime "${1:-20000}x" -fuzzminimizetime 20x "$package"
    count=$((count + 1))
  done
done
echo "fuzz: $count targets"
