# `make test` and `make train` set themselves up: a fresh machine needs Python 3.11, make and the package registries.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DOCS_STAMP := $(VENV)/.docs-ready

.PHONY: help setup train check browser containers test test-all docs mutation benchmarks screenshots clean

help:
	@echo "make train       the whole algorithm on two CPU cores, in a few minutes"
	@echo "make test        lint, types, architecture and the test suite"
	@echo "make test-all    the same with the slow tests"
	@echo "make check       lint, types and import rules only"
	@echo "make docs        the documentation as a site, in site/"
	@echo "make benchmarks  the speed tables of benchmarks/"
	@echo "make screenshots RUN=runs/first   pictures of the dashboard for docs/"
	@echo "make mutation    mutation score of src/arise/method"

setup: $(STAMP)

# Agent commands run only inside bubblewrap: installed here when that is allowed, else the remedy is said.
# The pinned CPU build of torch goes in first, so that no later package pulls a CUDA build.
$(STAMP): pyproject.toml
	command -v bwrap >/dev/null || (test $$(id -u) = 0 && apt-get update -qq && apt-get install -y -qq bubblewrap) \
	  || echo "bubblewrap is missing: install it with 'apt-get install bubblewrap' before training or testing"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[train,dev,docs]"
	touch $@

train: $(STAMP)
	$(BIN)/arise train configs/embedded.toml

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Debian's chromium for the browser tests; without it they skip and say so.
browser:
	command -v chromium >/dev/null || (test $$(id -u) = 0 && apt-get update -qq && apt-get install -y -qq chromium) \
	  || echo "chromium is missing: the browser tests will be skipped"

# podman, and debootstrap for the base image of the tests; without them the tests of containers skip and say so.
CONTAINER_PACKAGES := podman runc netavark aardvark-dns passt slirp4netns fuse-overlayfs iptables buildah debootstrap
containers:
	command -v podman >/dev/null && command -v debootstrap >/dev/null \
	  || (test $$(id -u) = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends $(CONTAINER_PACKAGES)) \
	  || echo "podman or debootstrap is missing: the tests of containers will be skipped"

# The browser's driver keeps an event loop running in its process: its tests have one of their own.
test: check browser containers
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow" --ignore tests/browser
	$(BIN)/pytest -m "not slow" tests/browser

test-all: check browser containers
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/browser
	$(BIN)/pytest tests/browser

# The references are generated from the code, which needs the package but not torch.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "open site/index.html; with search: $(BIN)/python -m mkdocs serve"

$(DOCS_STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

screenshots: $(STAMP) browser
	$(BIN)/python -m benchmarks.screenshots $(RUN)

benchmarks: $(STAMP)
	$(BIN)/python benchmarks/method.py
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/judge.py
	$(BIN)/python benchmarks/iteration.py
	$(BIN)/python -m benchmarks.engine sampling update growth memory
	$(BIN)/python -m benchmarks.dashboard

mutation: $(STAMP)
	$(BIN)/python benchmarks/mutation.py

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants
