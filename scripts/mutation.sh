#!/usr/bin/env bash
# Takes out the conditions of dynamostore and the protections one by one, on a copy, and fails for those whose removal no
# test notices. Called with local AWS already behind it: see with-local-aws.sh. ONLY=TEXT takes those whose place or text has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec go run ./internal/tools/mutation -only "${ONLY:-}"
