#!/usr/bin/env bash
# APScheduler 3.11.3, CronTrigger.from_crontab ("from a standard crontab expression").
# Believed: the five fields mean what crontab(5) says: 0 is Sunday, and a day of the month and a day of the week are alternatives.
# Seen: 0 is Monday, so 1-5 is Tuesday to Saturday; 7 is refused; both day fields together have to match ("Friday the 13th").
# Output: 0 is Mon / 1-5 Tue Wed Thu Fri Sat / 13 or Friday: 2026-02-13 2026-03-13 2026-11-13 (with the name; 5 is Saturday) / 7 is refused
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check apscheduler==3.11.3
cat >days.py <<'P'
from datetime import datetime, timezone

from apscheduler.triggers.cron import CronTrigger


def fires(expression, count):
    trigger, last, found = CronTrigger.from_crontab(expression, timezone=timezone.utc), None, []
    for _ in range(count):
        last = trigger.get_next_fire_time(last, last or datetime(2026, 1, 5, tzinfo=timezone.utc))
        found.append(last)
    return found


print("0 is", fires("0 0 * * 0", 1)[0].strftime("%a"))
print("1-5", *[at.strftime("%a") for at in fires("0 0 * * 1-5", 5)])
print("13 or Friday:", *[at.date() for at in fires("0 0 13 * fri", 3)])
try:
    fires("0 0 * * 7", 1)
except ValueError:
    print("7 is refused")
P
want='0 is Mon
1-5 Tue Wed Thu Fri Sat
13 or Friday: 2026-02-13 2026-03-13 2026-11-13
7 is refused'
diff <(echo "$want") <(venv/bin/python days.py)
echo "as described"
