#!/usr/bin/env bash
# Usage: fuzz.sh [INPUTS]
#
# Runs every fuzz target of the module with INPUTS each, 20000 unless given. A crash is kept under its package's testdata/fuzz and is a
# test from then on. It counts inputs and not seconds, because a time that is over may fail a target that found nothing: go.dev/issue/75804.
# Which parser has which target is held by a test in internal/proof/projecttest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
corpus=$(go env GOCACHE)/fuzz

count=0
for package in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do
  # One instrumented program for all targets of a package: go test itself would link one for each.
  (cd "$package" && go test -c -fuzz . -o "$work/fuzz.test" .) # it may be of a module below this one
  targets=$(cd "$package" && "$work/fuzz.test" -test.short -test.list '^Fuzz' | grep '^Fuzz' || true)
  if [ -z "$targets" ]; then
    echo "fuzz: $package has no fuzz target that is built here" >&2
    exit 1
  fi
  kept=$corpus/$(cd "$package" && go list .) # where go test keeps them
  for target in $targets; do
    echo "fuzz: $target"
    (cd "$package" && "$work/fuzz.test" -test.short -test.run '^$' -test.fuzz "^${target}\$" -test.fuzztime "${1:-20000}x" \
      -test.fuzzminimizetime 20x -test.fuzzcachedir "$kept" -test.paniconexit0 -test.timeout 10m)
    count=$((count + 1))
  done
done
echo "fuzz: $count targets"
