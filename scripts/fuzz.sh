#!/usr/bin/env bash
# Usage: fuzz.sh [INPUTS]
#        fuzz.sh --package FOLDER INPUTS
#
# Runs every fuzz target of the module with INPUTS each, 20000 unless given. A crash is printed and run by itself; it is kept under
# its package's testdata/fuzz and is a test from then on. It counts inputs and not seconds, because a time that
# is over may fail a target that found nothing: go.dev/issue/75804.
# Which parser has which target is held by a test in internal/proof/projecttest. --package takes the targets of one package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "${1:-}" = --package ]; then
  cd "$2" # it may be of a module below this one
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # One instrumented program for all targets of a package: go test itself would link one for each.
  go test -c -vet=off -fuzz . -o "$work/fuzz.test" .
  targets=$("$work/fuzz.test" -test.short -test.list '^Fuzz' | grep '^Fuzz' || true)
  if [ -z "$targets" ]; then
    echo "fuzz: $2 has no fuzz target that is built here" >&2
    exit 1
  fi
  kept=$(go env GOCACHE)/fuzz/$(go list .) # where go test keeps them
  failed=0
  for target in $targets; do
    echo "fuzz: $target"
    "$work/fuzz.test" -test.short -test.run '^$' -test.fuzz "^${target}\$" -test.fuzztime "${3}x" -test.parallel 1 \
      -test.fuzzminimizetime 20x -test.fuzzcachedir "$kept" -test.paniconexit0 -test.timeout 10m 2>&1 | tee "$work/log" && continue
    failed=1
    # A worker that dies gives no reason, and the machine may go with its files.
    input=$(sed -n 's/^ *Failing input written to //p' "$work/log")
    [ -n "$input" ] || continue
    printf 'fuzz: %s:\n' "$input"
    head -c 4096 "$input"
    printf '\nfuzz: %s by itself:\n' "$target/${input##*/}"
    "$work/fuzz.test" -test.short -test.run "^${target}\$/^${input##*/}\$" -test.timeout 10m >"$work/log" 2>&1 &&
      echo "fuzz: it passes: what it began died later, or another input killed the worker"
    head -n 40 "$work/log"
  done
  exit "$failed"
fi

# A package for each processor, with one worker: linking and starting use one processor only.
packages=$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u)
xargs -P "$(getconf _NPROCESSORS_ONLN)" -I {} bash -c 'out=$("$0" --package "$1" "$2" 2>&1); status=$?; echo "$out"; exit "$status"' \
  scripts/fuzz.sh {} "${1:-20000}" <<<"$packages"
echo "fuzz: $(wc -l <<<"$packages") packages"
