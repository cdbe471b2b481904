# `make train` and `make test` do all the set-up themselves: a virtual environment, a pinned install, the job.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The pinned torch is the small CPU build; `pip` takes it from constraints.txt.
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: train test test-slow test-bounds test-interpreted test-rllib test-lowest test-newest lint format types golden stubs clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

train: $(STAMP)
	$(BIN)/python -m experiments train liars_dice --preset quick --out runs/liars_dice_quick --resume

# Every agent in every game and option is played under bounds checks, by `make test-bounds`.
test: $(STAMP)
	$(BIN)/python -m pytest -n auto -m "not slow" --ignore=tests/test_every_agent.py

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n auto -m slow

# With bounds checks kernels raise when they index outside an array. All fast tests but those of the tools around them.
TOOLS = cli kernel project train
test-bounds: $(STAMP)
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n auto -m "not slow" $(TOOLS:%=--ignore=tests/test_%.py)

# Kernels as plain Python, with fewer games and simulations (`scaled` in tests/conftest.py).
INTERPRETED = conformance every_agent mcts golden
test-interpreted: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto -m "not slow" $(INTERPRETED:%=tests/test_%.py)

# RLlib pins another Gymnasium, so it has an environment of its own. Its examples are in `experiments`, which asks for more.
test-rllib: $(VENV)-rllib/.installed
	PYTHONPATH=. $(VENV)-rllib/bin/python -m pytest -p no:cacheprovider --noconftest tests/test_rllib.py

$(VENV)-rllib/.installed: pyproject.toml constraints-rllib.txt
	$(PYTHON) -m venv $(VENV)-rllib
	$(VENV)-rllib/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints-rllib.txt --editable . "ray[rllib]" torch pytest typer rich filelock
	touch $@

# What other people's code sees of the package, with the oldest versions that pyproject.toml allows and with the newest ones.
INTERFACES = conformance extras frames illegal_action seat
INSTALL_INTERFACES = install --quiet --editable ".[experiments]" pytest pytest-xdist hypothesis
test-lowest: $(VENV)-lowest/.installed
	PYTHONPATH=. $(VENV)-lowest/bin/python -m pytest -n auto -p no:cacheprovider -m "not slow" $(INTERFACES:%=tests/test_%.py)

$(VENV)-lowest/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check $(INSTALL_INTERFACES) --constraint constraints-lowest.txt
	touch $@

# Asks for the newest versions each time. Only torch is held, to the build of constraints.txt.
test-newest:
	test -x $(VENV)-newest/bin/python || $(PYTHON) -m venv $(VENV)-newest
	grep "^torch==" constraints.txt > $(VENV)-newest/torch.txt
	$(VENV)-newest/bin/python -m pip --disable-pip-version-check $(INSTALL_INTERFACES) --upgrade --upgrade-strategy eager --constraint $(VENV)-newest/torch.txt
	PYTHONPATH=. $(VENV)-newest/bin/python -m pytest -n auto -p no:cacheprovider -m "not slow" $(INTERFACES:%=tests/test_%.py)

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

stubs: $(STAMP)
	$(BIN)/python -m tests.stubs

clean:
	rm -rf $(VENV) $(VENV)-rllib $(VENV)-lowest $(VENV)-newest build dist .pytest_cache .mypy_cache .ruff_cache
