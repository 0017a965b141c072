#!/usr/bin/env bash
# Give this checkout a local AWS (DynamoDB with streams, SQS) on the loopback interface, with Runlane's table and queues in it.
# Usage: localstack/up.sh     then: set -a; . .local/env; set +a
#
# In this order: the endpoint named by AWS_ENDPOINT_URL; Docker; LocalStack without Docker. Running it again is harmless.
# Read: AWS_ENDPOINT_URL, AWS_REGION, RUNLANE_TABLE, RUNLANE_ENV, RUNLANE_LOCAL_QUEUES (default,webhooks), RUNLANE_LOCAL_PORT,
# RUNLANE_LOCAL_DYNAMODB_PORT, RUNLANE_LOCAL_DIR (state folder), RUNLANE_LOCAL_MODE (docker or host: try only that), RUNLANE_PYTHON.
# RUNLANE_LOCAL_MODE=tests is less, and sooner: DynamoDB Local and ElasticMQ in one process, without table and queues.
set -euo pipefail
# shellcheck source=localstack/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=localstack/versions.sh
. "$HERE/versions.sh"
# shellcheck source=localstack/prepare.sh
. "$HERE/prepare.sh"

BOOTSTRAP=$STATE/bootstrap
READY_SECONDS=${RUNLANE_LOCAL_READY_SECONDS:-120}

main() {
  have go || die "Go is missing: install it (go.dev/dl)"
  lock 9 "$STATE/lock" "starts or stops this local AWS"
  (cd "$ROOT" && go build -o "$BOOTSTRAP" ./localstack/bootstrap)

  case "$(recorded "$MODE_FILE")" in
    host | tests)
      if host_running; then
        refuse_other_endpoint
        finish_host "already running" || die "it is not ready; its log is $LOG_FILE; make local-down stops it"
        return
      fi
      say "it was stopped from outside: starting anew"
      own_endpoint >"$PREVIOUS_FILE"
      stop_host
      ;;
    docker) # compose starts what is missing
      refuse_other_endpoint
      start_docker
      return
      ;;
  esac
  rm -f "$MODE_FILE" "$ENV_FILE"
  forget_previous_endpoint

  if [ -n "${AWS_ENDPOINT_URL:-}" ]; then
    use_endpoint
  elif [ "${RUNLANE_LOCAL_MODE:-}" = tests ] && { [ -n "$(find_java)" ] || ! docker_usable; }; then
    start_tests
  elif wanted docker && docker_usable; then
    start_docker
  elif wanted host; then
    start_host
  else
    die "RUNLANE_LOCAL_MODE=$RUNLANE_LOCAL_MODE cannot be had here: start the Docker engine, or leave the variable unset"
  fi
}

wanted() {
  case "${RUNLANE_LOCAL_MODE:-}" in
    '' | "$1") true ;;
    tests) [ "$1" = docker ] ;; # without a JDK
    docker | host) false ;;
    *) die "RUNLANE_LOCAL_MODE=$RUNLANE_LOCAL_MODE: use docker, host or tests, or leave it unset" ;;
  esac
}

# Empty when a start was interrupted before its env file was written.
own_endpoint() { sed -n 's/^AWS_ENDPOINT_URL=//p' "$ENV_FILE" 2>/dev/null || true; }

# AWS_ENDPOINT_URL is often our own, from the env file. Another one would be silently ignored, so say so.
refuse_other_endpoint() {
  local own
  own=$(own_endpoint)
  if [ -n "${AWS_ENDPOINT_URL:-}" ] && [ -n "$own" ] && [ "${AWS_ENDPOINT_URL%/}" != "$own" ]; then
    die "this checkout's local AWS runs at $own, but AWS_ENDPOINT_URL is $AWS_ENDPOINT_URL: stop it (make local-down) or unset the variable"
  fi
}

# A shell that loaded the env file before the last local-down still names that endpoint. It is not another user's endpoint.
forget_previous_endpoint() {
  if [ -n "${AWS_ENDPOINT_URL:-}" ] && [ "${AWS_ENDPOINT_URL%/}" = "$(recorded "$PREVIOUS_FILE")" ]; then
    say "AWS_ENDPOINT_URL names the local AWS that was stopped last: ignored; load the env file again afterwards"
    unset AWS_ENDPOINT_URL RUNLANE_LOCAL_DYNAMODB
  fi
}

# Writes the env file last: who finds it finds everything that it names.
create() { # endpoint dynamodb-endpoint
  if [ "$(recorded "$MODE_FILE")" = tests ]; then
    write_test_environment "$@"
  else
    AWS_ENDPOINT_URL=$1 RUNLANE_LOCAL_DYNAMODB=$2 "$BOOTSTRAP" create "$ENV_FILE"
  fi
}

use_endpoint() {
  local endpoint=${AWS_ENDPOINT_URL%/} dynamodb=${RUNLANE_LOCAL_DYNAMODB:-}
  if ! "$BOOTSTRAP" wait "$endpoint" 3s; then
    die "AWS_ENDPOINT_URL names an endpoint that does not answer: start it, or unset the variable to have one started here"
  fi
  if [ -n "$dynamodb" ] && ! "$BOOTSTRAP" wait "$dynamodb" 1s; then
    say "RUNLANE_LOCAL_DYNAMODB is ignored"
    dynamodb=
  fi
  create "$endpoint" "$dynamodb"
  echo endpoint >"$MODE_FILE"
  say "using $endpoint, nothing was started"
}

# Sets PORT and DYNAMODB_PORT: as given, else free ones.
choose_ports() {
  local free
  # shellcheck disable=SC2207 # two numbers
  free=($("$BOOTSTRAP" ports 2))
  PORT=${RUNLANE_LOCAL_PORT:-${free[0]}}
  DYNAMODB_PORT=${RUNLANE_LOCAL_DYNAMODB_PORT:-${free[1]}}
}

docker_usable() {
  have docker || return 1
  if ! docker info >/dev/null 2>&1; then
    say "docker is installed, but no engine answers: going on without it"
    return 1
  fi
  docker compose version >/dev/null 2>&1 || have docker-compose || {
    say "the Docker engine runs, but Compose is missing (package docker-compose-plugin): going on without Docker"
    return 1
  }
}

start_docker() {
  if [ ! -f "$PORTS_FILE" ]; then
    choose_ports
    # A project of this folder's own name, so that two checkouts never share containers.
    printf 'runlane-%s\n' "$(printf '%s' "$STATE" | cksum | tr -d ' ')" >"$PROJECT_FILE"
    printf 'RUNLANE_LOCAL_PORT=%s\nRUNLANE_LOCAL_DYNAMODB_PORT=%s\n' "$PORT" "$DYNAMODB_PORT" >"$PORTS_FILE"
  fi
  # shellcheck source=/dev/null
  PORT=$(. "$PORTS_FILE" && echo "$RUNLANE_LOCAL_PORT") DYNAMODB_PORT=$(. "$PORTS_FILE" && echo "$RUNLANE_LOCAL_DYNAMODB_PORT")
  echo docker >"$MODE_FILE" # from here on down.sh has something to stop
  compose up --detach >&2
  "$BOOTSTRAP" wait "http://127.0.0.1:$PORT/_localstack/health" "${READY_SECONDS}s" || {
    compose logs --tail 40 >&2 || true
    die "LocalStack in Docker is not ready; make local-down removes it"
  }
  create "http://127.0.0.1:$PORT" "http://127.0.0.1:$DYNAMODB_PORT"
  say "up in Docker at http://127.0.0.1:$PORT"
}

start_host() {
  find_host_tools
  prepare_cache
  start_process launch_localstack
}

start_tests() {
  find_test_tools
  prepare_test_cache
  start_process launch_tests
}

start_process() { # launch
  local attempt
  for attempt in 1 2 3; do
    stop_host # leftovers of a start that was interrupted
    choose_ports
    "$1"
    if finish_host "up"; then return; fi
    tail -n 40 "$LOG_FILE" >&2
    stop_host
    rm -f "$MODE_FILE"
    # A port that was free a moment ago may have been taken by another process meanwhile. DynamoDB's is bound by the first request
    # only, so its loss shows when the table is created.
    if [ "$attempt" = 3 ] || [ -n "${RUNLANE_LOCAL_PORT:-}${RUNLANE_LOCAL_DYNAMODB_PORT:-}" ]; then break; fi
    say "trying again with other ports"
  done
  die "it did not start; its log is $LOG_FILE"
}

# Waits for the recorded server and prepares what is in it. Fails when it is not ready in time, or what answers is another server.
finish_host() { # what-to-say
  local edge dynamodb status
  wait_ready || return 1
  read -r edge dynamodb <"$ENDPOINTS_FILE"
  create "$edge" "$dynamodb" || {
    status=$?
    say "table and queues could not be created; the log is $LOG_FILE; make local-down stops it"
    [ "$status" != 2 ] || exit 1 # a setting is wrong
    return 1
  }
  say "$1 at $edge (DynamoDB Local at $dynamodb), log $LOG_FILE"
}

# Where LocalStack's installers look: what they find there they do not download.
link_cache() {
  local lib=$HOST_FILES/fs/var/lib/localstack/lib java
  java=$lib/java/21 # "21" is only a folder's name: DynamoDB Local 3 runs on 17
  [ "$(uname -s)" != Darwin ] || java=$java/Contents/Home
  mkdir -p "$lib/dynamodb-local" "$(dirname "$java")" "$HOST_FILES/tmp" "$HOST_FILES/home"
  ln -s "$CACHE/dynamodb-local" "$lib/dynamodb-local/2"
  ln -s "$JAVA_DIR" "$java"
}

launch_localstack() {
  local environment
  link_cache
  # A clean environment: LocalStack and the SDK inside it read many variables, and a shell's AWS settings are not its business.
  environment=(
    PATH="$PATH" LANG=C.UTF-8 HOME="$HOST_FILES/home" TMPDIR="$HOST_FILES/tmp" XDG_CACHE_HOME="$HOST_FILES/home" CONFIG_DIR="$HOST_FILES/home"
    PYTHONUNBUFFERED=1        # the log is watched for "Ready."
    PYTHONDONTWRITEBYTECODE=1 # the cache is shared, and only read
    # Dummy keys, and no search for others at the metadata address.
    AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_EC2_METADATA_DISABLED=true
    # In any container (/.dockerenv) LocalStack would take itself for its own image and ignore FILESYSTEM_ROOT.
    OVERRIDE_IN_DOCKER=0 FILESYSTEM_ROOT="$HOST_FILES/fs"
    GATEWAY_LISTEN="127.0.0.1:$PORT" LOCALSTACK_HOST="127.0.0.1:$PORT"
    # No telemetry, no certificate download, no DNS server on port 53.
    DISABLE_EVENTS=1 SKIP_SSL_CERT_DOWNLOAD=1 DNS_ADDRESS=0
    # DynamoDB Local alone, with its own streams: the older provider emulates streams with kinesis-mock, a download.
    PROVIDER_OVERRIDE_DYNAMODB=v2 PROVIDER_OVERRIDE_DYNAMODBSTREAMS=v2
    DYNAMODB_IN_MEMORY=1 DYNAMODB_LOCAL_PORT="$DYNAMODB_PORT"
    # Streams keep every change of a day in memory, deleted tables included: a test run needs more than the default of 256 MB.
    DYNAMODB_HEAP_SIZE=2g
    # Queue URLs below the endpoint itself; the other strategies need DNS names.
    SQS_ENDPOINT_STRATEGY=path
    # Functions run as local processes (executor/); the default needs Docker.
    LAMBDA_RUNTIME_EXECUTOR=local
    # Event source mappings look often enough for tests; the default is once a second.
    LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.05 LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=1
  )
  record_start host
  # A separate session, so that Ctrl-C in the terminal does not reach it. The last argument is how down.sh knows it again.
  env -i "${environment[@]}" "$CACHE/venv/bin/python" -c '
import os, sys
os.setsid()
os.execv(sys.executable, [sys.executable, "-m", "localstack.runtime.main", sys.argv[1]])' "$STATE" \
    >"$LOG_FILE" 2>&1 </dev/null 9>&- &
  echo $! >"$PID_FILE"
}

# One process for SQS and DynamoDB: two seconds. The heap is for streams, as above; what compiles best takes too long to pay in tests.
launch_tests() {
  record_start tests
  mkdir -p "$HOST_FILES/tmp"
  env -i PATH="$PATH" LANG=C.UTF-8 TMPDIR="$HOST_FILES/tmp" \
    "$JAVA_DIR/bin/java" -Xmx2g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir="$HOST_FILES/tmp" \
    -Djava.library.path="$CACHE/dynamodb-local/DynamoDBLocal_lib" -cp "$(test_class_path)" \
    LocalAWS "$PORT" "$DYNAMODB_PORT" "${AWS_REGION:-us-east-1}" "$STATE" >"$LOG_FILE" 2>&1 </dev/null 9>&- &
  echo $! >"$PID_FILE"
}

# SQS and DynamoDB are two endpoints here. ElasticMQ keeps less of a queue's definition than infra.CreateQueue wants, and tests
# make their own tables and queues.
write_test_environment() { # sqs dynamodb
  cat >"$ENV_FILE.new" <<EOF
AWS_ENDPOINT_URL=$1
AWS_ENDPOINT_URL_DYNAMODB=$2
AWS_ENDPOINT_URL_DYNAMODB_STREAMS=$2
AWS_ACCESS_KEY_ID=test
AWS_SECRET_ACCESS_KEY=test
AWS_REGION=${AWS_REGION:-us-east-1}
AWS_DEFAULT_REGION=${AWS_REGION:-us-east-1}
AWS_EC2_METADATA_DISABLED=true
RUNLANE_LOCAL_DYNAMODB=$2
EOF
  mv "$ENV_FILE.new" "$ENV_FILE"
}

record_start() { # mode
  : >"$LOG_FILE"
  printf 'http://127.0.0.1:%s http://127.0.0.1:%s\n' "$PORT" "$DYNAMODB_PORT" >"$ENDPOINTS_FILE"
  echo "$1" >"$MODE_FILE" # from here on down.sh has something to stop
}

wait_ready() {
  local pid rounds=$((READY_SECONDS * 5))
  pid=$(recorded "$PID_FILE")
  while ! grep -q '^Ready\.' "$LOG_FILE"; do
    kill -0 "$pid" 2>/dev/null || return 1
    [ "$rounds" -gt 0 ] || return 1
    rounds=$((rounds - 1))
    sleep 0.2
  done
}

main
