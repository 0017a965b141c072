"""policies.py TEMPLATE...: lints every IAM policy of translated templates with parliament, those of their outputs, too.
policies.py --self-test: shows that a wrong action is found wherever a template can have a policy.

An action that does not exist, a resource that its action never has, and a key of a condition that no service knows are findings: IAM takes
such a policy, and it allows nothing. What only a deployment knows becomes a name of its form. Of a condition both
outcomes are linted: everything that depends on one is there, and then nothing of it.
"""

import json
import re
import sys
import warnings

warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
import parliament  # noqa: E402

PLACE = "us-east-1:123456789012"
ARNS = {
    "AWS::CloudWatch::Dashboard": "arn:aws:cloudwatch::123456789012:dashboard/some",
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{PLACE}:table/some",
    "AWS::Lambda::Function": f"arn:aws:lambda:{PLACE}:function:some",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{PLACE}:log-group:some:*",
    "AWS::SNS::Topic": f"arn:aws:sns:{PLACE}:some",
    "AWS::SQS::Queue": f"arn:aws:sqs:{PLACE}:some",
}
SECRETS = f"arn:aws:secretsmanager:{PLACE}:secret:some,arn:aws:ssm:{PLACE}:parameter/some"
PSEUDO = {
    "AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "123456789012", "AWS::StackName": "some",
    "AWS::URLSuffix": "amazonaws.com",
}
NOTHING = {"Ref": "AWS::NoValue"}


class Template:
    def __init__(self, content, holds):
        self.content, self.holds = content, holds

    def named(self, name, attribute=None):
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.content.get("Parameters", {}):
            if name == "ExistingTable":
                return ARNS["AWS::DynamoDB::Table"] + "/stream/2026"
            if name == "EventBus":
                return f"arn:aws:events:{PLACE}:event-bus/some"
            return SECRETS if name.endswith("Secrets") else f"arn:aws:kms:{PLACE}:key/some"
        arn = ARNS.get(self.content["Resources"][name]["Type"], "some")
        return arn + "/stream/2026" if attribute == "StreamArn" else arn

    def text(self, template, names):
        def one(match):
            name, _, attribute = match.group(1).partition(".")
            return self.value(names[name]) if name in names else self.named(name, attribute)
        return re.sub(r"\$\{([^!}]+)\}", one, template)

    def value(self, value):
        if isinstance(value, list):
            return [one for one in map(self.value, value) if one is not None]
        if value == NOTHING:
            return None
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name == "Ref":
                return self.named(argument)
            if name == "Fn::GetAtt":
                return self.named(*(argument.split(".") if isinstance(argument, str) else argument))
            if name == "Fn::Sub":
                return self.text(*argument) if isinstance(argument, list) else self.text(argument, {})
            if name == "Fn::If":  # what there may be at most, or at least
                there, otherwise = argument[1:]
                if there in (NOTHING, ""):
                    there, otherwise = otherwise, there
                return self.value(there if self.holds else otherwise)
            if name == "Fn::Split":
                return self.value(argument[1]).split(argument[0])
            if name == "Fn::Select":
                return self.value(argument[1])[int(argument[0])]
            if name == "Fn::Join":
                return argument[0].join(self.value(argument[1]))
            if name == "Fn::FindInMap":
                return "some"
            if name.startswith("Fn::"):
                raise ValueError(f"{name} within a policy: policies.py does not know what it becomes")
        values = {name: self.value(inner) for name, inner in value.items()}
        return {name: inner for name, inner in values.items() if inner is not None}

    def policies(self):
        """Yields a place and a document, None for one that is not there, of each policy that says what is allowed: trust policies
        say who."""
        for place, document in documents(self.content["Resources"]):
            yield place, self.value(document)
        for name, output in self.content.get("Outputs", {}).items():
            text = self.value(output["Value"])
            if isinstance(text, str) and '"Statement"' in text:
                yield name, json.loads(text)


def documents(value, place=""):
    """Yields the place and the text of every policy document at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "PolicyDocument":
                yield place, inner
            else:
                yield from documents(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from documents(inner, f"{place}[{position}]")


def lint(content):
    """Returns the places of the policies of a template, and what is wrong."""
    places, there, wrong = set(), set(), []
    for holds in (True, False):
        for place, document in Template(content, holds).policies():
            places.add(place)
            if not document or not document.get("Statement"):
                continue
            there.add(place)
            document.setdefault("Version", "2012-10-17")  # SAM leaves it out of the policy of a schedule that it makes
            for finding in parliament.analyze_policy_string(json.dumps(document)).findings:
                wrong.append(f"{place}: {finding.issue}: {finding.detail} {finding.location}")
    wrong.extend(f"{place}: nothing of it was linted" for place in sorted(places - there))
    return places, list(dict.fromkeys(wrong))


def self_test():
    """Puts a wrong action at each place where a template can have a policy."""
    def document(action, **more):
        return {"Statement": [{"Effect": "Allow", "Action": [action], "Resource": {"Fn::GetAtt": ["Table", "Arn"]}} | more]}

    def template(kind, properties):
        return {"Resources": {"Table": {"Type": "AWS::DynamoDB::Table"}, "Some": {"Type": kind, "Properties": properties}}}

    def role(policy):
        return template("AWS::IAM::Role", {"Policies": [policy]})

    right, bad = document("dynamodb:GetItem"), document("dynamodb:BatchGetItems")
    places = {
        "a role": lambda d: role({"PolicyName": "p", "PolicyDocument": d}),
        "a role, by a condition": lambda d: role({"Fn::If": ["C", {"PolicyName": "p", "PolicyDocument": d}, NOTHING]}),
        "a document by a condition": lambda d: role({"PolicyName": "p", "PolicyDocument": {"Fn::If": ["C", right, d]}}),
        "a managed policy": lambda d: template("AWS::IAM::ManagedPolicy", {"PolicyDocument": d}),
        "a policy": lambda d: template("AWS::IAM::Policy", {"PolicyDocument": d}),
        "a policy of a role": lambda d: template("AWS::IAM::RolePolicy", {"PolicyDocument": d}),
    }
    failed = []
    for name, made in places.items():
        if lint(made(right))[1]:
            failed.append(f"{name}: a finding in what is right: {lint(made(right))[1]}")
        if not lint(made(bad))[1]:
            failed.append(f"{name}: a wrong action is not found")
    queue = template("AWS::SQS::QueuePolicy", {"PolicyDocument": document("sqs:SendMessages", Principal={"AWS": "*"})})
    if not lint(queue)[1]:
        failed.append("the policy of a queue: a wrong action is not found")
    if not lint(role({"PolicyName": "p", "PolicyDocument": {"Fn::If": ["C", NOTHING, NOTHING]}}))[1]:
        failed.append("a document of which nothing is seen passes")
    print("\n".join(failed) or "a wrong action is found at every place")
    return 1 if failed else 0


def main(paths):
    if paths == ["--self-test"]:
        return self_test()
    seen, wrong = 0, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            places, found = lint(json.load(file))
        seen += len(places)
        wrong.extend(f"{path}, {fault}" for fault in found)
    if not seen:
        wrong.append("there is no policy")
    print("\n".join(wrong) or f"{seen} policies, no finding")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
