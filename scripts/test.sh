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

# What a package may take: it ends a test that hangs and says nothing of speed. The longest package takes four minutes on two quiet
# processors, ten on half as fast ones, and three times that beside other work.
readonly limit=45m

# Most packages wait for local AWS more than they compute: three at a time on two processors.
go test "${race[@]}" -p "$(($(getconf _NPROCESSORS_ONLN) + 1))" -timeout "$limit" ./...
# What goes through very many states, whole: under the race detector, which is five times slower, it was a part (internal/race).
[ "${#race[@]}" -eq 0 ] || go test -timeout "$limit" -run '^(TestCron_TenYears|TestModel_|TestRuntime_Memlane_UnderFaults)' . ./core
[ "${#race[@]}" -eq 0 ] || go test -timeout "$limit" ./internal/model
scripts/fuzz.sh 2000
