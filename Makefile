# All that a machine with Python 3.11 or newer needs: `make demo` and `make test` make their own environments.

# The first Python that is new enough and really runs (version managers leave names behind that do not).
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
VENV ?= .venv
DEMO_VENV ?= .venv-demo
DOCS_VENV ?= .venv-docs
BOOK_VENV ?= .venv-book
LOCK_VENV ?= .venv-lock
LOWEST_VENV ?= .venv-lowest
LOWEST_PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo $(PYTHON))
HOME_DIR ?=
FILE ?=
FOLDER ?=
NAMESPACE ?=
# Bytecode is kept: tests start hundreds of processes, and each would compile the library anew.
unexport PYTHONDONTWRITEBYTECODE

RUN := $(VENV)/bin/python
# A worker that has no test left takes some of the other's: tests of one file stay together, with what they share.
TWO_CORES := -n 2 --dist worksteal
FAST := tests/unit tests/architecture tests/contract/test_file_storage.py tests/test_exported_members.py
# Units that start the vector engine, builders or servers, or write databases, and those of the benchmarks, are left to
# `make test`.
# On further versions of Python: the contracts, the formats on disk, and one file of each interface.
SMOKE := $(addprefix tests/,contract test_exported_members.py unit/models unit/journal unit/store \
  unit/tool_memory_semantic integration/test_cli.py integration/test_docs.py)
SLOW_UNITS := $(addprefix tests/unit/,benchmarks cli/test_migrate.py cli/workspace engines \
  tool_memory_workspace workspace)

.PHONY: help browser lock demo demo-knowledge book test test-smoke test-fast test-deep lowest coverage check lint types format docs site release dev clean needs-python

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1 - /p' Makefile

demo: needs-python ## two days of an agent that remembers (a minute the first time)
	@if [ -f $(VENV)/.made ]; then venv=$(VENV); else venv=$(DEMO_VENV); $(PYTHON) scripts/environment.py $$venv demo; fi && \
	  $$venv/bin/python -m agent_memory_demo $(if $(HOME_DIR),--home "$(HOME_DIR)")

demo-knowledge: needs-python ## a conversation becomes pages, and answers questions (HOME_DIR=…, FILE=… for your own)
	@if [ -f $(VENV)/.made ]; then venv=$(VENV); else venv=$(DEMO_VENV); $(PYTHON) scripts/environment.py $$venv demo; fi && \
	  $$venv/bin/python -m agent_memory_demo.knowledge $(if $(HOME_DIR),--home "$(HOME_DIR)") $(if $(FILE),"$(FILE)")

book: needs-python ## thirteen agents write a book in a workspace (FOLDER=… keeps it)
	@if [ -f $(VENV)/.made ]; then venv=$(VENV); else venv=$(BOOK_VENV); $(PYTHON) scripts/environment.py $$venv book; fi && \
	  $$venv/bin/python -m examples.book $(if $(FOLDER),--folder "$(FOLDER)")

# Property tests try 10 examples here, 50 in `make coverage`, which is part of a release.
test: dev ## the tests, in random order, on two cores (some minutes)
	HYPOTHESIS_EXAMPLES=$${HYPOTHESIS_EXAMPLES:-10} $(RUN) -m pytest $(TWO_CORES) -m "not deep"

test-smoke: dev ## contracts, formats and one file of each interface, for further versions of Python (two minutes)
	HYPOTHESIS_EXAMPLES=10 $(RUN) -m pytest -q $(TWO_CORES) -m "not deep" $(SMOKE)

test-fast: dev ## units without processes of their own, architecture, the contract of files (a minute)
	HYPOTHESIS_EXAMPLES=10 $(RUN) -m pytest -q $(TWO_CORES) -m "not deep" $(FAST) $(SLOW_UNITS:%=--ignore=%)

test-deep: dev ## many processes, kills at any moment, loss of power, benchmarks in small (some minutes)
	$(RUN) -m pytest $(TWO_CORES) -m deep

# What old versions deprecate is no news: such warnings are no errors here.
lowest: needs-python ## units, contracts and the command line with the lowest versions that are declared (some minutes)
	@$(LOWEST_PYTHON) scripts/environment.py $(LOWEST_VENV) lowest
	HYPOTHESIS_EXAMPLES=10 $(LOWEST_VENV)/bin/python -m pytest -q $(TWO_CORES) -m "not deep" -W ignore::DeprecationWarning \
	  tests/unit tests/contract tests/integration --ignore=tests/unit/benchmarks

coverage: dev ## the tests of `make test` with branch coverage; fails below the mark in pyproject.toml
	$(RUN) -m pytest $(TWO_CORES) -m "not deep" --cov --cov-report=term

check: lint types test ## what has to pass before a commit

browser: dev ## Chromium and axe-core for tests of the page in a browser (by apt and npm, a minute)
	command -v chromium >/dev/null || \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null; }
	npm pack --silent --pack-destination $(VENV) axe-core@4.14.1 >/dev/null
	tar -xzf $(VENV)/axe-core-4.14.1.tgz -C $(VENV) package/axe.min.js package/LICENSE

lint: dev ## ruff
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: dev ## mypy, strict
	$(RUN) -m mypy

format: dev ## let ruff mend what it can
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

docs: dev ## write the generated pages and the tree in errors.py
	$(RUN) -m scripts.docs

site: needs-python ## docs/ as pages in site/, with a search that works from the disk
	@$(PYTHON) scripts/environment.py $(DOCS_VENV) docs
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet

release: dev ## the wheel, checked in an empty environment, and server.json, in dist/ (NAMESPACE=io.github.NAME)
	@test -n "$(NAMESPACE)" || { echo "make release needs NAMESPACE=io.github.NAME, the owner's in the MCP registry."; exit 1; }
	$(RUN) -m scripts.release $(NAMESPACE)

# For Python 3.11 to 3.13 on Linux and macOS, x86 and arm. hatchling and editables build the packages of this repository.
lock: needs-python ## write requirements/dev.txt: exact versions with hashes for development and CI
	@$(PYTHON) -m venv $(LOCK_VENV) && $(LOCK_VENV)/bin/python -m pip install --quiet uv
	printf 'hatchling\neditables\n' | $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate $(UPGRADE) --output-file requirements/dev.txt \
	  --extra dev --extra local --extra languages --extra openai --extra cli --extra server --extra vector --extra workspace pyproject.toml -

dev: needs-python ## the environment for tests, linters and benchmarks (two minutes the first time)
	@$(PYTHON) scripts/environment.py $(VENV) dev

needs-python:
	@test -n "$(PYTHON)" || { echo "agent-memory needs Python 3.11 or newer; none was found."; exit 1; }

clean: ## remove all environments and everything that tools left
	rm -rf $(VENV) $(DEMO_VENV) $(BOOK_VENV) $(LOWEST_VENV) $(DOCS_VENV) build dist site .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
