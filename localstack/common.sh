# shellcheck shell=bash disable=SC2034
# What up.sh and down.sh share: where the state is, how to say things, and which processes are this checkout's. Sourced.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$HERE")

# The state of one checkout. Two folders are two local AWS, side by side.
STATE=${RUNLANE_LOCAL_DIR:-$ROOT/.local}
mkdir -p "$STATE"
STATE=$(cd "$STATE" && pwd -P)

MODE_FILE=$STATE/mode           # host, tests, docker or endpoint: what was started
PID_FILE=$STATE/pid             # host: LocalStack's process; tests: LocalAWS's
LOG_FILE=$STATE/log             # its output
PROJECT_FILE=$STATE/project     # docker: the compose project
PORTS_FILE=$STATE/ports         # docker: the values that compose.yaml asks for
ENDPOINTS_FILE=$STATE/endpoints # host, tests: those of LocalStack or SQS, and of DynamoDB Local
HOST_FILES=$STATE/host-mode     # host: LocalStack's file system, temporary files and home, gone after a stop
PREVIOUS_FILE=$STATE/previous   # the endpoint of the last one that was stopped
ENV_FILE=$STATE/env             # for every program: KEY=VALUE lines

say() { printf 'local AWS: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
recorded() { cat "$1" 2>/dev/null || true; }

# A held lock belongs to the open file, so it ends with this script however that ends. Children that stay must be started with
# the descriptor closed. macOS has no flock command; a Python has the call.
lock() { # descriptor file what-for
  local python
  eval "exec $1>>\"\$2\""
  if have flock; then
    flock -n "$1" || { say "waiting for another process that $3"; flock "$1"; }
    return
  fi
  for python in "${PYTHON:-}" python3; do
    if [ -n "$python" ] && "$python" -c "import fcntl; fcntl.flock($1, fcntl.LOCK_EX)" 2>/dev/null; then return; fi
  done
}

# A recorded pid may belong to another process now. Ours is started with this state folder as its last argument.
host_running() {
  local pid
  pid=$(recorded "$PID_FILE")
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null &&
    case "$(ps -ww -o args= -p "$pid" 2>/dev/null)" in *"localstack.runtime.main $STATE" | *" LocalAWS "*" $STATE") true ;; *) false ;; esac
}

# Processes that LocalStack left behind, when it was killed: DynamoDB Local, whose agent lies in this state folder, and
# Lambda functions, whose executable does.
host_leftovers() {
  ps -axww -o pid= -o args= 2>/dev/null | while read -r pid args; do
    case "$args" in
      *"java "*"-javaagent:$HOST_FILES/"*) echo "$pid" ;;
      "$HOST_FILES/"*/bootstrap) echo "$pid" ;;
    esac
  done
}

wait_gone() { # seconds pid...: whether all are gone in time
  local rounds=$(($1 * 5)) pid alive
  shift
  while :; do
    alive=
    for pid in "$@"; do ! kill -0 "$pid" 2>/dev/null || alive=1; done
    [ -n "$alive" ] || return 0
    [ "$rounds" -gt 0 ] || return 1
    rounds=$((rounds - 1))
    sleep 0.2
  done
}

stop_host() {
  local pid left
  if host_running; then
    pid=$(recorded "$PID_FILE")
    kill -TERM "$pid" 2>/dev/null || true
    if ! wait_gone 30 "$pid"; then
      say "pid $pid did not end within 30 s and is killed"
      kill -KILL "$pid" 2>/dev/null || true
      wait_gone 5 "$pid" || say "pid $pid is still there"
    fi
  fi
  left=$(host_leftovers)
  if [ -n "$left" ]; then
    # shellcheck disable=SC2086 # one word a pid
    { kill -TERM $left 2>/dev/null || true; wait_gone 5 $left || kill -KILL $left 2>/dev/null || true; }
  fi
  rm -f "$PID_FILE" "$ENDPOINTS_FILE"
  rm -rf "$HOST_FILES"
}

# Compose comes as a plugin of docker or as a separate program.
compose() {
  local command=(docker compose)
  docker compose version >/dev/null 2>&1 || command=(docker-compose)
  # The shell's own variables would go before those of the file.
  env -u RUNLANE_LOCAL_PORT -u RUNLANE_LOCAL_DYNAMODB_PORT \
    "${command[@]}" --project-name "$(recorded "$PROJECT_FILE")" --file "$HERE/compose.yaml" --env-file "$PORTS_FILE" "$@"
}

stop_docker() {
  compose down --volumes >&2
  rm -f "$PROJECT_FILE" "$PORTS_FILE"
}
