#!/usr/bin/env bash
# make demo with its console: bin/runlane serves the demo's file from the moment at which there is one, until Ctrl-C.
# LISTEN is another address than a free port of this machine. With CONSOLE=once it ends with the demo, and fails if the
# console's overview was not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly folder=.local/demo/sqlite
readonly state=$folder/state.json runs=$folder/runs.db said=$folder/console.txt

# serve waits for the environment and the file that the demo makes, and becomes their server.
serve() {
  while [ ! -s "$state" ] || [ ! -s "$runs" ]; do sleep 0.1; done
  local environment
  environment=$(sed -n 's/.*"environment": "\(.*\)".*/\1/p' "$state")
  echo "demo: for commands that the console shows: export RUNLANE_LANE=sqlite:$PWD/$runs PATH=$PWD/bin:\$PATH" >&2
  exec env -u RUNLANE_LANE bin/runlane --lane "sqlite:$runs" --env "$environment" serve --listen "${LISTEN:-127.0.0.1:0}"
}

# overview asks for the first page of the server that says where it listens.
overview() {
  local address answer end=$((SECONDS + 30))
  until [ -s "$said" ]; do
    if ! kill -0 "$server" 2>/dev/null || [ "$SECONDS" -ge "$end" ]; then return 1; fi
    sleep 0.1
  done
  address=$(sed -n 's,^demo: its console is at http://\([^/]*\).*,\1,p' "$said")
  exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
  printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' "$address" >&3
  answer=$(cat <&3)
  [[ "$answer" == HTTP/1.?\ 200* && "$answer" == *"<h1>Overview"* ]]
}

mkdir -p "$folder"
rm -f "$said"
[[ " $* " == *" -resume "* ]] || rm -f "$state" # the one of the demo before
serve > >(sed -u 's/^listening on/demo: its console is at/' | tee "$said" >&2) &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" || true' EXIT

status=0
bin/demo "$@" || status=$?
if [ "$CONSOLE" = once ]; then
  overview || { echo "demo: its console does not answer" >&2; status=1; }
elif kill -0 "$server" 2>/dev/null; then
  echo "demo: its console is still there: Ctrl-C ends it" >&2
  trap 'exit "$status"' INT TERM
  wait "$server" || true
fi
exit "$status"
