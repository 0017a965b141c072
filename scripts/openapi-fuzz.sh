#!/usr/bin/env bash
# Usage: openapi-fuzz.sh [CASES] [SEED]
#
# Has schemathesis call every path of the server with what its description allows and forbids, CASES (40) a path and phase: no answer is a
# fault of the server, or one that the description does not name, or does not fit its schema, and none comes without a token. What is served
# is a lane in a file with runs in every status that lasts, flows, and runs that are claimed, by internal/tools/openapifuzz. /events is left
# out: its answer goes on. An answer may take the 20 s of the parameter wait, and longer on a busy machine.
# Requests that reach nothing show nothing: of five operations three have to do what they are for, and those that did not are named.
# The last line counts; SEED (a new one each time) repeats the cases.
#
# The tool is installed once a machine, in the user's cache folder, from scripts/openapi-fuzz/requirements.lock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# How to find a Python and to lock a file is the same for local AWS.
source localstack/common.sh
source localstack/versions.sh
source localstack/prepare.sh
source scripts/environment.sh
say() { printf 'openapi-fuzz: %s\n' "$*" >&2; }

checks=(
  not_a_server_error
  status_code_conformance
  content_type_conformance
  response_schema_conformance
  response_headers_conformance
  ignored_auth
  unsupported_method
  allow_header_conformance
)

PYTHON=$(find_python)
[ -n "$PYTHON" ] || die "Python $PYTHON_VERSION with venv is missing: install it, or set RUNLANE_PYTHON to one"
environment schemathesis scripts/openapi-fuzz/requirements.lock "100 MB"

work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
go run ./internal/tools/openapifuzz "$work/runs.ndjson"
go -C cmd/runlane build -o "$work/runlane" .
unset RUNLANE_ENV RUNLANE_TABLE RUNLANE_KEYS
export RUNLANE_LANE=sqlite:$work/state.db RUNLANE_TOKEN_KEYS
RUNLANE_TOKEN_KEYS=$(head -c 32 /dev/urandom | base64)
"$work/runlane" import "$work/runs.ndjson" >/dev/null
token=$("$work/runlane" token fuzz --scopes read,payloads,trigger,work,operate --file "$work/tokens.ndjson")

exec {out}< <(exec "$work/runlane" serve --tokens "$work/tokens.ndjson" --tasks scripts/openapi-fuzz/tasks.json 2>"$work/log")
server=$!
read -r -t 30 -u "$out" line || { cat "$work/log" >&2; die "the server does not start"; }

status=0 config=$work/schemathesis.toml
go run ./internal/tools/openapifuzz "${line#listening on }" "$token" | cat scripts/openapi-fuzz/schemathesis.toml - >"$config"
cd "$work" # where the tool leaves what it remembers
"$ENVIRONMENT/venv/bin/st" --config-file "$config" run "${line#listening on }/openapi.json" \
  --header "Authorization: Bearer $token" --max-examples "${1:-40}" ${2:+--seed "$2"} --exclude-path /events --warnings off --no-color \
  --request-timeout 60 --checks "$(IFS=, && echo "${checks[*]}")" --report json --report-json-path "$work/report.json" >"$work/output" 2>&1 || status=$?
[ "$status" = 0 ] || { cat "$work/output" && grep -v level=INFO "$work/log"; } >&2 || true
"$ENVIRONMENT/venv/bin/python" - "$work/report.json" <<'END' || status=1
import json, sys

r = json.load(open(sys.argv[1]))
operations, cases = r["operations"]["tested"], r["test_cases"]["generated"]
idle = [name for name, phases in r["valid_rates"].items() if not any(phase["accepted"] for phase in phases.values())]
done = operations - len(idle)
print(f"{operations} operations, {done} of them done, {cases} cases, {r['test_cases']['with_failures']} failures; seed {r['seed']}, {r['running_time']:.0f} s")
for name in idle:
    print("  not done:", name)
sys.exit(operations < r["operations"]["selected"] or 5 * done < 3 * operations)
END
exit "$status"
