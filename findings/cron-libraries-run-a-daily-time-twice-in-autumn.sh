#!/usr/bin/env bash
# croniter 7.0.0, APScheduler 3.11.3, cronsim 2.8 (Python); robfig/cron/v3 v3.0.1 (Go). Europe/Berlin, 25 October 2026.
# Believed: a daily 02:30 runs once on the day whose 02:30 comes twice, as in Debian's cron, which these libraries are modelled on.
# Seen: croniter, APScheduler and robfig/cron run it twice, an hour apart; cronsim once. robfig's page speaks of the hour that is left out
# in spring alone.
# Output (UTC): croniter 00:30 01:30 / apscheduler 00:30 01:30 / cronsim 00:30 / robfig 00:30 01:30
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0 cronsim==2.8 apscheduler==3.11.3 tzdata
cat >next.py <<'P'
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

zone = ZoneInfo("Europe/Berlin")
start, end = datetime(2026, 10, 24, 12, tzinfo=zone), datetime(2026, 10, 25, 12, tzinfo=timezone.utc)


def fires():
    trigger, last = CronTrigger.from_crontab("30 2 * * *", timezone=zone), None
    while True:
        last = trigger.get_next_fire_time(last, last or start)
        yield last


for name, times in (
    ("croniter", croniter("30 2 * * *", start, ret_type=datetime)), ("apscheduler", fires()), ("cronsim", CronSim("30 2 * * *", start)),
):
    day = [at.astimezone(timezone.utc) for at in (next(times) for _ in range(3))]
    print(name, *[at.strftime("%H:%M") for at in day if at < end])
P
cat >go.mod <<'M'
module finding

go 1.24

require github.com/robfig/cron/v3 v3.0.1
M
cat >main.go <<'G'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	schedule, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * *")
	if err != nil {
		panic(err)
	}
	fmt.Print("robfig")
	end := time.Date(2026, 10, 25, 12, 0, 0, 0, time.UTC)
	for at := schedule.Next(end.AddDate(0, 0, -1)); at.Before(end); at = schedule.Next(at) {
		fmt.Print(at.UTC().Format(" 15:04"))
	}
	fmt.Println()
}
G
go mod tidy >/dev/null 2>&1
want='croniter 00:30 01:30
apscheduler 00:30 01:30
cronsim 00:30
robfig 00:30 01:30'
got=$(venv/bin/python next.py && go run .)
diff <(echo "$want") <(echo "$got")
echo "as described"
