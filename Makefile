# Everything that a person or the CI does here, by name. `make` alone lists it.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
BIN := .venv/bin
DEMO ?= demo
FUZZ_SECONDS ?= 5
HOST := $(shell rustc --print host-tuple)
# The probe may be for another processor than this one; its standard library and a C compiler must then be installed.
PROBE_TARGET ?= $(HOST)
# Compiles and links against an old C library: the wheel then runs on distributions since 2014.
ZIG := ziglang==0.17.1
# The core is rebuilt when any of these is newer than the installed extension.
SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name '*.c' -o -name '*.h') Cargo.toml Cargo.lock pyproject.toml

SOAK_SECONDS ?= 600
KILLS ?= 50

.PHONY: help build dist dist-test probe peers demo test test-rust test-python test-peers test-others fuzz queue-check bearer-handshakes kernel-grid access-check openssl-check energy-table network-check soak killed lint audit format docs site schema lock bench traces papers clean fit

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# What the program needs, and what builds it; tests and lints need more.
.venv/.tools: requirements.lock requirements-dev.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	# Crates come over the network at the same time; where they don't, the build says why.
	{ cargo fetch --locked --quiet || true; } & $(PIP) -r requirements.lock "$$(grep '^maturin==' requirements-dev.lock)"; wait
	touch $@

.venv/.dev: .venv/.tools
	$(PIP) -r requirements-dev.lock
	touch $@

.venv/.built: .venv/.tools $(SOURCES)
	source $(BIN)/activate && MAKEFLAGS= maturin develop --release --quiet
	touch $@

build: .venv/.built ## Build the program: .venv/bin/shakedown

probe: .venv/.tools ## Build shakedown-probe, a static program for hosts without Python: measure, load, serve
	source $(BIN)/activate && RUSTFLAGS="-C target-feature=+crt-static" \
		cargo rustc --release --locked --package shakedown-probe --bin shakedown-probe --target $(PROBE_TARGET) \
		-- -C strip=symbols
	if readelf --dynamic target/$(PROBE_TARGET)/release/shakedown-probe | grep NEEDED; then exit 1; fi
	mkdir -p dist
	cp target/$(PROBE_TARGET)/release/shakedown-probe dist/

dist: .venv/.tools ## Build the wheel (manylinux2014) and the source distribution: dist/
	$(PIP) "$(ZIG)"
	rm -rf dist/shakedown_lab-* target/dist
	source $(BIN)/activate && maturin sdist --out dist && python -m tools.sdist_modes dist/shakedown_lab-*.tar.gz && \
		maturin build --release --locked --zig --target $(HOST) --compatibility manylinux2014 --out dist
	$(BIN)/python -m zipfile -e dist/shakedown_lab-*.whl target/dist
	test "$$(nm --dynamic --defined-only --format=just-symbols target/dist/shakedown/_core.abi3.so)" = PyInit__core

dist-test: dist probe ## Install both and the static program in empty Debian roots, without a network, and use them (root; half an hour)
	tools/dist-test

peers: ## Install the Debian packages that tests compare against (root or sudo)
	tools/install-peers

demo: build ## Measure a dozen handshakes and write the report
	$(BIN)/shakedown run examples/quickstart.toml --out $(DEMO) --force

# Debian's packages come over the network while the program is compiled. The lints and the Rust tests, which compile for
# minutes, run beside both halves of the Python tests: these wait for sockets, timers and peers now and then.
test: ## Lint and run every test
	$(MAKE) --no-print-directory --jobs 2 build peers
	$(MAKE) --no-print-directory .venv/.dev
	$(MAKE) --no-print-directory --keep-going --jobs 4 test-peers test-others lint test-rust fuzz

# Cargo counts processors itself; make's jobs are not its own.
test-rust: .venv/.tools ## The Rust tests, our own crates with overflow checks and debug assertions
	source $(BIN)/activate && MAKEFLAGS= cargo test --release --workspace --locked --no-fail-fast --config tools/checked.toml

# Tests that open sockets, start peers or run the pages' commands wait more than they compute: beside them the others
# have a processor to themselves. Each half is serial, so fixed ports and servers never meet; what fails is run again.
PEERS_TESTS := $(addprefix tests/,aka capture certs docs eap explore first_use interop live)

test-python: build .venv/.dev ## The Python tests, command line, documentation and report included, in two halves at once
	$(MAKE) --no-print-directory --keep-going --jobs 2 test-peers test-others

test-peers: build .venv/.dev
	tools/pytest-half peers $(PEERS_TESTS)

test-others: build .venv/.dev
	tools/pytest-half others tests $(PEERS_TESTS:%=--ignore=%)

fuzz: peers ## Fuzz every parser and endpoint for FUZZ_SECONDS each
	MAKEFLAGS= fuzz/run $(FUZZ_SECONDS)

queue-check: build .venv/.dev ## Compare a server's queue with its formula (twenty minutes of a quiet machine)
	$(BIN)/python -m tools.queue_check $(QUEUE_CHECK)

bearer-handshakes: build .venv/.dev ## Time handshakes across emulated bearers and compare them with the model (a few minutes)
	$(BIN)/python -m tools.bearer_handshakes $(BEARERS)

kernel-grid: build .venv/.dev ## Record this kernel's TCP over a grid of paths, and compare the engine with it (root; fifteen minutes)
	chrt --fifo 10 $(BIN)/python tests/predict/kernel_tcp.py grid tests/predict/kernel_grid.json
	$(BIN)/python -m pytest tests/predict/test_kernel_grid.py

access-check: build .venv/.dev ## Compare access to shared cells with published results, and write the page's table (a minute)
	$(BIN)/python -m tools.access_check --write

openssl-check: build .venv/.dev ## Compare openssl speed with a profile's figures, size by size, and write the page's table (ten minutes and more)
	$(BIN)/python -m tools.openssl_check

energy-table: build .venv/.dev ## Predict the energy of handshakes over every bearer, and write the page's table (a minute)
	$(BIN)/python -m tools.energy_table

scan: build .venv/.dev ## Estimate every build of every device with 21 suites as either side: nothing unknown is zero or unmarked (two minutes)
	$(BIN)/python -m pytest tests/predict/test_scan.py

network-check: build .venv/.dev ## Predict 1,080 scenarios, and compare predict with simulate in 200 more (three minutes)
	$(BIN)/python -m tools.network_check

soak: build .venv/.dev ## Keep servers under honest and hostile clients for SOAK_SECONDS and watch their memory (SOAK="--gap 0.2": gently)
	$(BIN)/python -m tools.soak $(SOAK_SECONDS) $(SOAK)

killed: build .venv/.dev ## End commands that write by kill -9, KILLS times each, and look at what is left
	SHAKEDOWN_KILLS=$(KILLS) $(BIN)/python -m pytest tests/results/test_killed.py

lint: build .venv/.dev ## Formatting, lints, documentation, spelling, types, import contracts, licences, ends of support
	cargo fmt --check
	cd fuzz && cargo fmt --check
	source $(BIN)/activate && cargo clippy --release --workspace --all-targets --locked --quiet -- -D warnings
	cd fuzz && cargo clippy --release --locked --quiet -- -D warnings
	source $(BIN)/activate && RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --workspace --locked --quiet
	$(BIN)/typos
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.licences
	$(BIN)/python -m tools.check_map
	$(BIN)/python -m tools.check_support

audit: .venv/.dev ## Ask RustSec and PyPI for advisories on dependencies (network; cargo-deny must be installed)
	cargo deny check advisories
	$(BIN)/uv tool run pip-audit --disable-pip --no-deps --requirement requirements.lock
	$(BIN)/uv tool run pip-audit --disable-pip --no-deps --requirement requirements-dev.lock

format: .venv/.dev ## Format the sources
	cargo fmt
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .

docs: build .venv/.dev ## Run the documents' examples and write down what they print
	$(BIN)/python tests/docs_examples.py

site: build .venv/.dev ## Build the documentation site: site/index.html
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs site

schema: build .venv/.dev ## Write the reference that the program knows: JSON Schema, quantities, keys of experiments
	$(BIN)/python -m tools.reference docs/reference

lock: .venv/.dev ## Update the pinned versions of Python packages
	$(BIN)/uv pip compile -q --universal --no-annotate --no-header --python-version 3.11 pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --no-annotate --no-header --python-version 3.11 --group development -c requirements.lock -o requirements-dev.lock

bench: build .venv/.dev peers ## Compare costs with their targets; NAME=… runs one
	$(BIN)/python -m bench $(NAME)

fit: build .venv/.dev ## Fit the ranges of estimated costs to the shipped devices, for a release
	$(BIN)/python -m tools.fit_costs

traces: build ## Record the traces that ship with the package
	$(BIN)/python -m tools.record_traces

papers: build ## Measure for the papers' pages and write them; MINUTES=… at most
	$(BIN)/python -m tools.papers $(if $(MINUTES),--minutes $(MINUTES))

clean: ## Remove what was built, not what was measured
	rm -rf target .venv dist site
