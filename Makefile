# The project's vocabulary: the commands that people and CI type. `make` alone lists them.
# Recipes stay short; what needs more than a line lives in scripts/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --warn-undefined-variables
.DEFAULT_GOAL := help

GO ?= go

# The linter is a tool of this repository, not a requirement of the module: its version lives here and nowhere else.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

# Separate modules, so that only who imports them requires SQLite, OpenTelemetry or the SDK of MCP; spec is outside the gate. `./...` in the root does not reach them.
MODULES := sqlitelane mcp otel spec cmd/runlane examples/webhooks/cmd/demo examples/worker examples/killed examples/invoices/cmd/invoices

BUSY ?= 4
CASES ?=
CHAOS ?= 30m
CONSOLE ?=
FUZZ ?= 20000
INPUT ?=
MEMORY ?=
MODEL ?=
ONLY ?=
PAYLOAD ?=
RESUME ?=
RETRIED ?=
SEED ?= 0
SOAK ?= 4h
STACK ?=
TASK ?=
PROJECT ?=
PARAMETERS ?=
TIMES ?= 3
build_demo = $(GO) -C examples/webhooks/cmd/demo build -o '$(CURDIR)/bin/demo' .
demo_flags = $(if $(INPUT),-input '$(INPUT)') $(if $(filter-out 0,$(RESUME)),-resume)

with_console = $(filter-out 0,$(CONSOLE))

include build.mk

.PHONY: help
help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: ## What every commit passes: format, linters, reducer coverage. Needs Go alone.
	@scripts/check-format.sh
	@$(MAKE) lint
	@$(MAKE) cover

.PHONY: test
test: ## The product's own tests, local AWS included. Does its own set-up and clean-up.
	@scripts/tools.sh
	@RUNLANE_LOCAL_MODE=$${RUNLANE_LOCAL_MODE:-tests} RUNLANE_LOCAL_DIR=$${RUNLANE_LOCAL_DIR:-.local/tests} scripts/with-local-aws.sh scripts/test.sh

.PHONY: proof
proof: ## Looks for rare faults: about two hours. ONLY=name runs one proof; scripts/proof.sh --list names them.
	@scripts/proof.sh $(ONLY)

.PHONY: test-busy
test-busy: ## make test TIMES (3) times in a row beside BUSY (4) busy loops.
	@scripts/test-busy.sh '$(TIMES)' '$(BUSY)'

.PHONY: demo
demo: ## Delivers 329 real webhooks, is killed in the middle, and finishes them. Needs Go alone. INPUT=FILE has others; RESUME=1 finishes what Ctrl-C ended. CONSOLE=1 serves the console meanwhile, and until Ctrl-C.
	@$(build_demo)
	@$(if $(with_console),$(MAKE) cli)
	@$(if $(with_console),CONSOLE='$(CONSOLE)' scripts/demo-console.sh,bin/demo) $(if $(filter-out 0,$(RESUME)),,-kill) $(demo_flags)

.PHONY: demo-order
demo-order: ## 60 orders on a file, paid, approved or refused, sent or undone; its worker is killed 20 times. SEED repeats the moments.
	@$(GO) -C examples/killed build -o '$(CURDIR)/bin/killed-order' .
	@bin/killed-order -seed '$(SEED)' order

.PHONY: demo-targets
demo-targets: ## The 329 webhooks by a YAML file alone: examples/targets/runlane.yaml. Its worker is killed in the middle; a receipt is shown.
	@$(MAKE) cli
	@$(GO) run ./examples/targets bin/runlane examples/targets/runlane.yaml

.PHONY: demo-limits
demo-limits: ## Bars over time: a rate held, turns of keys, a queue paused and resumed, priorities. 15 seconds, in memory.
	@$(GO) run ./examples/limits

.PHONY: demo-nightly
demo-nightly: ## A report of 1,000 called runs on a file, whose worker is killed 20 times. SEED repeats the moments.
	@$(GO) -C examples/killed build -o '$(CURDIR)/bin/killed-nightly' .
	@bin/killed-nightly -seed '$(SEED)' nightly

.PHONY: demo-memory
demo-memory: ## The same in the memory of one process, which lives on.
	@$(build_demo)
	@RUNLANE_LANE=mem: bin/demo $(demo_flags)

.PHONY: demo-aws
demo-aws: ## The same through DynamoDB and SQS on local AWS, left running.
	@$(build_demo)
	@RUNLANE_LANE=aws: scripts/with-local-aws.sh --keep bin/demo $(demo_flags)

.PHONY: demo-front
demo-front: ## The same behind a front that answers as DynamoDB does: conflicts, late reads, lost answers.
	@$(build_demo)
	@RUNLANE_LANE=aws: scripts/with-local-aws.sh --keep $(GO) run ./internal/proof/fault/behindfront bin/demo

.PHONY: demo-polyglot
demo-polyglot: ## Workers in Go, Python and TypeScript and their server complete 2,000 runs while one of the four is killed each second. Needs Go, Python, Node.
	@scripts/test-clients.sh demo

.PHONY: test-clients
test-clients: ## Types, tests and packages of the clients in Python and TypeScript. The first run installs their tools.
	@scripts/test-clients.sh

.PHONY: cli
cli: ## Builds bin/runlane.
	$(GO) -C cmd/runlane build -trimpath -ldflags '-s -w' -o "$(CURDIR)/bin/runlane" .

.PHONY: validate
validate: ## The deployment template, and how Terraform and the CDK deploy it, by their own tools, without an account. The first run installs them.
	@scripts/validate.sh

.PHONY: smoke-aws
smoke-aws: ## Checks a deployment in an account with a few runs of each kind in every queue, then removes them. STACK=name, a program's own TASK=id PAYLOAD=json
	@$(GO) run ./internal/proof/e2e smoke -stack '$(STACK)' $(if $(TASK),-task '$(TASK)') $(if $(PAYLOAD),-payload '$(PAYLOAD)') $(if $(RETRIED),-retried '$(RETRIED)') \
	  $(if $(MEMORY),-memory '$(MEMORY)')

.PHONY: local-up
local-up: ## Starts local AWS on loopback and writes .local/env.
	@localstack/up.sh

.PHONY: local-deploy
local-deploy: ## Deploys template.yaml to local AWS and ticks each minute until Ctrl-C. Needs local AWS without Docker.
	@scripts/with-local-aws.sh --keep $(GO) run ./internal/proof/e2e deploy $(if $(PROJECT),-folder $(abspath $(PROJECT)) -name $(notdir $(abspath $(PROJECT)))) $(PARAMETERS)

.PHONY: tryout
tryout: ## What a new user does, from an empty folder to a changed program on local AWS: seconds and edited files of each step.
	@scripts/with-local-aws.sh $(GO) test -count=1 -v -tags e2e -timeout 40m -run TestTryout ./internal/proof/e2e

.PHONY: e2e
e2e: ## template.yaml deployed to local AWS, with its event source mappings, updated, rolled back and restored: about five minutes.
	@scripts/with-local-aws.sh $(GO) test -count=1 -tags e2e -timeout 40m -skip 'TestTryout|TestChaos|TestLoad|TestCheck_' ./internal/proof/e2e ./infra

.PHONY: local-down
local-down: ## Stops what local-up started here, and nothing else.
	@localstack/down.sh

.PHONY: lint
lint: ## golangci-lint, pinned. The first run on a machine builds it (about 80 s).
	$(GOLANGCI) config verify
	$(GOLANGCI) run ./...
	@for module in $(MODULES) console/browser; do (cd "$$module" && $(GOLANGCI) run ./...) || exit; done

.PHONY: fmt
fmt: ## Formats every Go file.
	gofmt -w .

.PHONY: cover
cover: ## The reducer's statement coverage by its own tests. Fails below 100 %.
	@mkdir -p .local
	@$(GO) test -coverprofile .local/reducer.cover ./core/internal/reducer
	@$(GO) tool cover -func .local/reducer.cover | awk '$$3 != "100.0%" { print; bad = 1 } END { exit bad }'

.PHONY: fuzz
fuzz: ## Fuzzes everything that parses, FUZZ inputs a target (20000).
	@scripts/fuzz.sh '$(FUZZ)'

.PHONY: test-console
test-console: ## The console in a real browser, Chromium: pages × checks, on every lane. PICTURES=FOLDER keeps pictures, RUN=NAME selects.
	@scripts/with-local-aws.sh scripts/test-console.sh

.PHONY: console-pictures
console-pictures: ## Draws the pictures of docs/console.md again, and takes new looks of the main pages.
	@RUN='Pictures|LookAs' UPDATE=1 scripts/test-console.sh

.PHONY: openapi-fuzz
openapi-fuzz: ## Has schemathesis call every path of the server, CASES each (40): no 5xx, no answer that openapi.json does not name. SEED repeats.
	@scripts/openapi-fuzz.sh '$(CASES)' '$(filter-out 0,$(SEED))'

.PHONY: bench-peers
bench-peers: ## The embedded lane beside River, asynq, SQLite and a channel. Skips by name what is not installed.
	@cd bench/peers && $(GO) vet . && $(GO) test . && $(GO) run . $(if $(filter quick,$(BENCH)),-quick)

.PHONY: model
model: ## The protocols, state by state, up to 10⁶ states a world; each rule taken out once. MODEL=-full has no cut-off but memory.
	@$(GO) -C spec run . $(MODEL)
	@$(GO) -C spec run . -mutations -states 300000
	@$(GO) -C spec run . -latency

.PHONY: chaos
chaos: ## Everything breaks for CHAOS (30m) on local AWS, then every run is accounted for. SEED repeats a plan.
	@scripts/with-local-aws.sh scripts/chaos.sh '$(CHAOS)' '$(SEED)'

.PHONY: soak
soak: ## Random lives on DynamoDB for SOAK (4h): a line each ten minutes; a failure stops with its seed.
	@scripts/with-local-aws.sh $(GO) test -count=1 -timeout 0 -v -run '^TestLives_DynamoDB$$' ./internal/proof/lives -soak $(SOAK)

.PHONY: load
load: ## The load cases in full: about ten minutes.
	@scripts/with-local-aws.sh $(GO) test -count=1 -v -timeout 30m -run TestLoad ./internal/proof/e2e -full

.PHONY: bench
bench: build bench-programs ## Every figure beside its target. BENCH=quick takes minutes; BENCH_AGAINST=FILE compares.
	@scripts/with-local-aws.sh scripts/bench.sh
