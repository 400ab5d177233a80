# What a person runs here. `make` alone lists the targets.
#
# A machine with Python 3.11 or newer is enough; another interpreter: `make setup PYTHON=python3.13`.
# `make test ARGS='-k beam'` hands ARGS to pytest. Installs obey pip's own settings (an index, a proxy, a cache).

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS)
# Touched when an install has finished, so that running again is quick.
INSTALLED := .venv/installed

# Named file by file, so that pytest imports no others.
PROCESSOR_TESTS = $(shell grep -rl 'pytest.mark.processor' tests)
RECIPES := $(shell find recipes -name '*.toml' 2>/dev/null | sort)

# Tests start hundreds of programs, each of which would otherwise compile heed's modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-processors test-all check format fuzz audit bench bench-quality course docs release clean

help: ## list the targets
	@awk -F ': .*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: $(INSTALLED) ## make .venv with everything in it (quick when nothing changed)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "heed needs Python 3.11 or newer, but $(PYTHON) is: $$($(PYTHON) --version 2>&1 || echo missing)" >&2; \
		echo "Name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.13" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "Installing into .venv (PyTorch is large: some minutes the first time)"
	@$(PIP) install -c constraints.txt pip
	@$(PIP) install -c constraints.txt torch  # first and alone: a broken download costs nothing else
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## train, score and use a translator on the built-in corpus
	$(BIN)/heed demo --out runs/demo --overwrite

test: check ## check, then every test but the slow ones: a quarter of an hour on two slow cores (those of the pages need chromium)
	$(PYTEST) -rs $(ARGS)

test-processors: setup ## the tests that depend on the processor, on a simulated older one
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 $(PYTEST) -n 0 -m processor $(PROCESSOR_TESTS)
	ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default $(PYTEST) -n 0 -m processor $(PROCESSOR_TESTS)

test-all: check ## the slow tests too
	$(PYTEST) -m '' --timeout 3600 $(ARGS)

check: setup ## formatting, lint, types
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	@# On a busy machine its processes may not find each other (exit status 2): then without them.
	$(BIN)/mypy --no-error-summary --num-workers $(WORKERS) || { test $$? = 2 && $(BIN)/mypy --no-error-summary; }

format: setup ## format the code and sort its imports
	$(BIN)/ruff check --quiet --select I --fix
	$(BIN)/ruff format

fuzz: setup ## ten thousand hostile inputs (CASES=N for more); with atheris, 30 s guided for each parser (SECONDS=N)
	$(BIN)/python benchmarks/fuzz.py --cases $(or $(CASES),10000) --seconds $(or $(SECONDS),30)

audit: setup ## licences of all dependencies, and advisories about their versions (pip-audit in an environment of its own)
	@test -x .venv/audit/bin/pip-audit || { $(PYTHON) -m venv .venv/audit && \
		.venv/audit/bin/python -m pip --disable-pip-version-check -qq install pip-audit; }
	$(BIN)/python benchmarks/audit.py --advisories .venv/audit/bin/pip-audit

bench: setup ## speed of translating, serving and training compared with the peers, in one table (under forty minutes)
	$(BIN)/python benchmarks/targets.py $(ARGS)

bench-quality: setup ## train every recipe of recipes/ (hours; HEED_DATA=FOLDER with the data of all, as their first lines say)
	set -e; for recipe in $(RECIPES); do \
		$(BIN)/heed train $$recipe --out runs/$$(basename $$recipe .toml) --overwrite; done

course: setup ## run the commands of the course's chapters (docs/course) and compare their figures: about eleven minutes of one core
	$(BIN)/python benchmarks/chapters.py $(ARGS)

docs: setup ## the documentation site in build/docs; a warning or a broken link inside it is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs
	@echo "Open build/docs/index.html"

release: setup ## the packages in dist/, checked, with an SBOM (CycloneDX) of all that is installed here
	@test -x .venv/release/bin/cyclonedx-py || { $(PYTHON) -m venv .venv/release && \
		.venv/release/bin/python -m pip --disable-pip-version-check -qq install build check-wheel-contents cyclonedx-bom twine; }
	rm -rf dist build
	.venv/release/bin/python -m build --outdir dist .
	.venv/release/bin/twine check --strict dist/*
	.venv/release/bin/check-wheel-contents dist/*.whl
	.venv/release/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-format JSON --validate -o dist/heed.cdx.json

clean: ## remove what building and testing left (keeps .venv and runs)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
