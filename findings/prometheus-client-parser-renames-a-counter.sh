#!/usr/bin/env bash
# prometheus_client 0.26.0 (Python), text_string_to_metric_families.
# Believed: a parser of the text format returns samples under the names in the text, and the family under the name of its TYPE line.
# Seen: a counter without "_total" comes back with it, a name that was never exposed; a counter with it loses it in the family's name, so
# a look-up of the family by the exposed name finds nothing. The format that is parsed has no rule on "_total".
# Output: runs -> family runs, sample runs_total / runs_total -> family runs, sample runs_total / gauge depth -> family depth, sample depth
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target lib prometheus_client==0.26.0
cat >parse.py <<'P'
from prometheus_client.parser import text_string_to_metric_families

for kind, name in ("counter", "runs"), ("counter", "runs_total"), ("gauge", "depth"):
    for family in text_string_to_metric_families(f"# TYPE {name} {kind}\n{name} 1\n"):
        print(f"{kind} {name} -> family {family.name}, sample {family.samples[0].name}")
P
want='counter runs -> family runs, sample runs_total
counter runs_total -> family runs, sample runs_total
gauge depth -> family depth, sample depth'
diff <(echo "$want") <(PYTHONPATH=lib python3 parse.py)
echo "as described"
