"""Says a translated template in a way in which local AWS can update a stack. Usage: local.py TEMPLATE [NAME=VALUE...]

- Conditions are decided by the parameters. Where one changes, local AWS asks for an attribute of a resource that goes away also in the
  part of an Fn::If that no longer counts.
- An alias's attribute AliasArn is said as its Ref, which is the same. Local AWS knows that one alone.
- Aliases point to $LATEST, and an output for each says where to move it: "function alias version". Local AWS can make an alias and cannot
  change one."""

import json
import sys

path, *given = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    template = json.load(file)
parameters = {name: p["Default"] for name, p in template["Parameters"].items() if "Default" in p}
parameters.update(pair.split("=", 1) for pair in given)
conditions = template.pop("Conditions", {})
JOIN = {"Fn::And": all, "Fn::Or": any, "Fn::Not": lambda truths: not next(truths)}


def holds(condition):
    """Decides a condition, by name or as it is defined."""
    if isinstance(condition, str):
        return holds(conditions[condition])
    [(function, argument)] = condition.items()
    if function == "Condition":
        return holds(argument)
    if function == "Fn::Equals":
        left, right = (str(parameters[a["Ref"]] if isinstance(a, dict) else a) for a in argument)
        return left == right
    return JOIN[function](map(holds, argument))


def decided(value):
    """Takes the part of each Fn::If that counts."""
    if isinstance(value, list):
        return [decided(v) for v in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Fn::If"}:
        condition, then, otherwise = value["Fn::If"]
        return decided(then if holds(condition) else otherwise)
    if set(value) == {"Fn::GetAtt"} and value["Fn::GetAtt"][1] == "AliasArn":
        return {"Ref": value["Fn::GetAtt"][0]}
    return {k: decided(v) for k, v in value.items()}


for section in ("Resources", "Outputs"):
    kept = {name: part for name, part in template[section].items() if "Condition" not in part or holds(part["Condition"])}
    template[section] = {name: {k: decided(v) for k, v in part.items() if k != "Condition"} for name, part in kept.items()}
for name, part in template["Resources"].items():
    if part["Type"] == "AWS::Lambda::Alias":
        alias = part["Properties"]
        template["Outputs"]["Local" + name] = {"Value": {"Fn::Join": [" ", [alias["FunctionName"], alias["Name"], alias["FunctionVersion"]]]}}
        alias["FunctionVersion"] = "$LATEST"
with open(path, "w", encoding="utf-8") as file:
    json.dump(template, file, indent=1)
