#!/usr/bin/env bash
# Stop what up.sh started for this checkout, and nothing else. Usage: localstack/down.sh
# RUNLANE_LOCAL_DIR names the state folder (default: .local in the checkout), as for up.sh.
set -euo pipefail
# shellcheck source=localstack/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

lock 9 "$STATE/lock" "starts or stops this local AWS"
# A shell that has loaded the env file keeps this endpoint; up.sh knows it again.
[ ! -f "$ENV_FILE" ] || sed -n 's/^AWS_ENDPOINT_URL=//p' "$ENV_FILE" >"$PREVIOUS_FILE"
case "$(recorded "$MODE_FILE")" in
  host | tests) stop_host; message="stopped" ;;
  docker) stop_docker; message="stopped (compose project removed)" ;;
  endpoint) rm -f "$PREVIOUS_FILE"; message="nothing to stop: the endpoint was given by AWS_ENDPOINT_URL and keeps running" ;;
  *) stop_host; message="not running" ;; # a start that was interrupted may have left processes
esac
rm -f "$MODE_FILE" "$ENV_FILE"
say "$message"
