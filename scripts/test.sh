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

# Packages start in this order, the long ones first: one that starts last, alone, leaves processors idle. What is not named follows in
# the order of ./...; a name that is no package ends the test.
readonly long=(
  ./dynamostore ./internal/proof/chaos ./localstack ./internal/proof/crashtest ./internal/proof/simulation ./internal/proof/lambdatest ./examples/worker
  ./internal/proof/e2e ./internal/tools/lambdazip ./internal/proof/model ./internal/proof/loadtest ./internal/tools/costs ./internal/tools/runbook ./cmd/runlane
  ./internal/proof/lives ./core ./memlane ./internal/tools/docstest ./lanetest ./internal/proof/mutation
)

# Most packages wait for local AWS more than they compute: two for a processor.
readonly packages=$((2 * $(getconf _NPROCESSORS_ONLN)))
go test "${race[@]}" -p "$packages" -timeout "$limit" "${long[@]}" ./...
# The lane on SQLite is a separate module.
(cd sqlitelane && go test "${race[@]}" -timeout "$limit" ./...)
[ "${#race[@]}" -eq 0 ] || (cd sqlitelane && go test -timeout "$limit" -run '^TestPowerLoss_' .) # a part of it under the race detector
# What goes through very many states, whole: under the race detector, which is five times slower, it was a part (internal/proof/race).
[ "${#race[@]}" -eq 0 ] || go test -p "$packages" -timeout "$limit" \
  -run '^(TestCron_TenYears|TestModel_|TestRuntime_Memlane_UnderFaults|TestWorlds_|TestFullKey_Carries)' \
  . ./core ./internal/proof/lives ./internal/proof/model ./internal/proof/simulation
scripts/fuzz.sh 2000
