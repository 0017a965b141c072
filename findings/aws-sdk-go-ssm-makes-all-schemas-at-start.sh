#!/usr/bin/env bash
# aws-sdk-go-v2/service/ssm 1.79.3 and 1.80.0, built with Go 1.26.8.
# Believed: a client of the SDK that is imported and never called costs a process nothing at its start, and a minor version keeps it so.
# Seen: since 1.80.0 the package makes the schemas of all its operations while the program starts, used or not: thousands of allocations and
# more than a megabyte in every process, about a millisecond of a small Lambda function's cold start.
# Output: 1.79.3: no schemas / 1.80.0: schemas, thousands of allocations, over a megabyte
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
cat >main.go <<'GO'
package main

import _ "github.com/aws/aws-sdk-go-v2/service/ssm"

func main() {}
GO
for version in 1.79.3 1.80.0; do
  printf 'module start\n\ngo 1.25\n' >go.mod
  go get "github.com/aws/aws-sdk-go-v2/service/ssm@v$version" >get.log 2>&1 || { cat get.log; exit 1; }
  go build -o start .
  # init PACKAGE @T ms, T ms clock, N bytes, N allocs
  GODEBUG=inittrace=1 ./start 2>&1 | awk -v version="$version" '
    $2 ~ /service\/ssm\/schemas$/ { bytes = $8; allocations = $10 }
    END {
      if (!allocations) print version ": no schemas"
      else if (allocations > 2000 && bytes > 1000000) print version ": schemas, thousands of allocations, over a megabyte"
      else print version ": " allocations " allocations, " bytes " bytes"
    }'
done >seen
want='1.79.3: no schemas
1.80.0: schemas, thousands of allocations, over a megabyte'
diff <(echo "$want") seen
echo "as described"
