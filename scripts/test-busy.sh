#!/usr/bin/env bash
# Usage: test-busy.sh TIMES LOOPS
#
# `make test` TIMES times, beside LOOPS busy loops: what a slow machine with other work does to tests that wait. It stops at the first
# failure. The loops end with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

times=$1
loops=()
trap 'status=$?; trap - EXIT; [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true; exit $status' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for _ in $(seq "$2"); do
  (trap - EXIT INT TERM; while :; do :; done) &
  loops+=("$!")
done
for n in $(seq "$times"); do
  before=$SECONDS
  GOFLAGS="${GOFLAGS:-} -count=1" make test
  echo "test-busy: $n of $times passed in $((SECONDS - before)) s beside $2 busy loops"
done
