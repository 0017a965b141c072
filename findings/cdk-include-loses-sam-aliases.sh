#!/usr/bin/env bash
# aws-cdk-lib 2.275.0 (CfnInclude) with aws-sam-translator 1.115.0: an included SAM template no longer resolves a function's version or alias.
# Believed: CfnInclude changes nothing that it is not asked to change, so SAM makes the same of a template that went through it.
# Seen: `!GetAtt Greet.Version.Version` becomes {"Fn::GetAtt": "Greet.Version.Version"}, a text, and SAM resolves lists alone. The
# attribute stays, of a resource that has none of this name, and CloudFormation refuses the stack. The long form, [Greet, Version.Version],
# passes; `sam package` and `sam build` write it, so a packaged template is safe to include.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts aws-cdk-lib@2.275.0 constructs@10.8.1 >/dev/null
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check aws-sam-translator==1.115.0 pyyaml==6.0.3
for form in 'short !GetAtt Greet.Version.Version' 'long !GetAtt [Greet, Version.Version]'; do
  cat >"${form%% *}.yaml" <<END
Transform: AWS::Serverless-2016-10-31
Resources:
  Greet:
    Type: AWS::Serverless::Function
    Properties:
      {Runtime: provided.al2023, Handler: bootstrap, CodeUri: s3://bucket/key, AutoPublishAlias: live, Role: arn:aws:iam::123456789012:role/r}
Outputs:
  Version: {Value: ${form#* }}
END
done
cat >include.js <<'END'
const cdk = require("aws-cdk-lib");
const { CfnInclude } = require("aws-cdk-lib/cloudformation-include");
for (const form of ["short", "long"]) {
  const app = new cdk.App({ outdir: form, analyticsReporting: false });
  new CfnInclude(new cdk.Stack(app, "s", { synthesizer: new cdk.BootstraplessSynthesizer() }), "i", { templateFile: `${form}.yaml` });
  app.synth();
}
END
node include.js >/dev/null 2>&1
cat >translate.py <<'END'
import json, sys
import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

for path in sys.argv[1:]:
    template = yaml_parse(open(path).read())
    made = Translator({}, Parser(), boto_session=boto3.Session(region_name="us-east-1")).translate(template, {})
    print(path, json.dumps(made["Outputs"]["Version"]["Value"]))
END
wanted='short.yaml {"Fn::GetAtt": ["GreetVersionHASH", "Version"]}
short/s.template.json {"Fn::GetAtt": "Greet.Version.Version"}
long/s.template.json {"Fn::GetAtt": ["GreetVersionHASH", "Version"]}'
got=$(venv/bin/python translate.py short.yaml short/s.template.json long/s.template.json | sed -E 's/(Version)[0-9a-f]{10}/\1HASH/')
diff <(echo "$wanted") <(echo "$got")
echo "as described"
