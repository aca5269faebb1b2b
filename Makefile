# Two commands matter: `make demo` and `make test`. Each sets up its own virtual environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types unit bench bench-failover matrix soak lock clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

setup: $(READY)  ## Create the virtual environment

# Only hashed, pinned packages are installed; uv is used when it works, pip otherwise.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "argus-sched needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up $(VENV) (once)"
	@if uv --version >/dev/null 2>&1 && uv venv -q --clear --python "$$(command -v $(PYTHON))" $(VENV) \
	    && uv pip sync -q --require-hashes --python $(BIN)/python requirements.lock; then :; \
	 else rm -rf $(VENV) && { $(PYTHON) -m venv $(VENV) \
	        || { echo "python's venv module is missing (Debian: apt install python3-venv)"; exit 1; }; } \
	    && $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock; fi
	@if [ -x $(BIN)/pip ]; then \
	    $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	 else uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .; fi
	@touch $@

demo: $(READY)  ## The whole story in under a minute: no root, no Docker, no running Postgres
	@$(BIN)/argus-sched demo

test: lint types unit  ## Lint, strict types, and every test whose parts are here

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/mypy

# Most of the suite waits for processes, so more tests run at once than there are cores.
unit: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

bench: $(READY)  ## Measure reading, checks, metrics, schedules, claims and elections, beside plain tools
	@for script in reading check metrics scheduler election; do \
	    echo "== $$script"; $(BIN)/python tests/bench/bench_$$script.py || exit 1; echo; done

bench-failover: $(READY)  ## Measure each failover, 100 times a fault, beside its target
	$(BIN)/python tests/bench/bench_failover.py

RUNS ?= 10000
matrix: $(READY)  ## Play the agent's fault matrix, RUNS=10000 seeded runs of it
	$(BIN)/python -m tests.matrix --runs $(RUNS) --jobs 2

soak: $(READY) matrix  ## Hours: random faults for an hour, the whole matrix, a million names, a busy leader
	$(BIN)/argus-sched harness run --workers 3 --jobs 380 --duration 1h --profile fast --report soak-report
	$(BIN)/python -m tests.matrix.names --count 1000000 --jobs 4
	$(BIN)/python tests/bench/bench_hogs.py --minutes 30

lock:  ## Renew requirements.lock (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes --no-header \
	    --python-version 3.11 -q --upgrade -o requirements.lock

clean:  ## Remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* dist
