# `make help` lists the commands.
#
# Stamp files in .venv record what is installed: `make` installs again only if a list of versions is newer than its
# stamp.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Evaluated only when .venv is created. `make PYTHON=python3.12 ...` overrides it.
PYTHON ?= $(shell tools/quick_python.sh)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
DEMO := examples/manifests/demo.yaml

STAMP_VENV := $(VENV)/.stamp-venv
STAMP_RUN := $(VENV)/.stamp-run
STAMP_DEV := $(VENV)/.stamp-dev
STAMP_FUZZ := $(VENV)/.stamp-fuzz

# Only trees that contain Python files: mypy fails on a folder without any.
TREES := $(foreach tree,src tests examples tools bench,$(if $(shell find $(tree) -name '*.py' -print -quit 2>/dev/null),$(tree)))

.PHONY: help up test lint types layers tests wheel fuzz soak blocking bench bench-check map clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

up: $(STAMP_RUN)  ## set up, and start a cluster with a Deployment on hollow nodes
	@$(BIN)/mooring up --ephemeral --nodes 9 --kubeconfig $(VENV)/kubeconfig -f $(DEMO)

test: lint types layers tests  ## everything that must pass before a commit

lint: $(STAMP_DEV)  ## ruff: rules and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP_DEV)  ## mypy, strict
	@$(BIN)/mypy $(TREES)

layers: $(STAMP_DEV)  ## import-linter: the direction of imports
	@$(BIN)/lint-imports --no-logo

tests: $(STAMP_DEV)  ## pytest, three workers
	@tools/ensure_etcd.sh
	@tools/ensure_browser.sh
	@$(BIN)/python -m pytest -q -n 3 --dist worksteal  # more than cores, because many tests wait for processes

wheel: $(STAMP_DEV)  ## build the wheel, and use it on Python 3.11, 3.12 and 3.13
	@tools/check_wheel.sh

fuzz: $(STAMP_FUZZ)  ## bad requests and inputs for ten minutes; SEED=N, SECONDS=N
	@$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS))

soak: $(STAMP_DEV)  ## load, kills, full disks; SEED=N, SECONDS=N, STORE=sqlite or etcd
	@tools/ensure_etcd.sh
	@$(BIN)/python -m tests.soak $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(STORE),--store $(STORE))

blocking: $(STAMP_DEV)  ## how long requests block the API server; ONLY="words of names"
	@$(BIN)/python -m tests.apiserver.http.blocking $(ONLY)

bench: $(STAMP_DEV)  ## measure
	@test -f bench/__main__.py || { echo "make bench: bench/__main__.py is missing, so there is nothing to measure" >&2; exit 1; }
	@$(BIN)/python -m bench

bench-check: $(STAMP_DEV)  ## fail if a workload is slower, or a node or pod larger, than the baseline
	@$(BIN)/python -m bench.check

map:  ## print what each module does
	@$(firstword $(wildcard $(BIN)/python) python3) tools/map.py

clean:  ## remove everything that the other commands created
	@rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP_VENV):
	@python="$(PYTHON)"; \
	command -v "$$python" >/dev/null || { \
	  echo "make: there is no '$$python' here; install Python 3.11 or newer, or name one: make PYTHON=python3.12 ..." >&2; exit 1; }; \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $$("$$python" --version 2>&1) found as '$$python', but 3.11 or newer is needed; name one: make PYTHON=python3.12 ..." >&2; exit 1; }; \
	"$$python" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "make: '$$python' lacks the venv module; install it (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }; \
	test -x $(BIN)/python || "$$python" -m venv $(VENV)
	@touch $@

# setuptools first: a new venv has none since Python 3.12, and the build below runs without isolation, so that it uses
# this pin and needs no index.
$(STAMP_RUN): $(STAMP_VENV) requirements.txt requirements-dev.txt pyproject.toml
	@echo "installing into $(VENV) ..."
	@$(PIP) install --constraint requirements-dev.txt setuptools
	@$(PIP) install --no-deps --requirement requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 src  # so that the first start is fast, even if Python cannot write .pyc files
	@touch $@

$(STAMP_DEV): $(STAMP_RUN)
	@echo "installing the development tools ..."
	@$(PIP) install --no-deps --requirement requirements-dev.txt
	@$(PIP) check
	@touch $@

$(STAMP_FUZZ): $(STAMP_DEV) requirements-fuzz.txt
	@echo "installing the tools of make fuzz ..."
	@$(PIP) install --no-deps --requirement requirements-fuzz.txt
	@$(PIP) check
	@touch $@
