# make demo and make test create .venv themselves and can be run again at any time. make test-fast
# skips tests that start a process, server, database, browser or notebook or take long, and tries
# fewer Hypothesis examples. make coverage is test-fast, and fails below 100 % branch coverage; it
# ignores what Python warns of when two threads begin to trace at once. make test-lowest is test-fast
# with the lowest versions that pyproject.toml allows.
PYTHON ?= python3
BIN := .venv/bin
LOWEST := .venv-lowest
# Two processes for each core: tests that start servers and programs mostly wait for them.
WORKERS := $(shell expr 2 \* `getconf _NPROCESSORS_ONLN`)

# With it, each program that a test starts would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast test-lowest coverage lint format bench evals trace campaign mutants clients picture notebooks reference docs sample size release-check clean

demo: .venv/.ready-demo
	$(BIN)/python -m todo_tools.demo

test: .venv/.ready
	$(BIN)/pytest -n $(WORKERS)

test-fast: .venv/.ready
	$(BIN)/pytest -n logical -m "not slow" --hypothesis-profile fast

coverage: .venv/.ready
	$(BIN)/pytest -n logical -m "not slow" --hypothesis-profile fast --cov -W ignore::pytest.PytestUnraisableExceptionWarning

test-lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/pytest -n logical -m "not slow" --hypothesis-profile fast

lint: .venv/.ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright

bench: .venv/.ready
	$(BIN)/python -m benchmarks

# Measures a real model: MODEL=openai:gpt-5-mini, or BASE_URL=http://127.0.0.1:8080/v1 and
# MODEL=openai:local. EVALS="--families copy --arms none,pack" sets options; evals/README.md says more.
evals: .venv/.ready
	$(BIN)/python -m evals $(EVALS)

# Counts the modules that a run of an agent goes through. TRACE=--calls lists every call.
trace: .venv/.ready-demo
	$(BIN)/python -m benchmarks.trace $(TRACE)

# About 15 minutes on two idle cores. CAMPAIGN="--seconds 20 kills" sets options; --help lists them.
campaign: .venv/.ready
	$(BIN)/python -m campaigns $(CAMPAIGN)

# Changes the core in one place at a time; lists the changes that no test notices, and the score of
# each module. MUTANTS="todo_tools._calls.arguments.*" chooses. docs/maintainers/testing-the-package.md says more.
mutants: .venv/.ready-mutants
	$(BIN)/mutmut run $(MUTANTS)
	$(BIN)/mutmut results
	$(BIN)/mutmut results --all true | sed 's/\.x[^ ]*//' | sort | uniq -c

# Builds the public interfaces and the React page into .clients and tests with them. If the machine
# lacks something, it says so and skips.
clients: .venv/.ready
	-$(BIN)/python -m pip install --quiet --group clients
	$(BIN)/python -m tests.clients

format: .venv/.ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which with make PYTHON=...")'
	@echo "Setting up .venv; the first time this takes a few minutes."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

.venv/.ready-demo: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[graphs]"
	@touch $@

.venv/.ready: .venv/.ready-demo
	$(BIN)/python -m pip install --quiet --group lint --group providers --group test
	@touch $@

.venv/.ready-mutants: .venv/.ready
	$(BIN)/python -m pip install --quiet --group mutants
	@touch $@

.venv/.ready-docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

# docs/reference.md, from the docstrings.
reference: .venv/.ready
	$(BIN)/python .ci/reference.py

# The documentation as a site in site/; a broken link is an error.
docs: .venv/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Ten docstrings, errors, comments and paragraphs at random, to be read. SAMPLE="--seed 7" draws again.
sample: | .venv/bin/python
	$(BIN)/python .ci/sample.py $(SAMPLE)

# The sizes of the repository beside what they may be.
size: | .venv/bin/python
	$(BIN)/python .ci/size.py

release-check: | .venv/bin/python
	$(BIN)/python .ci/release_check.py

# The lowest versions are for requirements only: the test groups get the newest versions that fit.
$(LOWEST)/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet "uv>=0.9"
	$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST) --resolution lowest-direct \
	  --extra graphs pyproject.toml --output-file $(LOWEST)/versions.txt
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --constraints $(LOWEST)/versions.txt \
	  --editable ".[graphs]" --group providers --group test
	@touch $@

picture: .venv/.ready
	PYTHONPATH=.ci $(BIN)/python -m picture

# Runs the notebooks and saves them with their outputs, without machine paths or time stamps.
notebooks: .venv/.ready
	$(BIN)/python -m nbconvert --to notebook --execute --inplace \
	  --ClearMetadataPreprocessor.enabled=True \
	  --ClearMetadataPreprocessor.preserve_nb_metadata_mask='{"kernelspec", ("language_info", "name")}' \
	  notebooks/*.ipynb

clean:
	rm -rf .venv $(LOWEST) site mutants .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
