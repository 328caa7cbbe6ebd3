# The two commands that matter: `make run` does a real job with no key and no
# network, `make test` runs all tests.
GO ?= go
EXAMPLE := examples/fix-the-test

.PHONY: run test test-long bench lint build

build:
	@mkdir -p bin
	$(GO) build -trimpath -ldflags="-s -w" -o bin/pawl ./cmd/pawl

run: build
	@rm -rf bin/example; cp -r $(EXAMPLE)/project bin/example
	bin/pawl --journal bin/journal.db run $(EXAMPLE)/agent.yaml "Make the tests pass." --workspace bin/example

test: lint
	$(GO) test ./...

test-long:
	PAWL_LONG=1 $(GO) test -race ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "not gofmt-ed"; exit 1; }
	$(GO) vet ./...
