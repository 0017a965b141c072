"""Usage: same.py WANTED GOT

Compares two translated templates: resources, conditions and outputs. What the CDK adds is left out.
"""
import json
import sys


def plain(value):
    """One form of what CloudFormation reads alike: attributes by name, and texts of numbers and truths."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        if isinstance(value.get("Fn::GetAtt"), str):
            return {"Fn::GetAtt": value["Fn::GetAtt"].split(".", 1)}
        return {name: plain(one) for name, one in value.items() if name != "Metadata"}
    return str(value).lower() if isinstance(value, (bool, int, float)) else value


wanted, got = (json.load(open(name)) for name in sys.argv[1:])
faults = []
for section in "Resources", "Conditions", "Outputs":
    left, right = plain(wanted[section]), plain(got[section])
    for name in sorted((left.keys() | right.keys()) - {"CDKMetadata", "CDKMetadataAvailable"}):
        if left.get(name) != right.get(name):
            faults.append(f"{section}.{name}:\n  wanted {json.dumps(left.get(name))}\n  got    {json.dumps(right.get(name))}")
sys.exit("\n".join(faults) or 0)
