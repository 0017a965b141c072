#!/usr/bin/env bash
# github.com/adhocore/gronx v1.20.4, robfig/cron/v3 v3.0.1 beside it; Europe/Berlin, 25 October 2026, when 02:00-03:00 comes twice.
# Believed: "every half hour" goes on every half hour through the repeated hour, as wildcard schedules do in cron and in robfig/cron.
# Seen: NextTickAfter goes from 01:30 summer time to the second 02:00. The first pass of the hour has no run: 90 minutes between two
# runs of a half-hourly schedule. A daily time within the hour runs in the second pass, an hour later than elsewhere.
# Output (UTC): robfig 23:30 00:00 00:30 01:00 01:30 / gronx 23:30 01:00 01:30 02:00 02:30 / gronx daily 02:30 is 01:30
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'M'
module finding

go 1.24

require (
	github.com/adhocore/gronx v1.20.4
	github.com/robfig/cron/v3 v3.0.1
)
M
cat >main.go <<'G'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/adhocore/gronx"
	"github.com/robfig/cron/v3"
)

func main() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	start := time.Date(2026, 10, 24, 23, 20, 0, 0, time.UTC).In(berlin)
	schedule, err := cron.ParseStandard("*/30 * * * *")
	if err != nil {
		panic(err)
	}
	print := func(name string, next func(time.Time) time.Time) {
		fmt.Print(name)
		for i, at := 0, start; i < 5; i++ {
			at = next(at)
			fmt.Print(at.UTC().Format(" 15:04"))
		}
		fmt.Println()
	}
	gronxNext := func(expression string) func(time.Time) time.Time {
		return func(at time.Time) time.Time {
			next, err := gronx.NextTickAfter(expression, at, false)
			if err != nil {
				panic(err)
			}
			return next
		}
	}
	print("robfig", schedule.Next)
	print("gronx", gronxNext("*/30 * * * *"))
	fmt.Println("gronx daily 02:30 is", gronxNext("30 2 * * *")(start).UTC().Format("15:04"))
}
G
go mod tidy >/dev/null 2>&1
got=$(go run .)
want='robfig 23:30 00:00 00:30 01:00 01:30
gronx 23:30 01:00 01:30 02:00 02:30
gronx daily 02:30 is 01:30'
diff <(echo "$want") <(echo "$got")
echo "as described"
