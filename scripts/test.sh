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

# Where the race detector has nothing to see: what has no goroutine, what starts programs and looks at what they did, and what measures
# or reads files. It would take three to five times the processor there. Packages that are not named have it.
readonly plain=(
  ./localstack/... ./internal/proof/crashtest ./internal/proof/lambdatest/... ./internal/proof/e2e ./internal/tools/...
  ./internal/proof/model ./internal/proof/simulation ./internal/proof/mutation/... ./internal/proof/samtemplate/...
  ./internal/proof/deployforms/... ./internal/proof/formats ./internal/proof/optionstest ./internal/proof/projecttest
  ./internal/proof/reliability ./internal/proof/conformance ./internal/awsenvironment ./internal/causes ./infra ./cli/internal/samfile
)

# Packages start in this order, the long ones first: one that starts last, alone, leaves processors idle. What is not named follows in
# the order of ./...; a name that is no package ends the test.
readonly long=(
  ./dynamostore ./internal/proof/chaos ./internal/proof/loadtest ./internal/proof/lives ./core ./memlane ./lanetest
)
apart=$(go list "${plain[@]}")
all=$(go list ./...)
others=$(grep -vxF "$apart" <<<"$all")

# Most packages wait for local AWS more than they compute: two for a processor. make check vets.
readonly packages=$((2 * $(getconf _NPROCESSORS_ONLN)))
# What fails does not keep the rest from running.
failed=0
tests() { go -C "$1" test -vet=off -p "$packages" -timeout "$limit" "${@:2}" || failed=1; }
# shellcheck disable=SC2086 # names of packages have no spaces
tests . "${race[@]}" "${long[@]}" $others
tests . "${plain[@]}"
# The command line, the demo, the worker in a container, the tools for models and the lane on SQLite are separate modules.
tests cmd/runlane ./...
tests examples/webhooks/cmd/demo ./...
tests examples/worker ./...
tests examples/killed ./...
tests mcp "${race[@]}" ./...
# SQLite is Go, and ten times slower under the race detector. What dies is a process of its own, and the runtime's goroutines are
# those of core: the lane's own are in everything else.
readonly alone='^Test(Crash|PowerLoss|Restore.*Killed|Runtime_Scenarios)'
tests sqlitelane -run "$alone" ./...
tests sqlitelane "${race[@]}" -skip "$alone" ./...
# What goes through very many states, whole: under the race detector, which is five times slower, it was a part (internal/proof/race).
if [ "${#race[@]}" -ne 0 ]; then
  tests . -run '^(TestCron_TenYears|TestModel_|TestRuntime_Memlane)' . ./core ./internal/proof/lives
fi
scripts/fuzz.sh 2000 || failed=1
exit "$failed"
