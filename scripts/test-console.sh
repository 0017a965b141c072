#!/usr/bin/env bash
# The console in a real browser, over each lane: needs local AWS, which make test-console brings. Gets axe, which judges pages, from
# npm. PICTURES=FOLDER keeps a picture of each page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly version=4.14.1 sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
readonly axe=$PWD/.local/axe-$version.min.js

if [ ! -e "$axe" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack --silent "axe-core@$version" >/dev/null && tar xzf ./*.tgz)
  echo "$sum  $work/package/axe.min.js" | sha256sum --check --quiet
  mkdir -p .local
  mv "$work/package/axe.min.js" "$axe"
fi
if [ -n "${PICTURES:-}" ]; then
  mkdir -p "$PICTURES"
  PICTURES=$(cd "$PICTURES" && pwd)
fi
RUNLANE_AXE=$axe RUNLANE_PICTURES=${PICTURES:-} go -C console/browser test -count=1 -timeout 40m -v -run "${RUN:-.}" . ${UPDATE:+-update} |
  grep -v -E '^(=== | +--- PASS)'
