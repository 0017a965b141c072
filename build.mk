# What is deployed. `sam build` calls build-Bridge, build-Relay, build-Tick, build-Server and build-EventSender with ARTIFACTS_DIR; `make build` makes
# the same programs, and zips of them. Equal sources give equal bytes, on every machine that has this version of Go.

GO ?= go

# What Lambda runs: arm64, without C, without what only debuggers and Lambda's old Go runtime need.
LAMBDA_ARCH ?= arm64
LAMBDA_FLAGS := -trimpath -buildvcs=false -ldflags '-s -w' -tags lambda.norpc
LAMBDA_GO := GOOS=linux GOARCH=$(LAMBDA_ARCH) GOARM64=v8.0 GOAMD64=v1 CGO_ENABLED=0 GOFLAGS= $(GO)
LAMBDA_ROLES := bridge relay tick server events

# The folder of a role's program. The server has pages and a description of its API besides; events is a client of EventBridge.
lambda_folder = ./$(if $(filter server,$(1)),functionurl,$(if $(filter events,$(1)),eventbus,functions))/$(1)

# Where the template's build method wants a function's files.
ARTIFACTS_DIR ?= bin/lambda

.PHONY: build-Bridge build-Relay build-Tick build-Server build-EventSender
build-Bridge:
	$(LAMBDA_GO) build $(LAMBDA_FLAGS) -o '$(ARTIFACTS_DIR)/bootstrap' ./functions/bridge
build-Relay:
	$(LAMBDA_GO) build $(LAMBDA_FLAGS) -o '$(ARTIFACTS_DIR)/bootstrap' ./functions/relay
build-Tick:
	$(LAMBDA_GO) build $(LAMBDA_FLAGS) -o '$(ARTIFACTS_DIR)/bootstrap' ./functions/tick
build-Server:
	$(LAMBDA_GO) build $(LAMBDA_FLAGS) -o '$(ARTIFACTS_DIR)/bootstrap' ./functionurl/server
build-EventSender:
	$(LAMBDA_GO) build $(LAMBDA_FLAGS) -o '$(ARTIFACTS_DIR)/bootstrap' ./eventbus/events

.PHONY: build
build: $(LAMBDA_ROLES:%=lambda-zip-%) ## The five functions: bin/*.zip for Lambda, at most 5 MiB each, the server 6, and bin/native for this machine.

.PHONY: $(LAMBDA_ROLES:%=lambda-zip-%)
$(LAMBDA_ROLES:%=lambda-zip-%): lambda-zip-%:
	@mkdir -p bin/lambda/$* bin/native
	@$(LAMBDA_GO) build $(LAMBDA_FLAGS) -o bin/lambda/$*/bootstrap $(call lambda_folder,$*)
	@CGO_ENABLED=0 $(GO) build $(LAMBDA_FLAGS) -o bin/native/$* $(call lambda_folder,$*)
	@$(GO) run ./internal/tools/lambdazip$(if $(filter server,$*), -limit 6) bin/lambda/$*/bootstrap bin/$*.zip

# Compared with a function without anything of this project; what a record costs is that of a handler which does nothing.
.PHONY: bench-programs
bench-programs: ## What the functions are compared with.
	@CGO_ENABLED=0 $(GO) build $(LAMBDA_FLAGS) -o bin/native/hello ./internal/proof/e2e/lambdatest/testdata/hello
	@CGO_ENABLED=0 $(GO) build $(LAMBDA_FLAGS) -o bin/native/noop ./internal/proof/e2e/lambdatest/bench/testdata/noop

.PHONY: bench-functions
bench-functions: build bench-programs ## Size, start, memory and processor time of the functions, against their limits.
	@scripts/with-local-aws.sh $(GO) run ./internal/proof/e2e/lambdatest/bench
