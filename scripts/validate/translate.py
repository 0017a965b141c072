"""Writes the template as CloudFormation gets it from SAM, for parameters given as NAME=VALUE: cfn-lint sees inside functions and
their events only then. Usage: translate.py TEMPLATE OUTPUT [NAME=VALUE...] [-- NAME=VALUE...]...

With several sets of parameters the output is a list of templates. A set that has =FILE is of that template instead."""

import json
import logging
import sys

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

logging.disable(logging.WARNING)  # the translator warns of a feature toggle that only the service has
source, target, *given = sys.argv[1:]


def translate(pairs):
    path = next((pair[1:] for pair in pairs if pair.startswith("=")), source)
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())  # each time: the translator changes it
    # Packaging replaces the folder by an object, and the translator takes nothing else.
    for part in [template.get("Globals", {}).get("Function", {}), *(r.get("Properties") or {} for r in template["Resources"].values())]:
        code = part.get("CodeUri")
        if isinstance(code, str) and not code.startswith("s3://"):
            part["CodeUri"] = "s3://bucket/key"
    # The service has every value as text.
    parameters = {name: str(p["Default"]) for name, p in template.get("Parameters", {}).items() if "Default" in p}
    parameters.update(pair.split("=", 1) for pair in pairs if not pair.startswith("="))
    translator = Translator(managed_policy_map={}, sam_parser=Parser(), boto_session=boto3.Session(region_name="us-east-1"))
    return translator.translate(sam_template=template, parameter_values=parameters)


sets = [[]]
for argument in given:
    if argument == "--":
        sets.append([])
    else:
        sets[-1].append(argument)
translated = [translate(pairs) for pairs in sets]
with open(target, "w", encoding="utf-8") as file:
    json.dump(translated if len(sets) > 1 else translated[0], file, indent=1)
