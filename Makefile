# `make train` and `make test` do all the set-up themselves: a virtual environment, a pinned install, the job.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The pinned torch is the small CPU build; `pip` takes it from constraints.txt.
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: train test test-slow lint format types golden clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

train: $(STAMP)
	$(BIN)/python -m experiments train liars_dice --preset quick --out runs/liars_dice_quick

test: $(STAMP)
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n auto -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/mypy

golden: $(STAMP)
	$(BIN)/python -m tests.golden

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
