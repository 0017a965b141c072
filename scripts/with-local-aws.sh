#!/usr/bin/env bash
# Usage: with-local-aws.sh [--keep] COMMAND [ARGUMENT...]
#        with-local-aws.sh --running
#
# Runs COMMAND with local AWS behind it and returns COMMAND's exit status.
#
#   AWS_ENDPOINT_URL is set     that endpoint is used as it is; nothing is started or stopped. Otherwise, and with --keep, endpoints
#                               of single services (AWS_ENDPOINT_URL_DYNAMODB, …) are not COMMAND's
#   local AWS runs here already it is used and left running
#   otherwise                   it is started, and stopped again however COMMAND ends
#
# With --keep, local AWS is set up (table and queues too, also at a given endpoint) and left running.
# --running only tells, by its exit status, whether local AWS runs here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

env_file=${RUNLANE_LOCAL_DIR:-.local}/env

# answers says whether something accepts connections at the endpoint that the env file names.
answers() {
  [ -f "$env_file" ] || return 1
  local address
  address=$(sed -nE 's|^AWS_ENDPOINT_URL=https?://([^/]+).*|\1|p' "$env_file")
  [[ $address == *:* ]] || return 1
  (exec 3<>"/dev/tcp/${address%:*}/${address##*:}") 2>/dev/null
}

# load exports the env file line by line, so that no value is ever read as shell. It names dummy credentials; a profile or a
# session of the user's has no business at a local endpoint. Table and queues are at the one endpoint that the file names: another
# one for a single service would be looked at in their place.
load() {
  unset AWS_PROFILE AWS_SESSION_TOKEN "${!AWS_ENDPOINT_URL_@}"
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line =~ ^[A-Za-z_][A-Za-z0-9_]*= ]]; then export "${line?}"; fi
  done <"$env_file"
}

given=${AWS_ENDPOINT_URL:-}
keep=false
case ${1:-} in
  --running) answers && exit 0 || exit 1 ;;
  --keep) keep=true; shift ;;
esac
[ $# -gt 0 ] || { echo "usage: with-local-aws.sh [--keep] COMMAND [ARGUMENT...]" >&2; exit 2; }

if $keep; then
  localstack/up.sh
  load
  exec "$@"
fi
if [ -n "$given" ]; then
  exec "$@"
fi
if answers; then
  load
  exec "$@"
fi

# From here on this script owns local AWS. The trap comes first: a start that fails half-way is cleaned up as well.
trap 'status=$?; trap - EXIT; localstack/down.sh || { [ $status -ne 0 ] || status=1; }; exit $status' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
localstack/up.sh
load
"$@"
