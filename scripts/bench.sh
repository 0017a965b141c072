#!/usr/bin/env bash
# Usage: make bench [BENCH=quick] [BENCH_AGAINST=FILE]
#
# Measures everything that the project promises figures of, and prints one table of targets and verdicts. Every line that was measured is
# in .local/bench/latest.txt, in Go's benchmark format; the result before is kept as previous.txt. BENCH_AGAINST compares with an earlier
# file, by benchstat. Needs make build and local AWS, which make bench sees to. What the figures mean is in docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${BENCH:-full}
case $mode in
  full) repeat=5 rounds=9 starts=41 ;;
  quick) repeat=1 rounds=2 starts=11 ;;
  *) echo "bench.sh: BENCH is $mode: use quick, or leave it out" >&2; exit 2 ;;
esac
go=${GO:-go}
folder=.local/bench
mkdir -p "$folder"
[ ! -f "$folder/latest.txt" ] || mv "$folder/latest.txt" "$folder/previous.txt"
out=$folder/latest.txt

# measure TITLE COMMAND... keeps what a command prints.
measure() {
  local title=$1 began=$SECONDS
  shift
  echo "bench: $title" >&2
  "$@" >>"$out"
  echo "bench: $title took $((SECONDS - began)) s" >&2
}
# go_bench TITLE PATTERN PACKAGE FLAGS...
go_bench() {
  local title=$1 pattern=$2 package=$3
  shift 3
  measure "$title" "$go" test -run '^$' -bench "$pattern" -timeout 20m "$package" "$@"
}

{
  echo "cpus: $(getconf _NPROCESSORS_ONLN)"
  echo "mode: $mode"
  echo "commit: $(git describe --always --dirty 2>/dev/null || echo unknown)"
} >"$out"

go_bench "embedded lane" 'EmbeddedRuns|TriggerToStart|SignalToStart' ./core -count "$repeat"
go_bench "costs" 'Costs' ./internal/tools/costs -benchtime 1x
go_bench "AWS beside bare requests" 'RunBesideBareRequests' ./awslane -rounds "$rounds"
measure "lane on SQLite" "$go" -C sqlitelane test -run '^$' -bench 'Insert|Runs|Wakeup|SignalToStart' -timeout 20m . -count "$repeat"
go_bench "server" 'Overhead|Claim|OverLoopback' ./server -count "$repeat"
measure "command line" "$go" -C cmd/runlane test -run '^$' -bench 'Binary_Version' -timeout 20m . -count "$repeat"
measure "functions" "$go" run ./internal/proof/e2e/lambdatest/bench -go -rounds "$starts"
if [ "$mode" = full ]; then
  go_bench "a million kept runs" 'KeptRuns' ./core -benchtime 200x
  go_bench "growth, embedded" 'Growth' ./core -benchtime 25x
  measure "growth, SQLite" "$go" -C sqlitelane test -run '^$' -bench GrowthOfAFile -benchtime 100x -timeout 30m .
  go_bench "growth, DynamoDB" 'GrowthDynamoDB' ./dynamostore -tags proof -benchtime 1x -retained
  go_bench "precision, embedded" 'WakeupPrecision' ./core
  go_bench "precision, AWS" 'WakeupPrecision' ./awslane
fi

"$go" run ./internal/tools/benchreport "$out"
if [ -n "${BENCH_AGAINST:-}" ]; then
  "$go" tool benchstat "$BENCH_AGAINST" "$out"
fi
echo "bench: every line is in $out" >&2
