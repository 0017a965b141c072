#!/usr/bin/env bash
# Removes the conditions of dynamostore one by one, on a copy, and fails for those that no test misses. Called with local AWS
# already behind it: see with-local-aws.sh. ONLY=TEXT takes the conditions whose place or text contains it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec go run ./internal/proof/mutation -only "${ONLY:-}"
