# Two commands matter: `make run` does a real job with no key and no network,
# `make test` runs all tests.
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod
EXAMPLE := examples/fix-the-test
FUZZTIME ?= 15s
RUNS ?= 5

.PHONY: run test test-long fuzz bench lint cross build docs

build:
	@mkdir -p bin
	$(GO) build -trimpath -ldflags="-s -w" -o bin/pawl ./cmd/pawl

run: build
	@rm -rf bin/example; cp -r $(EXAMPLE)/project bin/example
	bin/pawl --journal bin/journal.db run $(EXAMPLE)/agent.yaml "Make the tests pass." --workspace bin/example --approve all

# Prints a line per package and per fixture gate; the whole log is in bin. A test
# says what is wrong before its line FAIL, so both sides of it are shown.
define tests
	@mkdir -p bin
	@$(1) >bin/test.log 2>&1; status=$$?; \
		grep -E '^(ok|FAIL|panic:)|^ *--- FAIL|gate .* passed' bin/test.log; \
		if [ $$status -ne 0 ]; then echo "--- what failed:"; grep -nE -B25 -A25 '^ *--- FAIL|^panic:|\[build failed\]|DATA RACE' bin/test.log | head -300; fi; \
		exit $$status
endef

test: lint
	$(call tests,$(GO) test -v ./...)

# Kills of the real process, thousands of simulated crashes, races, fuzzing.
test-long: cross fuzz
	$(call tests,PAWL_LONG=1 $(GO) test -v -timeout 20m ./...)
	$(call tests,$(GO) test -v -race -timeout 20m ./engine ./journal/... ./machine/... ./tool/... ./llm/... ./internal/simulate)

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

# Every figure beside its target and its yardstick, on this machine. What
# touches the disk or the scheduler runs RUNS times, an odd number, one round after
# the other: runs that follow each other see the same moment of the disk.
bench:
	{ for run in $$(seq $(RUNS)); do \
			$(GO) test -run '^$$' -bench . -skip ThousandRuns -benchtime 7x -timeout 30m ./internal/loopbench; \
			$(GO) test -run '^$$' -bench ThousandRuns -benchtime 2x -timeout 30m ./internal/loopbench; \
			$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./journal/sqlite; \
		done; \
		$(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./llm/... ./engine; \
		cd internal/sdkbench && $(GO) test -run '^$$' -bench . -benchtime 7x .; } \
		| $(GO) run ./internal/figures -runs $(RUNS) -write docs/benchmarks.md

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "not gofmt-ed"; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...

# The other systems that it is to build for, tests included.
cross:
	GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...

# Pages that are generated from the code and its tests.
docs:
	$(GO) test ./internal/requirements -update
	$(GO) test ./event -update
