# `make demo` and `make test` need Python 3.11 or newer, and nothing else: they set up .venv by themselves.
#
#   PYTHON    the interpreter that .venv is made from
#   PIP_ARGS  more arguments for pip, such as an index that serves CPU builds of torch
#   WORKERS   test processes
#   SELECT    more arguments for pytest, such as -m "not offline"

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
PIP_ARGS ?=
WORKERS ?= 2
SELECT ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(PIP_ARGS) --constraint constraints.txt

.PHONY: demo test compile compile-versions gpu generate docs site check lint clean
.DEFAULT_GOAL := test

demo: $(INSTALLED)  ## generate, verify and train on real text; writes demo.html
	$(BIN)/recgen demo --out demo.html

test: $(INSTALLED)  ## the whole suite, with a sample of what make compile compiles
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(SELECT)

compile: $(INSTALLED)  ## every kernel at every width and dtype, for GPUs that are not here
	OMP_NUM_THREADS=1 RECGEN_OFFLINE=all $(BIN)/python -m pytest -m offline

compile-versions: $(INSTALLED)  ## some operators with every minor version of Triton, installed in build/triton
	OMP_NUM_THREADS=1 $(BIN)/python -m recgen.cost.versions

gpu: $(INSTALLED)  ## what is in generated/, checked and timed on this machine's GPU; writes gpu/gpu.json and gpu/gpu.md
	$(BIN)/recgen gpu --modules generated --out gpu

generate: $(INSTALLED)  ## rewrite generated/ from specs/
	$(BIN)/recgen generate specs/*.yaml --out generated

docs: $(INSTALLED)  ## rewrite README's catalogue and docs/operators/ from specs/
	$(BIN)/python docs/catalogue.py

site: $(INSTALLED)  ## the documentation as a site, in build/site
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs build/site

check: $(INSTALLED)  ## generated/, docs/operators/ and README's catalogue are byte for byte what specs/ gives
	$(BIN)/recgen generate specs/*.yaml --out generated --check
	$(BIN)/python docs/catalogue.py --check

lint: $(INSTALLED)  ## style, and the types of all of recgen/
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

clean:  ## everything that make has made here
	rm -rf $(VENV) build dist gpu demo.html .hypothesis .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# torch goes first, so that the build it is pinned to is the one every later requirement finds; with it what builds
# recgen, from the same pins.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "recgen needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch hatchling
	$(PIP) --no-build-isolation --editable '.[dev]'
	touch $@
