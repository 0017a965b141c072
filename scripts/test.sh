#!/usr/bin/env bash
# All tests, then the fuzz targets. Called with local AWS already behind it: see with-local-aws.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The race detector needs cgo and a C compiler. Without one the tests still run; CI has to have it.
race=()
if [ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC)" >/dev/null; then
  race=(-race)
elif [ "${CI:-}" = true ]; then
  echo "test: no C compiler for the race detector: install gcc (or set CC)" >&2
  exit 1
else
  echo "test: no C compiler, so without the race detector" >&2
fi

# Most packages wait for local AWS more than they compute: three at a time on two processors.
go test "${race[@]}" -p "$(($(getconf _NPROCESSORS_ONLN) + 1))" -timeout 9m ./...
# What goes through very many states, whole: under the race detector, which is five times slower, it was a part (internal/race).
[ "${#race[@]}" -eq 0 ] || go test -timeout 9m -run '^(TestCron_TenYears|TestModel_|TestRuntime_Memlane_UnderFaults)' . ./core
[ "${#race[@]}" -eq 0 ] || go test -timeout 9m ./internal/model
scripts/fuzz.sh 2000
