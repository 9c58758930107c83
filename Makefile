# make demo, make test: each makes .venv itself and can be run again at any time.
# make test-fast leaves out what starts a process, a server, a database, a browser or a notebook,
# and tries fewer examples.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-fast lint format bench campaign picture notebooks docs release-check clean

demo: .venv/.ready-demo
	$(BIN)/python -m graphs

test: .venv/.ready
	$(BIN)/pytest -n logical

test-fast: .venv/.ready
	$(BIN)/pytest -n logical -m "not slow" --hypothesis-profile fast

lint: .venv/.ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright

bench: .venv/.ready-bench
	$(BIN)/python -m benchmarks

# About 20 minutes on two cores. CAMPAIGN="--seconds 60 kills" chooses; --help lists the options.
campaign: .venv/.ready
	$(BIN)/python -m campaigns $(CAMPAIGN)

format: .venv/.ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which with make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

.venv/.ready-demo: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[graphs]"
	@touch $@

.venv/.ready: .venv/.ready-demo
	$(BIN)/python -m pip install --quiet --group lint --group providers --group test
	@touch $@

.venv/.ready-bench: .venv/.ready-demo
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

.venv/.ready-docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

# The documentation as a site in site/; a broken link is an error.
docs: .venv/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

release-check: | .venv/bin/python
	$(BIN)/python .ci/release_check.py

picture: .venv/.ready
	$(BIN)/python -m graphs.programs.picture

# Runs the notebooks and saves them with their outputs, without machine paths and time stamps.
notebooks: .venv/.ready
	$(BIN)/python -m nbconvert --to notebook --execute --inplace \
	  --ClearMetadataPreprocessor.enabled=True \
	  --ClearMetadataPreprocessor.preserve_nb_metadata_mask='{"kernelspec", ("language_info", "name")}' \
	  notebooks/*.ipynb

clean:
	rm -rf .venv site .hypothesis .mypy_cache .pytest_cache .ruff_cache
