#!/usr/bin/env bash
# croniter 7.0.0, cronsim 2.8 (Python); cron-parser 5.10.6, croner 11.0.1 (Node). Europe/Berlin, 29 March 2026: 02:00 becomes 03:00.
# Believed: `0 */2 * * *` has no run at 02:00 that day and goes on at 04:00, since only a fixed time is moved behind the gap.
# Seen: croniter and cron-parser treat the step like a fixed time and run at 03:00, an odd hour, and again at 04:00, an hour later.
# cronsim and croner go on at 04:00.
# Output (local): croniter 03:00 04:00 06:00 / cronsim 04:00 06:00 08:00 / cron-parser 03:00 04:00 06:00 / croner 04:00 06:00 08:00
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0 cronsim==2.8 tzdata
npm install --silent --no-audit --no-fund --ignore-scripts cron-parser@5.10.6 croner@11.0.1 >/dev/null
cat >next.py <<'P'
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

start = datetime(2026, 3, 29, 0, 30, tzinfo=ZoneInfo("Europe/Berlin"))
for name, times in ("croniter", croniter("0 */2 * * *", start, ret_type=datetime)), ("cronsim", CronSim("0 */2 * * *", start)):
    print(name, *[next(times).strftime("%H:%M") for _ in range(3)])
P
cat >next.js <<'J'
const { CronExpressionParser } = require("cron-parser");
const { Cron } = require("croner");
const zone = "Europe/Berlin", start = new Date("2026-03-28T23:30:00Z");
const local = (at) => at.toLocaleTimeString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
const parser = CronExpressionParser.parse("0 */2 * * *", { currentDate: start, tz: zone });
console.log("cron-parser", ...[1, 2, 3].map(() => local(parser.next().toDate())));
console.log("croner", ...new Cron("0 */2 * * *", { timezone: zone, paused: true }).nextRuns(3, start).map(local));
J
want='croniter 03:00 04:00 06:00
cronsim 04:00 06:00 08:00
cron-parser 03:00 04:00 06:00
croner 04:00 06:00 08:00'
got=$(venv/bin/python next.py && node next.js)
diff <(echo "$want") <(echo "$got")
echo "as described"
