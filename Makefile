# One target for each thing a person does. Each sets itself up: it needs only make, Python 3.11+ and a package index.
# Setup runs once, and again when pyproject.toml changes.

PYTHON  ?= python3
WORKERS ?= 2

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# tests start hundreds of processes: what one has compiled the next one reads, whatever the caller's setting
export PYTHONDONTWRITEBYTECODE :=

# a worker has a core: threads of its linear algebra only get in the way of the other
test test-integrations torture mutants: export OMP_NUM_THREADS := 1
# arrays come and go: glibc keeps their memory, where every page would be given and cleared anew (others ignore these)
test test-integrations torture mutants: export MALLOC_MMAP_THRESHOLD_ := 33554432
test test-integrations torture mutants: export MALLOC_TRIM_THRESHOLD_ := 1073741824

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-integrations test-tensorflow-privacy torture mutants check format bench reproduce docs dist clean distclean
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## create the environment in .venv (every other target does this by itself)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "hockeystick needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(READY)  ## account a real DP-SGD run, with a picture of its privacy curve in out/
	$(BIN)/python examples/demo.py

test: $(READY)  ## all tests, docstring examples and documentation examples (under five minutes on two cores)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

INTEGRATIONS       := .venv-integrations
INTEGRATIONS_READY := $(INTEGRATIONS)/.ready

test-integrations: $(INTEGRATIONS_READY)  ## the adapters in their frameworks, in an environment of its own
	$(INTEGRATIONS)/bin/python -m pytest -W default --numprocesses $(WORKERS) --dist loadfile \
	  tests/integrations src/hockeystick/integrations

$(INTEGRATIONS_READY): tests/integrations/requirements.txt pyproject.toml
	@test -x $(INTEGRATIONS)/bin/python || $(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet --requirement $< --editable '.[dev]'
	# flwr's servers have pins that fit no one else's; of TensorFlow Privacy the analysis runs without TensorFlow
	$(INTEGRATIONS)/bin/python -m pip install --quiet --no-deps flwr==1.42.0 tensorflow-privacy==0.9.0
	@touch $@

TENSORFLOW       := .venv-tensorflow
TENSORFLOW_READY := $(TENSORFLOW)/.ready

test-tensorflow-privacy: $(TENSORFLOW_READY)  ## TensorFlow Privacy itself, in an environment of its own (1.5 GB; Python 3.11)
	TF_CPP_MIN_LOG_LEVEL=3 $(TENSORFLOW)/bin/python -m pytest -W default tests/integrations/test_tensorflow_privacy.py

$(TENSORFLOW_READY): tests/integrations/requirements-tensorflow.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	  || { echo "the TensorFlow that TensorFlow Privacy takes has no build for this Python; try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(TENSORFLOW)/bin/python || $(PYTHON) -m venv $(TENSORFLOW)
	$(TENSORFLOW)/bin/python -m pip install --quiet --requirement $<
	$(TENSORFLOW)/bin/python -m pip install --quiet --no-deps tensorflow-privacy==0.9.0 --editable .
	@touch $@

torture: $(READY)  ## the long tests: thousands of random configurations
	HYPOTHESIS_PROFILE=torture $(BIN)/python -m pytest -m torture --numprocesses $(WORKERS) --dist loadfile

mutants: $(READY)  ## break each bound on purpose, one at a time: do the tests notice? (MUTANTS="--only contour" for less)
	$(BIN)/python -m mutants --workers $(WORKERS) $(MUTANTS)

check: $(READY)  ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

PEERS       := .venv-peers
PEERS_READY := $(PEERS)/main/.ready $(PEERS)/autodp/.ready $(PEERS)/opake/.ready

bench: $(READY) $(PEERS_READY)  ## measure us and other accountants side by side (BENCH="--only dpsgd" for less)
	$(BIN)/python -m benchmarks $(BENCH)

$(PEERS)/main/.ready: benchmarks/requirements-peers.txt
$(PEERS)/autodp/.ready: benchmarks/requirements-autodp.txt
$(PEERS)/opake/.ready: benchmarks/requirements-opake.txt
$(PEERS)/opake/.ready: PYTHON := $(shell command -v python3.13 || echo $(PYTHON))

# A peer that cannot be installed here becomes rows that say so, not the end of the benchmark.
$(PEERS_READY):
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $< \
	  || echo "could not install everything in $<: the rows of those peers will say so" >&2
	@touch $@

reproduce: $(READY)  ## redraw the papers' figures and check their claims (ONLY=000-fig6 for one)
	$(BIN)/python -m reproduce $(if $(ONLY),--only $(ONLY)) $(REPRODUCE)

docs: $(VENV)/.docs  ## the documentation as a site in out/docs, and its tests; a warning or a broken link fails
	rm -rf docs/reference/api out/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/docs
	HOCKEYSTICK_SITE=out/docs $(BIN)/python -m pytest -q tests/site tests/architecture/test_links.py
	@echo "open out/docs/index.html"

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

# The oldest Python with the oldest numpy and scipy that pyproject.toml allows, and the newest Python that is here.
OLDEST := $(shell command -v python3.11 || command -v $(PYTHON))
NEWEST := $(shell for v in 14 13 12 11; do python3.$$v -c "" 2>/dev/null && command -v python3.$$v && break; done)

dist: $(READY)  ## a wheel and a source distribution in dist/, checked, and installed on the oldest and newest Python
	rm -rf dist build/oldest build/newest
	$(BIN)/python -m pip install --quiet build twine
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(OLDEST) -m venv build/oldest
	build/oldest/bin/python -m pip install --quiet dist/*.whl 'numpy==1.26.*' 'scipy==1.11.*'
	cd build && oldest/bin/python -I ../tests/package/installed.py
	$(NEWEST) -m venv build/newest
	build/newest/bin/python -m pip install --quiet "$$(ls dist/*.whl)[explore,exact,plots]"
	cd build && newest/bin/python -I ../tests/package/installed.py
	build/newest/bin/python -m pip install --quiet --no-deps --force-reinstall dist/*.tar.gz
	cd build && newest/bin/python -I ../tests/package/installed.py

clean:  ## remove caches, builds, and what demo and bench wrote
	rm -rf out benchmarks/results build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

distclean: clean  ## clean, and remove the environments too
	rm -rf .venv .venv-peers .venv-integrations .venv-tensorflow
