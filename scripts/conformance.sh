#!/usr/bin/env bash
# Usage: conformance.sh [-only NAME] over the local AWS behind it: see with-local-aws.sh
#        conformance.sh --endpoint  over the endpoints in AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SQS
#
# A line for each storage and transport. Every suite makes its own tables and queues and removes them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "${1:-}" = --endpoint ]; then
  unset RUNLANE_LOCAL_DYNAMODB # what is tested is what was named
  exec go run ./internal/proof/conformance -endpoint
fi
if [ -z "${RUNLANE_LOCAL_DYNAMODB:-}" ]; then
  echo "conformance: this is not the local AWS of make local-up: use make conformance-endpoint" >&2
  exit 1
fi
exec go run ./internal/proof/conformance "$@"
