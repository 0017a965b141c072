#!/usr/bin/env bash
# Fails with the names of the files that gofmt would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  printf 'check-format: not formatted, run "make fmt":\n%s\n' "$unformatted" >&2
  exit 1
fi
