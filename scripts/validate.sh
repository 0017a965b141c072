#!/usr/bin/env bash
# Usage: validate.sh [TEMPLATE]
#        validate.sh --sam ARGUMENT...
#        validate.sh --translate TEMPLATE OUTPUT [PARAMETER=VALUE...]
#        validate.sh --local COMMAND [ARGUMENT...]
#
# Checks the deployment template (template.yaml) by the tools of AWS: `sam validate`, its lint, cfn-lint over the translated template
# for several sets of parameters, parliament over its policies, checkov, and `sam build`; and the templates of projects. A warning is a
# failure. Then OpenTofu validates the Terraform module with a provider that stands for AWS's, the CDK includes a project's template,
# and the tests of package samtemplate run. With TEMPLATE, that of a project, these are left out; what checkov finds is said and fails
# nothing.
#
# --sam runs the pinned SAM command line with the given arguments, in the caller's environment. --translate writes a template as
# CloudFormation gets it from SAM, said in a way that local AWS bears. --local runs COMMAND with that SAM command line, whose `deploy` says
# the template so, and with the AWS command line of local AWS in the PATH.
#
# The tools are installed once a machine, in the user's cache folder, from scripts/validate. Everything else works without network and without credentials.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# How to find a Python and to lock a file is the same for local AWS.
source localstack/common.sh
source localstack/versions.sh
source localstack/prepare.sh
source scripts/environment.sh
say() { printf 'validate: %s\n' "$*" >&2; }

TOOLS=scripts/validate

# prepare_tools gives the SAM command line.
prepare_tools() {
  PYTHON=$(find_python)
  [ -n "$PYTHON" ] || die "Python $PYTHON_VERSION with venv is missing: install it, or set RUNLANE_PYTHON to one"
  environment sam "$TOOLS/requirements.lock" "350 MB"
  PATH=$ENVIRONMENT/venv/bin:$PATH
}

# prepare_tofu gives OpenTofu, and a provider that stands for AWS's.
prepare_tofu() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/runlane source=$PWD/$TOOLS/tofu os arch
  os=$(go env GOOS) arch=$(go env GOARCH)
  RUNLANE_TOFU=$folder/tofu-$({ go env GOVERSION && cat "$source/go.sum"; } | git hash-object --stdin)
  if [ ! -x "$RUNLANE_TOFU" ]; then
    mkdir -p "$folder"
    lock 8 "$RUNLANE_TOFU.lock" "prepares the same tool"
    if [ ! -x "$RUNLANE_TOFU" ]; then
      say "building OpenTofu as $RUNLANE_TOFU (once a machine: a few minutes)"
      go build -C "$source" -o "$RUNLANE_TOFU.part" github.com/opentofu/opentofu/cmd/tofu
      mv "$RUNLANE_TOFU.part" "$RUNLANE_TOFU"
    fi
    exec 8>&-
  fi
  go build -C "$source" -o "$work/mirror/registry.opentofu.org/hashicorp/aws/6.25.0/${os}_$arch/terraform-provider-aws_v6.25.0" ./provider
  printf 'provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' "$work/mirror" >"$work/tofu.rc"
  export RUNLANE_TOFU TF_CLI_CONFIG_FILE=$work/tofu.rc
}

prepare_tools
export SAM_CLI_TELEMETRY=0
if [ "${1:-}" = --sam ]; then
  shift
  cd "$caller"
  exec sam "$@"
fi
if [ "${1:-}" = --translate ]; then
  shift
  tools=$PWD/$TOOLS
  cd "$caller"
  python "$tools/translate.py" "$@"
  exec python "$tools/local.py" "${@:2}"
fi

if [ "${1:-}" = --local ]; then
  shift
  prepare_cache # of LocalStack, which has the command line `aws`
  PATH=$PWD/$TOOLS/local:$ENVIRONMENT/venv/bin:$CACHE/venv/bin:$PATH
  cd "$caller"
  exec "$@"
fi

template=template.yaml own=
if [ $# -gt 0 ]; then
  own=yes template=$(cd "$caller" && cd "$(dirname "$1")" && pwd)/$(basename "$1")
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# No tool needs an account: a request to AWS would get no answer.
unset AWS_PROFILE AWS_SESSION_TOKEN
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL=http://127.0.0.1:9

# gate NAME COMMAND...: quiet unless it fails.
gate() {
  local name=$1 start=$SECONDS
  shift
  if ! "$@" >"$work/output" 2>&1; then
    cat "$work/output" >&2
    die "$name failed"
  fi
  say "$name: ok ($((SECONDS - start)) s)"
}

# advice NAME COMMAND...: a gate for what this repository asks of itself. Of a project's template it is only said.
advice() {
  if [ -z "$own" ]; then
    gate "$@"
  elif ! "${@:2}" >&2; then
    say "$1: as above; it is yours to judge"
  fi
}

# translated NAME PARAMETER=VALUE...
translated() {
  local output=$work/$1.json name=$1
  shift
  python "$TOOLS/translate.py" "$template" "$output" WebhookSecret=secret "$@" || return
  cfn-lint --non-zero-exit-code informational "$output" || return
  "$POLICIES/venv/bin/python" "$TOOLS/policies.py" "$output"
}

if [ -z "$own" ]; then
  prepare_tofu
fi
environment policies "$TOOLS/policies.lock" "60 MB"
POLICIES=$ENVIRONMENT
environment checkov "$TOOLS/checkov.lock" "270 MB"
# checkov PLACE ARGUMENT...: fails by what checkov.yaml does not list. PLACE is a folder, or the name of an output of `translated`.
checkov() {
  local place=$1 option=--file
  shift
  case $place in /*) option=--directory ;; *) place=$work/$place ;; esac
  "$ENVIRONMENT/venv/bin/checkov" --config-file "$TOOLS/checkov.yaml" "$option" "$place" "$@"
}

gate "policies: a wrong action is found anywhere" "$POLICIES/venv/bin/python" "$TOOLS/policies.py" --self-test
gate "sam validate" sam validate --template "$template"
gate "sam validate --lint" sam validate --lint --template "$template"
gate "cfn-lint and policies, as it is" translated defaults
gate "cfn-lint and policies, everything" translated everything FifoQueue=orders MaximumReadUnits=100 AlarmTopic=arn:aws:sns:us-east-1:123456789012:alarms \
  BridgeTimeout=900 Deployment=Linear10PercentEvery1Minute ServerScopes=read,operate EventBus=arn:aws:events:us-east-1:123456789012:event-bus/ends
gate "cfn-lint and policies, a company's rules" translated company KmsKey=arn:aws:kms:us-east-1:123456789012:key/1 Subnets=subnet-1a,subnet-2b \
  SecurityGroups=sg-1a PermissionsBoundary=arn:aws:iam::123456789012:policy/bound Layers=arn:aws:lambda:us-east-1:123456789012:layer:l:1 \
  BridgeSecrets=arn:aws:secretsmanager:us-east-1:123456789012:secret:shop TickSecrets=arn:aws:ssm:us-east-1:123456789012:parameter/shop ServerScopes=read \
  EventBus=arn:aws:events:us-east-1:123456789012:event-bus/ends
gate "cfn-lint and policies, bare" translated bare Alarms=false Dashboard=false Metrics=false Deployment=AllAtOnce
advice "checkov, as it is" checkov defaults.json --framework cloudformation
advice "checkov, everything" checkov everything.json --framework cloudformation
gate "sam build" sam build --template "$template" --build-dir "$work/build"
if [ -n "$own" ]; then exit; fi

# right adds the example of docs/deploying.md for a handler's right.
right() {
  awk '/^## A right for a handler/ { on = 1 } /^```/ { block = on && /^```yaml/; on = on && block; next } block' "$RUNLANE_SOURCE/docs/deploying.md" >right.yaml &&
    [ -s right.yaml ] && sed -i.before '/^Resources:/r right.yaml' template.yaml
}

# projects makes what a user has: the smallest project, and one with a queue and a function by command.
projects() {
  go -C cmd/runlane build -o "$work/runlane" . || return
  export RUNLANE_SOURCE=$PWD
  (
    cd "$work"
    ./runlane init --minimal smallest && ./runlane init edited && cd edited && right &&
      ../runlane queues add reports --own --yes && ../runlane queues add ordered --own --fifo --yes &&
      ../runlane functions add slow --queues reports,ordered --timeout 300 --memory 512 --yes
  )
}
gate "projects by runlane init" projects
for project in smallest edited; do
  template=$work/$project/template.yaml
  gate "cfn-lint and policies, the $project project" translated "$project"
  gate "checkov, the $project project" checkov "$project.json" --framework cloudformation
done

# The example of docs/deploying.md for the CDK makes of a project's template what SAM makes of it.
cdk() {
  command -v node >/dev/null || die "node is missing: install Node.js, which the CDK for Go runs"
  cp -r "$TOOLS/cdk" "$work/cdk" || return
  # `sam package` writes functions in their long form: the CDK keeps the short one of !GetAtt as a text, in which SAM finds no alias.
  python -c 'import sys; from samcli.yamlhelper import yaml_dump, yaml_parse; print(yaml_dump(yaml_parse(sys.stdin.read())))' \
    <"$work/edited/template.yaml" >"$work/packaged.yaml" || return
  awk '/^## CDK/ { on = 1 } /^```/ { in_go = on && /^```go/; next } in_go' docs/deploying.md >"$work/cdk/main.go" || return
  (cd "$work/cdk" && GOFLAGS=-mod=readonly GOWORK=off go build -o app . && CDK_OUTDIR=$work/cdk.out ./app) || return
  python "$TOOLS/translate.py" "$work/packaged.yaml" "$work/wanted.json" BridgeTimeout=120 || return
  python "$TOOLS/translate.py" "$work/cdk.out/orders.template.json" "$work/got.json" || return
  python "$TOOLS/same.py" "$work/wanted.json" "$work/got.json" BridgeTimeout=120
}
gate "CDK includes the template" cdk

# OpenTofu knows the attributes of AWS's resources, and makes nothing.
terraform() {
  cp -r deploy/terraform "$work/terraform" || return
  "$RUNLANE_TOFU" -chdir="$work/terraform" init -input=false -no-color || return
  "$RUNLANE_TOFU" -chdir="$work/terraform" validate -no-color || return
  "$RUNLANE_TOFU" fmt -check -diff deploy/terraform
}
gate "OpenTofu validates the module" terraform
gate "Grafana dashboard" go test -count=1 -run '^TestDashboard_' ./server
go test -count=1 -short -timeout 30m -tags validate ./internal/proof/e2e/samtemplate
