# Two commands matter: `make run` does a real job with no key and no network,
# `make test` runs all tests.
GO ?= go
TOOL := $(GO) tool -modfile=internal/buildtools/go.mod
EXAMPLE := examples/fix-the-test
FUZZTIME ?= 15s
WITHIN ?= 9m
RUNS ?= 5
VERSION ?= $(shell git describe --tags --always --dirty)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
DIST ?= dist
TARGETS := linux_amd64 linux_arm64 darwin_amd64 darwin_arm64

.PHONY: web run test cluster test-cluster test-temporal kills-cluster bench-cluster test-commands test-long kills fuzz bench bench-page bench-session mutate mutate-changes lint cross build docs recording pictures release

# Says how far the compiler is: on one line of a terminal, elsewhere every 50 packages.
build:
	@mkdir -p bin; test -e bin/pawl || \
		echo "Building bin/pawl. The first time, its modules are downloaded and compiled: one to three minutes."; \
	all=$$($(GO) list -deps ./cmd/pawl | wc -l); n=0; \
	if test -t 1; then every=1 end='\r'; else every=50 end='\n'; fi; \
	{ $(GO) build -v -trimpath -ldflags="-s -w" -o bin/pawl ./cmd/pawl 2>&1; echo "exit $$?"; } | while IFS= read -r line; do \
		case $$line in \
		"exit "*) test $$n -eq 0 || echo "compiled $$n packages              "; exit $${line#exit } ;; \
		*[!a-zA-Z0-9./_-]*) echo "$$line" ;; \
		*) n=$$((n + 1)); test $$((n % every)) -ne 0 || printf "compiled $$n of at most $$all packages$$end" ;; \
		esac; \
	done

run: build
	@rm -rf bin/example; cp -r $(EXAMPLE)/project bin/example
	bin/pawl --journal bin/journal.db run $(EXAMPLE)/agent.yaml "Make the tests pass." --workspace bin/example --approve all

# Prints a line per package and fixture gate, what failed tests said, and every
# skip with its reason. The whole log is in bin.
define tests
	@mkdir -p bin
	@$(GO) build -o bin/testreport ./internal/testreport
	@$(1) 2>&1 | bin/testreport -log bin/test.log $(2)
endef

test: lint
	$(call tests,$(GO) test -json -timeout 20m ./...,-rows docs/requirements.md)

# The module for several machines: its tests start PostgreSQL and Temporal on loopback by
# themselves. What is missing is installed or compiled; where that fails, the tests that need it
# are skipped, and say so.
test-cluster:
	@command -v pg_ctl >/dev/null || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || \
		{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update && apt-get install -y --no-install-recommends postgresql; } >/dev/null || \
		echo "PostgreSQL could not be installed: the list of skipped tests says which"
	@$(MAKE) bin/temporal || echo "Temporal could not be compiled: the list of skipped tests says which"
	@test -z "$$(gofmt -l cluster)" || { gofmt -l cluster; exit 1; }
	cd cluster && $(GO) vet ./...
	@mkdir -p bin
	@$(GO) build -o bin/testreport ./internal/testreport
	@cd cluster && $(GO) test -json -timeout 30m ./... 2>&1 | ../bin/testreport -log ../bin/test-cluster.log

# The tests with a Temporal server alone.
test-temporal: bin/temporal
	@mkdir -p bin
	@$(GO) build -o bin/testreport ./internal/testreport
	@cd cluster && $(GO) test -json -count=1 -timeout 30m -run TestTemporal ./cmd/pawl 2>&1 | ../bin/testreport -log ../bin/test-temporal.log

# The Temporal server of the tests, a module of its own. It has the flags of the tests, so that
# what both need is compiled once.
bin/temporal: cluster/test/go.mod $(shell find cluster/test -name "*.go")
	@mkdir -p bin; echo "Compiling bin/temporal. The first time this takes two minutes or more."
	cd cluster/test && $(GO) build -ldflags="-s -w" -o ../../bin/temporal ./temporal

# The faults of the cluster's tests in full: a black hole of a minute, a server that is stopped
# for 40 s, one killed every two seconds for five minutes, Temporal down for ten, and 10,000
# queued runs. About 26 minutes.
kills-cluster: bin/temporal
	cd cluster && PAWL_KILLS=1 $(GO) test -count=1 -v -timeout 90m -run 'BlackHole|TakesOver|ThatAreKilled|ThatWasDown|BetweenTenants' ./cmd/pawl

# The figures of docs/design/postgres.md, each beside its yardstick, in about twelve minutes.
bench-cluster: bin/temporal
	cd cluster && $(GO) test -run '^$$' -bench Appends -benchtime 3x -timeout 30m ./journal/postgres
	cd cluster && $(GO) test -run '^$$' -bench OneAppend -benchtime 500x ./journal/postgres
	cd cluster && $(GO) test -run '^$$' -bench 'Steps|ParkedRuns|RunningRuns|Processors' -benchtime 1x -timeout 30m ./cmd/pawl

# A database, a Temporal server, a server of Pawl and two workers, until Ctrl-C.
cluster: bin/pawl-cluster bin/temporal
	cd cluster && $(GO) build -o ../bin/try ./internal/try
	@bin/try bin/pawl-cluster examples/team

# The program with journals on PostgreSQL.
bin/pawl-cluster: FORCE
	@mkdir -p bin
	cd cluster && $(GO) build -trimpath -ldflags="-s -w" -o ../$@ ./cmd/pawl

# The packages that start commands, which is where sandbox tiers differ.
test-commands:
	$(call tests,$(GO) test -json -count=1 -timeout 20m . ./internal/cli ./internal/crash ./internal/files/launch ./internal/host/sandbox ./tool/shell)

# Tests of killed processes, sandboxes and cut power, which take minutes under the race detector.
PROCESSES := KilledInAnUpgrade|APowerCut|WhatWasApprovedOfGit|ARefusalThatIsOurs|HundredsOfCalls

# A tenth of the kills of the real process, thousands of simulated crashes, races, fuzzing.
test-long: cross fuzz
	$(call tests,PAWL_LONG=1 $(GO) test -json -timeout 20m ./...,-rows docs/requirements.md)
	$(call tests,PAWL_ONE_TIER=1 $(GO) test -json -race -skip '$(PROCESSES)' -timeout 20m ./internal/engine/... ./journal/... ./internal/machine/... ./tool/... ./llm/... ./internal/simulate)

# All kills of the real process, of which the long part does a tenth; about ten minutes.
kills:
	$(call tests,PAWL_KILLS=1 $(GO) test -json -count=1 -timeout 60m ./internal/crash)
	$(call tests,PAWL_KILLS=1 $(GO) test -json -count=1 -timeout 60m -run IsLostByAKill ./internal/cli)

# Before Go 1.27 the end of -fuzztime is at times reported as a failure (go.dev/issue/75804);
# a real one names the input that it wrote.
fuzz:
	@mkdir -p bin
	@packages=$$($(GO) list -f '{{.ImportPath}} {{.Dir}}' ./...) || exit 1; \
	echo "$$packages" | while read -r pkg dir; do \
		grep -hso '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //' | while read -r f; do \
			echo "fuzz $$pkg $$f"; \
			$(GO) test "$$pkg" -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) >bin/fuzz.log 2>&1 && continue; \
			grep -q '^ *context deadline exceeded$$' bin/fuzz.log && ! grep -qE 'Failing input|panic' bin/fuzz.log && continue; \
			cat bin/fuzz.log; exit 1; \
		done || exit 1; done

# Every figure beside its target and its yardstick, on this machine, into the first table of
# docs/benchmarks.md, in about 17 minutes where nothing else runs. Each benchmark is run RUNS
# times, an odd number, one round after the other: runs that follow each other see the same
# moment of the disk. What counts or takes a minute is run once.
LOOPBENCH = cd internal/loopbench && ../../bin/loopbench.test -test.run '^$$' -test.timeout 30m
LONG := TenThousand|ThousandRunsWithReaders|ManyAtOnce/runs=10000|StepInJournal
WHOLE := Turn|ManyAtOnce|AppendWithReaders|ThousandRuns$$

bench:
	@mkdir -p bin
	$(GO) test -c -o bin/loopbench.test ./internal/loopbench
	{ for run in $$(seq $(RUNS)); do \
			($(LOOPBENCH) -test.bench '$(WHOLE)' -test.skip '$(LONG)' -test.benchtime 1x); \
			($(LOOPBENCH) -test.bench . -test.skip '$(WHOLE)|$(LONG)|WaitingRunsOfAServer|Lists' -test.benchtime 7x); \
			$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./journal/sqlite; \
		done; \
		($(LOOPBENCH) -test.bench '$(LONG)' -test.benchtime 1x); \
		$(GO) test -run '^$$' -bench PublishDelta -benchmem ./internal/engine/follow; \
		cd internal/sdkbench && $(GO) test -run '^$$' -bench . -benchtime 7x .; } \
		| $(GO) run ./internal/figures -runs $(RUNS) -write docs/benchmarks.md

# The figures of the page in Chromium beside their targets, in about five minutes where nothing
# else runs. A figure that is more than a fifth above its target fails.
bench-page:
	PAWL_BENCH_PAGE=1 $(GO) test -count=1 -timeout 30m -v -run TestFiguresOfThePage ./internal/server

# How long the keys of a session take, and what it costs. Nothing else may run.
bench-session:
	PAWL_BENCH_SESSION=1 $(GO) test -count=1 -v -run TestFiguresOfASession ./internal/cli

# Changes one operator of PKG at a time, prints the changes that its tests do not notice,
# and writes the figures into docs/mutation.md. Several packages are separated by spaces.
mutate: bin/gremlins
	$(GO) build -o bin/mutate ./internal/mutate
	nice bin/mutate $(PKG)

# The same for the lines that a change touches, in at most WITHIN. See docs/mutation.md.
mutate-changes: bin/gremlins
	$(GO) build -o bin/mutate ./internal/mutate
	nice bin/mutate -changes -within $(WITHIN) $(if $(SINCE),-since $(SINCE))

bin/gremlins: internal/buildtools/go.mod
	@mkdir -p bin
	$(GO) build -modfile=internal/buildtools/go.mod -o $@ github.com/go-gremlins/gremlins/cmd/gremlins

# The page: internal/web/src and what it uses, in a file for styles and some for scripts, of which
# those that the first view does not need are loaded later, with the
# licences of what is in there. $(1) is where to.
define page
	@rm -rf $(1)
	@NODE_PATH=internal/web/vendor $(TOOL) esbuild internal/web/src/main.tsx internal/web/src/icon.svg --tsconfig=internal/web/src/tsconfig.json --bundle --minify --target=es2023 \
		--format=esm --splitting --chunk-names='[name]-[hash]' --charset=utf8 --legal-comments=none --loader:.svg=copy --entry-names='[name]-[hash]' --log-level=warning --outdir=$(1)
	@for licence in $$(find internal/web/vendor -name LICENSE | LC_ALL=C sort); do \
		echo "$$(dirname $$licence | sed s,internal/web/vendor/,,)"; echo; cat $$licence; echo; done >$(1)/LICENSES.txt
endef

web:
	$(call page,internal/web/dist)

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "not gofmt-ed"; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(call page,bin/web)
	@diff -r bin/web internal/web/dist || { echo "internal/web/dist is not what internal/web/src gives: run make web"; exit 1; }

# The other systems that it is to build for, tests included.
cross:
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...

# Pages that are generated from the code and its tests.
docs:
	$(GO) test ./internal/requirements -update
	$(GO) test ./event -update
	$(GO) test ./internal/files/schema -run TestThePage -update
	$(GO) test ./internal/cli -run TestTheRecording -update

# The recording at the top of README.md; make docs writes it there.
recording: build
	@PATH="$(CURDIR)/bin:$$PATH" examples/kill-and-resume/record.sh

# The pictures of README.md. Needs python3, tmux and chromium-headless-shell.
pictures: build
	@PATH="$(CURDIR)/bin:$$PATH" python3 docs/pictures/take.py

# Archives for the systems that Pawl builds for, and their checksums. The same
# sources, Go version and VERSION give the same bytes. Needs GNU tar.
release: $(TARGETS:%=$(DIST)/pawl_$(VERSION)_%.tar.gz)
	cd $(DIST) && sha256sum $(notdir $^) >SHA256SUMS

$(DIST)/pawl_$(VERSION)_%.tar.gz: FORCE
	@rm -rf $(@:.tar.gz=); mkdir -p $(@:.tar.gz=); cp LICENSE README.md $(@:.tar.gz=)
	CGO_ENABLED=0 GOOS=$(firstword $(subst _, ,$*)) GOARCH=$(lastword $(subst _, ,$*)) $(GO) build -trimpath -buildvcs=false \
		-ldflags="-s -w -X main.version=$(VERSION)" -o $(@:.tar.gz=)/pawl ./cmd/pawl
	@tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime=@$(SOURCE_DATE_EPOCH) \
		-cf - $(notdir $(@:.tar.gz=)) | gzip -9n >$@
	@rm -rf $(@:.tar.gz=)

FORCE:
