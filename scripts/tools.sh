#!/usr/bin/env bash
# Usage: tools.sh
#
# Makes sure, before anything else runs, that what make test needs besides Go is there: a C compiler for the race detector, and a JDK for
# local AWS (or an endpoint in AWS_ENDPOINT_URL), which npm and Maven fetch once a machine. As root on Debian it installs what is missing;
# elsewhere it says in a line what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=localstack/common.sh
. localstack/common.sh
# shellcheck source=localstack/versions.sh
. localstack/versions.sh
# shellcheck source=localstack/prepare.sh
. localstack/prepare.sh

missing=()
have go || { echo "tools: Go is missing: install it (go.dev/dl)" >&2; exit 1; }
have "$(go env CC)" || missing+=(gcc libc6-dev)
if [ -z "${AWS_ENDPOINT_URL:-}" ]; then
  [ -n "$(find_java)" ] || missing+=("openjdk-$JAVA_VERSION-jdk-headless")
  if [ ! -f "$(test_cache)/complete" ]; then
    have npm || missing+=(npm)
    have mvn || missing+=(maven)
  fi
fi
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! have apt-get; then
  echo "tools: install these, or what your system calls them: ${missing[*]}" >&2
  exit 1
fi
echo "tools: installing ${missing[*]}" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
