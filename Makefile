# Everything a fresh machine with Python 3.11 needs. `make demo` and `make test` make their own .venv where there is none.

# The first Python that is new enough and really runs (version managers leave names behind that do not).
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
HOME_DIR ?=
MODULES := tool-memory-semantic context-memory-scratchpad hooks-memory-capture

.PHONY: demo test check lint types format docs clean

demo: $(VENV)/.installed ## two days of an agent that remembers
	@$(BIN)/python -m agent_memory_demo $(if $(HOME_DIR),--home "$(HOME_DIR)")

test: $(VENV)/.installed ## the whole test suite, in random order, with branch coverage
	$(BIN)/python -m pytest --cov --cov-report=term

check: lint types test ## what has to pass before a commit

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed ## regenerate the pages that are made from code
	$(BIN)/python -m scripts.docs

clean:
	rm -rf $(VENV) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/.installed: pyproject.toml $(MODULES:%=modules/%/pyproject.toml) demo/pyproject.toml
	@test -n "$(PYTHON)" || { echo "agent-memory needs Python 3.11 or newer; none was found."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (once; a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -e ".[dev,local,openai,cli]" $(MODULES:%=-e ./modules/%) -e ./demo
	@touch $@
