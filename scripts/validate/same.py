"""Usage: same.py WANTED GOT [NAME=VALUE...]

Compares two translated templates: resources, conditions and outputs. What the CDK adds is left out, and it has
the values of parameters that it was given.
"""
import json
import re
import sys


def plain(value):
    """One form of what CloudFormation reads alike: texts of numbers and truths."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        if value.get("Ref") in given:
            return given[value["Ref"]]
        return {name: plain(one) for name, one in value.items() if name != "Metadata"}
    return str(value).lower() if isinstance(value, (bool, int, float)) else value


given = dict(pair.split("=", 1) for pair in sys.argv[3:])
# A version is named by a hash of its function, in which a parameter differs from its value.
wanted, got = (json.loads(re.sub(r"(Version)[0-9a-f]{10}\b", r"\1", open(name).read())) for name in sys.argv[1:3])
faults = []
for section in "Resources", "Conditions", "Outputs":
    left, right = plain(wanted[section]), plain(got[section])
    for name in sorted((left.keys() | right.keys()) - {"CDKMetadata", "CDKMetadataAvailable"}):
        if left.get(name) != right.get(name):
            faults.append(f"{section}.{name}:\n  wanted {json.dumps(left.get(name))}\n  got    {json.dumps(right.get(name))}")
sys.exit("\n".join(faults) or 0)
