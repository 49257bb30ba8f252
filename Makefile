# SPDX-License-Identifier: Apache-2.0
#
# make help lists the targets.

.DEFAULT_GOAL := build
SHELL := /bin/bash

# One setting for programs and tests, so that both share the build cache: no C but in runc, no paths of this machine.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

KUBERNETES := $(shell sed -n 's|^\tk8s.io/api \(v[0-9.]*\)$$|\1|p' go.mod | sed 's/^v0/v1/')
RUNC       := $(shell sed -n 's|^\tgithub.com/opencontainers/runc \(v[0-9.]*\).*|\1|p' go.mod)
CONTAINERD := $(shell sed -n 's|^\tgithub.com/containerd/containerd/v2 \(v[0-9.]*\).*|\1|p' go.mod)
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STAMP      := k8s.io/component-base/version
LDFLAGS    := -s -w \
	-X github.com/wherryproject/wherry/internal/release.released=$(VERSION) \
	-X github.com/wherryproject/wherry/internal/cli.bundledRunc=$(RUNC) \
	-X github.com/containerd/containerd/v2/version.Version=$(CONTAINERD) \
	-X $(STAMP).gitVersion=$(KUBERNETES) \
	-X $(STAMP).gitMajor=$(word 1,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(STAMP).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES:v%=%))) \
	-X $(STAMP).gitTreeState=clean
PREFIX     ?= /usr/local

# Packages whose tests run real servers and containers. They take their turns: a linker beside them takes the time that their clients wait.
# Tests that may run in parallel wait for a server more than they compute.
SERVERS := internal/api internal/cri/critest internal/node/httpapi internal/runtime internal/server internal/store

# Packages with goroutines of their own whose race builds are small.
RACE := ./internal/node/work/... ./internal/node/probe/... ./internal/node/hook/...

##@ Build

.PHONY: build
build: bin/wherry ## Build bin/wherry with the helper programs in it

# bin/wherry is two programs in one file: `wherry debug` and `wherry exec` begin in a short one, which starts in a tenth of the time
# (docs/decisions/018-two-programs-in-one-file.md). Its addresses are far above the main one's. cmd/wherry alone does all the same.
PARTS := bin/.parts

.PHONY: bin/wherry
bin/wherry: helpers
	go build -ldflags '$(LDFLAGS)' -o $(PARTS)/main ./cmd/wherry
	go build -ldflags '-s -w -T 0x40001000' -o $(PARTS)/short ./cmd/wherry-short
	gcc -Os -Wall -Wextra -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-pic -no-pie -static -nostdlib \
		-Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-Ttext-segment=0x3ff00000 -o $(PARTS)/entry cmd/wherry-short/entry/entry.c
	go run ./tools/elfjoin -o $@ -entry $(PARTS)/entry $(PARTS)/main $(PARTS)/short

include internal/runtime/helpers.mk

.PHONY: setup
setup: ## See to it that this machine can build (as root on Debian: install what is missing)
	@tools/setup.sh

# What is installed is made by whoever runs make; only the copying asks for root, where the folder does.
INTO  = $(DESTDIR)$(PREFIX)
ASROOT = $(shell mkdir -p '$(INTO)' 2>/dev/null && [ -w '$(INTO)' ] || echo sudo)
SHARE := bin/share

.PHONY: install
install: build manual ## Install bin/wherry, its manual pages and completions below $(PREFIX)
	$(ASROOT) install -D -m 755 bin/wherry $(INTO)/bin/wherry
	$(ASROOT) ln -sf wherry $(INTO)/bin/kubectl-wherry
	$(ASROOT) ln -sf wherry $(INTO)/bin/kubectl_complete-wherry
	@cd $(SHARE) && find . -type f | while read -r f; do $(ASROOT) install -D -m 644 "$$f" "$(abspath $(INTO))/share/$$f" || exit 1; done
	@echo "installed below $(INTO); to have the server started at boot: sudo wherry service install"

.PHONY: manual
manual: bin/wherry ## Write manual pages and completions into bin/share
	rm -rf $(SHARE)
	mkdir -p $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	bin/wherry completion bash > $(SHARE)/bash-completion/completions/wherry
	bin/wherry completion zsh > $(SHARE)/zsh/site-functions/_wherry
	bin/wherry completion fish > $(SHARE)/fish/vendor_completions.d/wherry.fish
	go run ./tools/man $(SHARE)/man/man1

ARCHS ?= amd64 arm64
.PHONY: images
images: build ## The image of wherry for clusters, for ARCHS (default: amd64 arm64; the other one needs gcc for it), as an OCI layout below dist
	tools/images.sh '$(VERSION)' "$(LDFLAGS)" $(ARCHS)

.PHONY: uninstall
uninstall: ## Remove what install has installed
	$(ASROOT) rm -f $(INTO)/bin/wherry $(INTO)/bin/kubectl-wherry $(INTO)/bin/kubectl_complete-wherry $(INTO)/share/man/man1/wherry.1 $(INTO)/share/man/man1/wherry-*.1 \
		$(INTO)/share/bash-completion/completions/wherry $(INTO)/share/zsh/site-functions/_wherry $(INTO)/share/fish/vendor_completions.d/wherry.fish

.PHONY: clean
clean: clean-helpers ## Remove what was built
	rm -rf bin dist

# The page of `wherry ui`. What is built is checked in: `make build` needs neither node nor npm.
.PHONY: ui
ui: ## Build the page of wherry ui from ui into internal/ui/dist (needs node 20 and npm)
	cd ui && npm ci --no-audit --no-fund && npm run build

.PHONY: verify-ui
verify-ui: ## Say whether the page that is checked in is what its sources give
	@ui/check.sh

.PHONY: test-ui
test-ui: ## Unit tests of the page (needs node 20 and npm; says so where they are not)
	@if command -v npm >/dev/null; then cd ui && { [ -d node_modules ] || npm ci --no-audit --no-fund --silent; } && npm test; \
	else echo 'test-ui: skipped: npm is not here; the page is checked in as it was built'; fi

##@ Run

EXAMPLE := bin/images/first-light-page.tar bin/images/first-light-web.tar bin/images/sidecar-injector.tar

bin/images/first-light-%.tar: examples/first-light/%/main.go $(wildcard internal/ociimage/*.go)
	@mkdir -p bin/images
	go build -ldflags '-s -w' -o bin/images/$* ./examples/first-light/$*
	go run ./tools/mkimage -o $@ -ref wherry.example/first-light/$*:1 -file bin/images/$*=/$* -entrypoint /$*

bin/images/sidecar-injector.tar: $(wildcard examples/sidecar-injector/*.go internal/ociimage/*.go)
	@mkdir -p bin/images
	go build -ldflags '-s -w' -o bin/images/sidecar-injector ./examples/sidecar-injector
	go run ./tools/mkimage -o $@ -ref wherry.example/sidecar-injector:1 -file bin/images/sidecar-injector=/sidecar-injector -entrypoint /sidecar-injector

bin/images/notes.tar: go.mod $(wildcard examples/three-tier/notes/*.go internal/ociimage/*.go)
	@mkdir -p bin/images
	go build -ldflags '-s -w' -o bin/images/notes ./examples/three-tier/notes
	go run ./tools/mkimage -o $@ -ref wherry.example/notes:1 -file bin/images/notes=/notes -entrypoint /notes -user 65535:65535

# Not made where Debian's packages cannot be had: the test that wants it says so.
bin/images/postgres.tar: tools/setup.sh $(wildcard examples/three-tier/postgres*.sh internal/ociimage/*.go)
	@mkdir -p bin/images
	@tools/setup.sh busybox postgresql
	@[ -z "$$(ls -d bin/debian/usr/lib/postgresql 2>/dev/null)" ] || examples/three-tier/postgres-image.sh $@

.PHONY: images-three-tier
images-three-tier: bin/images/notes.tar bin/images/postgres.tar ## The images of examples/three-tier

.PHONY: run
run: build $(EXAMPLE) ## Run the example pod end to end (root; KEEP=1 leaves the server up)
	@examples/first-light/run.sh

##@ Test

# What fails is run once more, alone, and what failed once is named (tools/gotest.sh; AGAIN=0: no second try; STRICT=1: it fails the run).
# How long the storm of test/chaos takes and which kinds of storms there are, is what CHAOS and CHAOS_KINDS say in the environment (40s, embedded,external).
# The log of each step is in bin/test; test-unit, test-race, test-simulate and test-e2e are its parts.
.PHONY: test
test: test-programs ## Run every test (root for those with containers)
	@tools/test.sh

.PHONY: test-repeat
test-repeat: test-programs ## Run unit tests (-count=2 -shuffle=on) and end-to-end tests REPEAT times (default 10); what passes only when run again fails (PARTS, RUN; root)
	@tools/test-repeat.sh

.PHONY: test-unit
test-unit: test-packages test-servers ## Unit and simulation tests

.PHONY: test-packages
test-packages: helpers
	tools/gotest.sh -p $$(($$(nproc) + 1)) $$(go list ./... | grep -v '/wherry/test' | grep -vE '/wherry/($(subst $() ,|,$(SERVERS)))$$')
	@tools/setup.sh busybox # which the toolbox is compared with
	cd toolbox && ../tools/gotest.sh -timeout 20m ./...
	cd test/agree && ../../tools/gotest.sh ./...
	cd tools/lint && ../gotest.sh ./...

.PHONY: test-servers
test-servers: helpers
	tools/gotest.sh -p 1 -parallel 8 -timeout 30m $(SERVERS:%=./%)

.PHONY: test-race
test-race: ## The packages with goroutines of their own, under the race detector
	CGO_ENABLED=1 tools/gotest.sh -race -short -timeout 30m $(RACE)

.PHONY: test-simulate
test-simulate: helpers ## 200 (WORLDS) simulated worlds: servers that die, an etcd and a runtime that fail; every 7th (TWICE) is run twice and must be the same
	@SEEDS=$(or $(WORLDS),200) tools/simulate.sh

SEEDS ?= 10000
.PHONY: simulate
simulate: helpers ## SEEDS simulated worlds (default 10000: a night), from FIRST on; a seed reproduces its run (SEEDS=1 FIRST=seed: again; logs of those that fail are in bin/simulate)
	@SEEDS=$(SEEDS) FIRST=$(FIRST) tools/simulate.sh

.PHONY: test-e2e
test-e2e: test-programs ## End-to-end tests: the built binary, real containers, the real kubectl (root)
	@tools/e2e.sh

.PHONY: test-browser
test-browser: build ## The page of wherry ui in Chromium, before real servers with real pods (root; RUN=regex; SCREENSHOTS=folder: leave pictures of the views there)
	@tools/setup.sh busybox chromium
	@[ -d ui/node_modules/axe-core ] || ! command -v npm >/dev/null || (cd ui && npm ci --ignore-scripts --no-audit --no-fund --silent) # for the tests that axe-core judges in
	cd test/browser && SCREENSHOTS=$(if $(SCREENSHOTS),$(abspath $(SCREENSHOTS))) go test -count=1 -timeout 30m $(if $(RUN),-v -run '$(RUN)') .

.PHONY: test-coredns
test-coredns: build ## Some 200 questions about names, asked of Wherry's resolver and of CoreDNS, which look at the same server (root)
	cd test/coredns && ../../tools/gotest.sh -count=1 .

# What of it says most for its time: signing in by a link and every view, the live list, the life of a pod with a sidecar that is started and
# deleted, and that nothing a pod says is markup. Chromium is not fetched for it (a minute and more on a machine without): where there is none,
# it says so.
.PHONY: test-page
test-page: build ## Four tests of the page in Chromium, where that is installed, which make test runs too (root)
	@if command -v chromium >/dev/null; then cd test/browser && \
		../../tools/gotest.sh -count=1 -timeout 15m -run '^(TestSignInByLink|TestListIsLive|TestLifeIsWatched|TestNothingIsMarkup)$$' .; \
	else echo 'test-page: NOT RUN: chromium is not installed, so the page was not opened in a browser (as root on Debian: tools/setup.sh chromium)'; fi

# cri-dockerd is built of 1,000 packages of another Kubernetes than ours, for one test.
DOCKER_CRI ?= bin/cri-dockerd
.PHONY: test-programs
test-programs: build bin/.failpoints/wherry bin/helm $(DOCKER_CRI) $(EXAMPLE) images-three-tier ## Build and fetch what the end-to-end tests need
	@tools/setup.sh containerd docker podman busybox
	@tools/release-before.sh

bin/helm: test/helm/go.mod
	cd test/helm && ../../tools/retry.sh go list -deps helm.sh/helm/v4/cmd/helm >/dev/null
	cd test/helm && go build -ldflags '-s -w' -o ../../bin/helm helm.sh/helm/v4/cmd/helm

bin/cri-dockerd: test/cridockerd/go.mod tools/cri-dockerd.sh
	tools/cri-dockerd.sh

CHAOS ?= 20m
KINDS ?= embedded,external,disk,clock
.PHONY: chaos
chaos: build ## Let everything die under 30 pods for CHAOS (default 20m), divided among KINDS of storms (root)
	@tools/setup.sh containerd busybox
	CHAOS=$(CHAOS) CHAOS_KINDS=$(KINDS) go test -vet=off -count=1 -timeout 24h -v ./test/chaos

SOAK ?= 20m
.PHONY: soak
soak: build ## Roll, scale and delete 500 Deployments with Services at random for SOAK (default 20m) by 8 clients; nothing is left then (root)
	@tools/setup.sh busybox
	SOAK=$(SOAK) go test -vet=off -count=1 -timeout 24h -v ./test/soak

.PHONY: failpoints
failpoints: bin/.failpoints/wherry ## Let a server die, and fail, at every place where it changes something (FAILPOINTS=40s FAILPOINTS_SEED=1: a portion; root)
	FAILPOINTS=$(or $(FAILPOINTS),all) go test -vet=off -count=1 -timeout 1h -v ./test/failpoints

.PHONY: bin/.failpoints/wherry
bin/.failpoints/wherry: helpers
	@tools/failpoints.sh

.PHONY: bench
bench: build ## Measure against the bare runtime; writes docs/benchmarks.md (root)
	go run ./test/bench $(BENCHFLAGS)

.PHONY: fuzz
fuzz: helpers ## Run each fuzz target (FUZZPARTS=9: one of nine parts, another one each day) for FUZZTIME (default: a share of 150 s), FUZZJOBS at a time (default 4 a processor)
	go run ./tools/fuzz $(if $(FUZZPARTS),-parts $(FUZZPARTS)) $(if $(FUZZTIME),-time $(FUZZTIME)) $(if $(FUZZJOBS),-jobs $(FUZZJOBS))

.PHONY: conformance
conformance: build ## Kubernetes' own conformance specs (root; SLICE=1: the 60 that each change must pass; FOCUS=regex, SKIP=regex; PLAIN=1: those that are not conformance; docs/conformance.md)
	@test/conformance/run.sh

.PHONY: test-cluster
test-cluster: build ## The specs of nodes and their storage, on an agent that joins Kubernetes' own control plane (root; SLICE=1: 24 of them; FOCUS, SKIP)
	@CLUSTER=1 test/conformance/run.sh

.PHONY: test-cluster-debug
test-cluster-debug: build bin/helm ## Debugging installed in a cluster of Kubernetes' own programs, kubelet and containerd included (root; RUN=regex, KEEP=1)
	@NEEDED=1 tools/setup.sh containerd busybox
	@PATH="$$PATH:$(CURDIR)/bin/debian/bin:$(CURDIR)/bin/debian/usr/bin" test/cluster/run.sh

.PHONY: bench-cluster
bench-cluster: build ## Debugging in that cluster against kubectl: a prompt, a GiB copied out of a pod, whole and cut (root; N=5, BENCH=regex)
	@NEEDED=1 tools/setup.sh containerd busybox
	@BENCH=$(or $(BENCH),.) N=$(or $(N),5) PATH="$$PATH:$(CURDIR)/bin/debian/bin:$(CURDIR)/bin/debian/usr/bin" test/cluster/run.sh

##@ Check

.PHONY: lint
lint: vet fmt-check deadcode ## All static checks

# Checkers hold what they know until they end: to look for garbage often finds little. Less of that is a quarter of their time.
vet: export GOGC := 400
vet: export GOMEMLIMIT := 10GiB

.PHONY: vet
vet: helpers ## The analyzers of go vet and staticcheck on all our packages (tools/lint)
	@mkdir -p bin
	cd tools/lint && go build -o ../../bin/lint .
	bin/lint . toolbox test/agree test/browser tools/lint

.PHONY: fmt-check
fmt-check: ## gofmt would change nothing
	@bad=$$(git ls-files '*.go' | xargs -r ls 2>/dev/null | xargs -r gofmt -l); [ -z "$$bad" ] || { echo "gofmt would change:"; echo "$$bad"; exit 1; }

.PHONY: deadcode
deadcode: helpers ## Functions without a caller in any of the programs, by deadcode, pinned in tools/deadcode/go.mod
	@tools/deadcode.sh

.PHONY: vulnerabilities
vulnerabilities: ## Known vulnerabilities in what the programs call, where the database can be reached
	@tools/vulnerabilities.sh

##@ Generated files

.PHONY: generate
generate: deps ## Make the generated files anew
	go generate ./...
	go run ./tools/rules
	go run ./tools/fields

.PHONY: verify
verify: ## Generated files are those that generate would make
	@tools/verify.sh

.PHONY: deps
deps: bin/wherry ## Write docs/dependencies.txt: what the binary holds and how large it is
	cd test/agree && go mod tidy
	go run ./tools/deps -o docs/dependencies.txt -binary bin/wherry

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-zA-Z0-9_-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
