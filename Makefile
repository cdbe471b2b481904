# `make train` and `make test` set everything up first: a virtual environment with pinned versions.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The pinned torch is the small CPU build; `pip` takes it from constraints.txt. Python compiles what is imported when it is
# imported: most of what is installed never is, and compiling all of it takes longer than the rest of the installation.
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet --no-compile
# What is imported is kept compiled, even where the surroundings (container images do) say otherwise: the tests start hundreds of
# processes, and each would compile PyTorch and the rest again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train train-nash play example check test test-golden test-slow test-web test-survival test-thorough test-interpreted test-rllib test-tianshou test-words
.PHONY: test-cuda test-lowest test-newest nightly libraries environments gpu mutants docs docs-links pages pictures results luck language lint format types golden stubs clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

# The virtual environments that CI needs; `make --jobs 2 environments` sets up two at a time.
environments: $(STAMP) $(VENV)-rllib/.installed $(VENV)-tianshou/.installed $(VENV)-words/.installed $(VENV)-cuda/.installed $(VENV)-lowest/.installed

train: $(STAMP)
	$(BIN)/dice-envs train liars_dice --preset quick --seed 1 --out runs/liars_dice_quick --resume

# Self-play, to be hard to exploit: one die each, the distance from an equilibrium measured exactly on the way.
train-nash: $(STAMP)
	$(BIN)/dice-envs train liars_dice --preset equilibrium -o rules=openspiel -o num_dice=1 --steps 5000000 --set minibatch=512 --set settle=true --seed 1 --out runs/liars_dice_nash --resume

# A page in the browser with all games; ARGS=--no-browser opens no browser. Uses $(VENV) if it is there, else a smaller
# environment without PyTorch and the tools, which take minutes to install.
PLAY_VENV = $(if $(wildcard $(STAMP)),$(VENV),$(VENV)-play)
play: $(PLAY_VENV)/.installed
	$(PLAY_VENV)/bin/dice-envs play --web $(ARGS)

$(VENV)-play/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-play
	$(VENV)-play/bin/python $(PIP_INSTALL) --constraint constraints.txt --editable ".[web]"
	touch $@

# Run one of experiments/examples: make example NAME=sb3_ppo ARGS="--algorithm dqn". Frameworks that pin other versions have their
# own environments: $(VENV)-rllib for examples whose names begin with rllib_, and so on.
EXAMPLES = $(filter-out __init__,$(basename $(notdir $(wildcard experiments/examples/*.py))))
OWN_VENVS = rllib tianshou
EXAMPLE_VENV = $(VENV)$(strip $(foreach own,$(OWN_VENVS),$(if $(filter $(own)_%,$(NAME)),-$(own))))
example: $(EXAMPLE_VENV)/.installed
	$(EXAMPLE_VENV)/bin/python -m experiments.examples.$(or $(NAME),$(error which example? NAME=, one of $(EXAMPLES))) $(ARGS)

# With bounds checks, kernels raise when they index outside an array. Less optimisation makes them compile faster. Jobs with these
# settings share compiled kernels, also from other environments with the same numba and NumPy.
CHECKED = NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1
FAST = -m "not slow and not thorough and not web"

# Before a commit: linters, types, every game's contract, and the tests of what has changed since BASE.
BASE ?= main
check: $(STAMP) lint types
	$(CHECKED) $(BIN)/python -m pytest -n auto $(FAST) tests/games/test_conformance.py $$($(BIN)/python -m tests.support.changed $(BASE))

# The tests of a file share kernels and solutions, so one process runs them all.
test: $(STAMP)
	$(CHECKED) $(BIN)/python -m pytest -n auto --dist loadfile $(FAST)

# The golden playthroughs once more, with kernels optimised as users run them.
test-golden: $(STAMP)
	$(BIN)/python -m pytest -m golden tests/games/test_golden.py

# What `.ci/run` leaves out. .libraries gathers what both ran for docs/libraries.md.
nightly: export LIBRARIES ?= $(CURDIR)/.libraries
nightly: test-slow test-thorough test-interpreted test-newest

# Tests in which kernels compute for long, optimised as users run them. They are all compiled anew: what is long for another
# reason belongs to `thorough`.
test-slow: $(STAMP)
	$(BIN)/python -m pytest -n auto -m "slow and not web"

# The page in a browser, which tests/experiments/web/install-browser installs if there is none.
test-web: $(STAMP)
	$(CHECKED) $(BIN)/python -m pytest -m web tests/experiments/web

# More kills, invalid inputs and concurrent processes. KILLS: of each command; FUZZ: factor on the usual number of examples.
KILLS ?= 50
FUZZ ?= 50
test-survival: $(STAMP)
	KILLS=$(KILLS) FUZZ=$(FUZZ) $(BIN)/python -m pytest tests/test_kills.py tests/test_fuzz.py tests/test_crowds.py

# Mutation testing of the committed code: which random small faults do the tests miss? ARGS="--seed 2 --count 50". Nothing else
# here needs coverage.
mutants: $(STAMP)
	$(BIN)/python $(PIP_INSTALL) --constraint constraints.txt pytest-cov
	$(BIN)/python -m tests.support.mutants $(ARGS)

# The tests that `make test` leaves out: every agent with every game and option, invalid inputs, training, kills, Ray, and the longer
# of the short tests.
test-thorough: $(STAMP)
	$(CHECKED) $(BIN)/python -m pytest -n auto -m "thorough and not slow and not web"

# Kernels as plain Python, with fewer games and simulations (`scaled` in tests/conftest.py).
INTERPRETED = games/test_conformance agents/test_every_agent agents/mcts/test_room games/test_golden
test-interpreted: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto -m "not slow" $(INTERPRETED:%=tests/%.py)

# RLlib pins another Gymnasium, so it has its own environment. Its examples are in `experiments`, which needs the extra `commands`.
test-rllib: $(VENV)-rllib/.installed
	PYTHONPATH=. $(CHECKED) $(VENV)-rllib/bin/python -m pytest -p no:cacheprovider --noconftest -p tests.support.libraries tests/envs/test_rllib.py

$(VENV)-rllib/.installed: pyproject.toml constraints-rllib.txt
	$(PYTHON) -m venv $(VENV)-rllib
	$(VENV)-rllib/bin/python $(PIP_INSTALL) --constraint constraints-rllib.txt --editable ".[commands]" "ray[rllib]" torch pytest
	touch $@

# Tianshou brings packages that nothing else here needs (pandas, h5py, virtualenv), so it has its own environment, too.
test-tianshou: $(VENV)-tianshou/.installed
	PYTHONPATH=. $(CHECKED) $(VENV)-tianshou/bin/python -m pytest -p no:cacheprovider --noconftest -p tests.support.libraries tests/envs/test_tianshou.py

$(VENV)-tianshou/.installed: pyproject.toml constraints-tianshou.txt
	$(PYTHON) -m venv $(VENV)-tianshou
	$(VENV)-tianshou/bin/python $(PIP_INSTALL) --constraint constraints-tianshou.txt --editable ".[experiments]" tianshou pytest
	touch $@

# TextArena and verifiers bring a hundred packages of model providers, so games in words have their own environment, too.
test-words: $(VENV)-words/.installed
	PYTHONPATH=. $(CHECKED) $(VENV)-words/bin/python -m pytest -p no:cacheprovider --noconftest -p tests.support.libraries $(WORDS:%=tests/envs/test_%.py)

WORDS = textarena verifiers
$(VENV)-words/.installed: pyproject.toml constraints-words.txt
	$(PYTHON) -m venv $(VENV)-words
	$(VENV)-words/bin/python $(PIP_INSTALL) --constraint constraints-words.txt --editable ".[commands,textarena,verifiers]" pytest
	touch $@

# Kernels compiled for CUDA, which takes no GPU.
test-cuda: $(VENV)-cuda/.installed
	PYTHONPATH=. $(CHECKED) $(VENV)-cuda/bin/python -m pytest -p no:cacheprovider --noconftest -p tests.support.libraries tests/cuda

$(VENV)-cuda/.installed: pyproject.toml constraints-cuda.txt
	$(PYTHON) -m venv $(VENV)-cuda
	$(VENV)-cuda/bin/python $(PIP_INSTALL) --constraint constraints-cuda.txt --editable . "numba-cuda[cu13]" pytest
	touch $@

# On a machine with a GPU: the tests that need one, then what docs/gpu.md lists, in less than ten minutes. It uses an environment that is
# there: GPU_PYTHON, with the extras `cuda` and `experiments`, and pytest and hypothesis. Figures are printed last and stay in build/gpu.
GPU_PYTHON ?= python3
GPU_RUN = PYTHONUNBUFFERED=1 COLUMNS=250 timeout --kill-after 5
gpu:
	rm -rf build/gpu
	mkdir -p build/gpu
	-$(GPU_RUN) 140 $(GPU_PYTHON) -m pytest -q -m cuda -p no:cacheprovider $(GPU_TESTS:%=tests/%.py) > build/gpu/1_tests.txt 2>&1
	-$(GPU_RUN) 130 $(GPU_PYTHON) -m experiments bench tensors --device cuda --json build/gpu/tensors.json > build/gpu/2_tensors.txt 2>&1
	-$(GPU_RUN) 320 $(GPU_PYTHON) -m experiments bench training --device cuda --json build/gpu/training.json > build/gpu/3_training.txt 2>&1
	tail -n 50 build/gpu/*.txt

GPU_TESTS = cuda/test_training envs/test_tensor exact/test_measure

# The interfaces to other libraries, with the lowest versions that pyproject.toml allows and with the newest ones.
INTERFACES = games/test_conformance core/test_extras envs/test_frames envs/test_illegal_action envs/test_seat
INSTALL_INTERFACES = $(PIP_INSTALL) --editable ".[experiments]" pytest pytest-xdist hypothesis
test-lowest: $(VENV)-lowest/.installed
	PYTHONPATH=. $(CHECKED) $(VENV)-lowest/bin/python -m pytest -n auto -p no:cacheprovider -m "not slow and not thorough" $(INTERFACES:%=tests/%.py)

$(VENV)-lowest/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python $(INSTALL_INTERFACES) --constraint constraints-lowest.txt
	touch $@

# Installs the newest versions each time, except torch, which stays at the build of constraints.txt.
test-newest:
	test -x $(VENV)-newest/bin/python || $(PYTHON) -m venv $(VENV)-newest
	grep "^torch==" constraints.txt > $(VENV)-newest/torch.txt
	$(VENV)-newest/bin/python $(INSTALL_INTERFACES) --upgrade --upgrade-strategy eager --constraint $(VENV)-newest/torch.txt
	PYTHONPATH=. $(CHECKED) $(VENV)-newest/bin/python -m pytest -n auto -p no:cacheprovider -m "not slow and not thorough" $(INTERFACES:%=tests/%.py)

# Write docs/results: published figures beside ours, for the games' pages. Takes half an hour.
RESULTS = thirties score_dice shakes liars_dice fatestones
REPRODUCE_thirties = thirties
REPRODUCE_score_dice = score-dice
REPRODUCE_shakes = shakes --seed 1 --games 100000
REPRODUCE_liars_dice = liars-dice --seed 1
REPRODUCE_fatestones = fatestones --seed 1 --games 20000 --work 1 --most 1000
results: $(RESULTS:%=result-%)
result-%: $(STAMP)
	mkdir -p build/results
	$(BIN)/dice-envs reproduce $(REPRODUCE_$*) --json build/results/$*.json
	$(BIN)/python docs/generate.py "reproduce $(REPRODUCE_$*)" build/results/$*.json

# Write docs/luck.json: players of all games, evaluated with and without luck. Takes about ten minutes.
luck: $(STAMP)
	$(BIN)/python docs/generate.py luck

# Write docs/language.json: scripted players of five tasks, through words. Takes about ten minutes.
language: $(STAMP)
	$(BIN)/dice-envs benchmark language --json docs/language.json

# Write docs/libraries.md from what `.ci/run` and then `make nightly` have recorded.
libraries: $(STAMP)
	$(BIN)/python -m tests.support.libraries write .libraries

# Write the pages that are made from the code, such as docs/games, and their tables. `pictures` draws the games' moving pictures.
pages: $(STAMP)
	$(CHECKED) $(BIN)/python docs/generate.py pages

pictures: $(STAMP)
	$(BIN)/python docs/generate.py pictures

# Build the documentation, with warnings as errors and without network access. `docs-links` checks links to other sites.
docs: pages
	$(CHECKED) $(BIN)/python -m sphinx -b html --fail-on-warning --keep-going --quiet docs docs/_build/html

docs-links: $(STAMP)
	$(BIN)/python -m sphinx -b linkcheck --quiet docs docs/_build/links

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# mypy finds packages by their folders, so it gets one that looks like the wheel: `dice_envs` with the two others inside.
types: $(STAMP)
	rm -rf .mypy_cache/wheel
	mkdir -p .mypy_cache/wheel/dice_envs
	ln -s $(CURDIR)/dice_envs/* $(CURDIR)/agents $(CURDIR)/experiments .mypy_cache/wheel/dice_envs
	$(BIN)/mypy

golden: $(STAMP)
	$(BIN)/python -m tests.support.golden

stubs: $(STAMP)
	$(BIN)/python -m tests.support.stubs

clean:
	rm -rf docs/_build $(VENV) $(VENV)-play $(VENV)-rllib $(VENV)-tianshou $(VENV)-words $(VENV)-cuda $(VENV)-lowest $(VENV)-newest build dist .pytest_cache .mypy_cache .ruff_cache
