.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv with the package, its extras and Java 17
$(STAMP): pyproject.toml tools/setup.sh
	PYTHON=$(PYTHON) VENV=$(VENV) bash tools/setup.sh
	@touch $@

test: setup ## run every test that continuous integration needs
	$(BIN)/python -m pytest

check: setup ## lint, format, types, layers, module sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/module_sizes.py

format: setup ## rewrite files in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: help setup test check format
