#!/usr/bin/env bash
# Usage: aws.sh ARGUMENT...
#
# Runs the AWS command line that belongs to the pinned LocalStack against AWS_ENDPOINT_URL, and nothing else. Tests give commands of
# documents to it.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$HERE/common.sh"
source "$HERE/versions.sh"
source "$HERE/prepare.sh"
say() { printf 'aws.sh: %s\n' "$*" >&2; }

[ -n "${AWS_ENDPOINT_URL:-}" ] || die "AWS_ENDPOINT_URL names no endpoint: run make local-up, then load .local/env"
PYTHON=$(find_python)
[ -n "$PYTHON" ] || die "Python $PYTHON_VERSION is missing"
prepare_cache
# As an argument, because this version reads the variable for some services only.
exec "$CACHE/venv/bin/python" -m awscli --endpoint-url "$AWS_ENDPOINT_URL" "$@"
