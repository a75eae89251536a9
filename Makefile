.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
STAMP_DEV := $(VENV)/.ready-dev
WORKERS ?= logical
STATIC := src/frazil/serve/explorer/static
JS := tools/explorer/node_modules/.bin
SPREAD := --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder

# What pyarrow 22 cannot do: write bloom filters, make arrays of UUID objects.
NEWER_PYARROW := -k "not bloom_filter_is_written and not lossless_cast_is_made and not pyiceberg"

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv with the package and what the demo needs (YES=1: install Java without asking)
$(STAMP): pyproject.toml tools/setup.sh constraints/development.txt
	PYTHON=$(PYTHON) VENV=$(VENV) EXTRAS=demo bash tools/setup.sh
	@touch $@

setup-dev: $(STAMP_DEV) ## add everything that tests, checks and docs need, about 2 GB
$(STAMP_DEV): pyproject.toml tools/setup.sh constraints/development.txt tools/explorer/package.json tools/object_servers/package.json
	PYTHON=$(PYTHON) VENV=$(VENV) EXTRAS=dev bash tools/setup.sh
	@touch $(STAMP) $@

test: setup-dev ## run every test on all cores
	$(BIN)/python -m pytest $(SPREAD)

quick: setup-dev ## run the unit and SQL tests, which need no Java and no browser, in under three minutes
	$(BIN)/python -m pytest $(SPREAD) -m "not java and not spark and not cluster and not peers and not browser" \
		tests/unit tests/sql

soak: setup-dev ## many processes, kills and rude clients for a minute each, chaos for ten
	tools/minio.sh
	FRAZIL_SOAK_SECONDS=60 $(BIN)/python -m pytest -s tests/soak --ignore tests/soak/test_mixed_writers.py
	FRAZIL_SOAK_SECONDS=$${FRAZIL_SOAK_SECONDS:-600} $(BIN)/python -m pytest -s tests/soak/test_mixed_writers.py

search: setup-dev ## look for new counterexamples: random values, histories of tables, damaged files, TPC-DS
	FRAZIL_SEARCH_HISTORIES=$${FRAZIL_SEARCH_HISTORIES:-200} \
		$(BIN)/python -m pytest --hypothesis-profile=search tests/property tests/state
	FRAZIL_FUZZ_ROUNDS=$${FRAZIL_FUZZ_ROUNDS:-3000} $(BIN)/python -m pytest tests/fuzz
	FRAZIL_JUDGE_ROUNDS=$${FRAZIL_JUDGE_ROUNDS:-100000} $(BIN)/python -m pytest tests/sql/test_judged.py
	FRAZIL_TPCDS_SCALE=$${FRAZIL_TPCDS_SCALE:-0.1} $(BIN)/python -m pytest tests/sql/test_tpcds.py

test-lowest: ## test the oldest versions that the package allows, in a virtual environment of their own
	$(PYTHON) -m venv .cache/venvs/lowest
	.cache/venvs/lowest/bin/python -m pip install -q -c constraints/lowest.txt . \
		pandas polars fastavro pytest pytest-timeout hypothesis
	.cache/venvs/lowest/bin/python -m pytest tests/table/test_table.py tests/table/test_results.py \
		tests/unit/data tests/unit/format tests/unit/commit $(NEWER_PYARROW)

test-newest: ## test with the newest versions of everything, in a virtual environment of their own
	$(PYTHON) -m venv .cache/venvs/newest
	.cache/venvs/newest/bin/python -m pip install -q --upgrade --upgrade-strategy eager -e ".[dev]"
	.cache/venvs/newest/bin/python -m pytest $(SPREAD)

test-dbt: setup-dev ## every test that dbt publishes for adapters, about ten minutes
	FRAZIL_DBT=all $(BIN)/python -m pytest $(SPREAD) tests/interop/dbt

demo: setup ## run the whole story and leave a warehouse and a report
	$(BIN)/frazil demo

bench: setup-dev ## measure beside the peers, quick sizes (bench/README.md has the full run)
	$(BIN)/python -m bench

wheel: setup-dev ## build a wheel with the Java classes for Spark into dist/
	$(BIN)/python tools/spark_jar.py
	$(BIN)/python -m pip wheel --quiet --no-deps -w dist .
	rm -f src/frazil/spark/frazil-spark.jar

docs: setup-dev ## renew the references and pictures, build the site into site/
	$(BIN)/python tools/cli_reference.py
	$(BIN)/python tools/api_reference.py
	$(BIN)/python tools/property_reference.py
	$(BIN)/python tools/tree_pictures.py
	$(BIN)/python tools/explorer_pictures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: setup-dev ## lint, format, types, layers, module sizes; Java and the explorer's JavaScript, too
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/module_sizes.py
	$(BIN)/python tools/java_lint.py
	$(JS)/prettier --check --log-level warn --print-width 110 "$(STATIC)/**/*.js"
	$(JS)/eslint --config tools/explorer/eslint.config.mjs $(STATIC)
	$(JS)/tsc --project tools/explorer

format: setup-dev ## rewrite files in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(JS)/prettier --write --log-level warn --print-width 110 "$(STATIC)/**/*.js"

.PHONY: help setup setup-dev test test-lowest test-newest test-dbt quick soak search demo bench wheel docs check format
