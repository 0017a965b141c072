"""Plays deployments with the SAM command line's own code and no AWS, and writes what each sends to CloudFormation as the stack's
parameters. Usage: overrides.py TEMPLATE OUTPUT ARGUMENTS...

ARGUMENTS are those of one `sam deploy`, as one word. With --guided, every question is answered by its default, and a hidden one by
"secret". All deployments share one samconfig.toml, which --guided writes. A parameter that keeps its previous value is null."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
from unittest import mock

from click.testing import CliRunner
from samcli.cli.main import cli

template, output, *deployments = map(str, sys.argv[1:])
sent = []


def answer(*_, default=None, hide_input=False, **__):
    """Answers a question of --guided."""
    return "secret" if hide_input else default


def deploy(_self, _stack, _template, parameters, *_):
    """Stands for CloudFormation."""
    sent.append({p["ParameterKey"]: p.get("ParameterValue") for p in parameters})


def package(self):
    """Stands for the upload of the code."""
    shutil.copy(self.template_file, self.output_template_file)


output = os.path.abspath(output)
folder = pathlib.Path(tempfile.mkdtemp())
shutil.copy(template, folder / "template.yaml")
os.chdir(folder)
guided = "samcli.commands.deploy.guided_context."
os.environ.update(SAM_CLI_TELEMETRY="0", AWS_MAX_ATTEMPTS="1", AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none", AWS_DEFAULT_REGION="us-east-1")
try:
    with (
        mock.patch(guided + "prompt", answer),
        mock.patch(guided + "confirm", answer),
        mock.patch(guided + "manage_stack", lambda **_: "bucket"),
        mock.patch("samcli.commands.deploy.command.manage_stack", lambda **_: "bucket"),
        mock.patch(guided + "GuidedContext.prompt_image_repository", lambda *_: None),
        mock.patch("samcli.commands.package.package_context.PackageContext.run", package),
        mock.patch("samcli.commands.deploy.deploy_context.DeployContext.deploy", deploy),
    ):
        for arguments in deployments:
            result = CliRunner().invoke(cli, ["deploy", *arguments.split()])
            if result.exit_code != 0:
                sys.exit(f"sam deploy {arguments}: {result.exception!r}\n{result.output}")
finally:
    shutil.rmtree(folder)
with open(output, "w", encoding="utf-8") as file:
    json.dump(sent, file, indent=1)
