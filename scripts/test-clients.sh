#!/usr/bin/env bash
# Usage: test-clients.sh [demo]
#
# Types, tests and packages of the clients in Python and TypeScript, each against the real server. With demo: their workers and one in Go
# complete 2,000 runs on one file while each process is killed in turn (examples/webhooks/cmd/demo/polyglot). Tools in Python are installed
# once a machine, in the user's cache folder, from scripts/clients/requirements.lock; those of TypeScript stand in clients/typescript/node_modules.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source localstack/common.sh
source localstack/versions.sh
source localstack/prepare.sh
source scripts/environment.sh
say() { printf 'clients: %s\n' "$*" >&2; }

PYTHON=$(find_python)
[ -n "$PYTHON" ] || die "Python $PYTHON_VERSION with venv is missing: install it, or set RUNLANE_PYTHON to one"
for command in node npm; do
  command -v "$command" >/dev/null || die "$command is missing: install Node.js 20 or newer"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RUNLANE_ENV RUNLANE_TABLE RUNLANE_KEYS RUNLANE_LANE RUNLANE_URL RUNLANE_TOKEN
go -C cmd/runlane build -o "$work/runlane" .
export RUNLANE_BIN=$work/runlane

cd clients/typescript
exec 7>"../.lock" # two targets of one checkout take turns
flock 7
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --loglevel=error >&2
npx --no-install tsc
flock -u 7
cd ../..

if [ "${1:-}" = demo ]; then
  go -C examples/webhooks/cmd/demo build -o "$work/polyglot" ./polyglot
  "$work/polyglot" -runlane "$RUNLANE_BIN" -python "$PYTHON"
  exit
fi

environment clients scripts/clients/requirements.lock "60 MB"
python=$ENVIRONMENT/venv/bin/python
cp -r clients/python "$work/python"
cd "$work/python"
"$python" -m mypy --strict src tests example
PYTHONPATH=src "$python" -m unittest discover -s tests
"$python" -m build --no-isolation --outdir "$work/dist" . >"$work/log" || { cat "$work/log" >&2; die "the package for Python is not built"; }
cd - >/dev/null

cd clients/typescript
node --test test/
npm pack --ignore-scripts --pack-destination "$work/dist" >/dev/null 2>&1
ls "$work/dist"
