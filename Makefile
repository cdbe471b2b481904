# `make train` and `make test` set everything up first: a virtual environment with pinned versions.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Python compiles what is imported when it is imported: most of what is installed never is, and compiling all of it takes longer than
# the rest of the installation.
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet --no-compile
# What is imported is kept compiled, even where the surroundings (container images do) say otherwise: the tests start hundreds of
# processes, and each would compile PyTorch and the rest again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train train-nash play example check test nightly docs figures lint types format gpu environments clean
.SECONDEXPANSION:

# --- environments -----------------------------------------------------------------------------------------------------------------------

# What is installed in $(VENV), and in $(VENV)-NAME for each other name, with the versions of constraints/NAME.txt.
INSTALL_dev = --editable ".[dev]"
# For `make play`, without PyTorch and the tools, which take minutes to install.
INSTALL_play = --editable ".[web]"
# RLlib pins another Gymnasium. Its examples are in `experiments`, which needs the extra `commands`.
INSTALL_rllib = --editable ".[commands]" "ray[rllib]" torch pytest
# Tianshou brings packages that nothing else here needs (pandas, h5py, virtualenv).
INSTALL_tianshou = --editable ".[experiments]" tianshou pytest
# TextArena and verifiers bring a hundred packages of model providers.
INSTALL_words = --editable ".[commands,textarena,verifiers]" pytest
INSTALL_cuda = --editable . "numba-cuda[cu13]" pytest
INSTALL_lowest = --editable ".[experiments]" pytest pytest-xdist hypothesis
CONSTRAINTS_play = dev

$(STAMP): pyproject.toml constraints/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --constraint constraints/dev.txt $(INSTALL_dev)
	touch $@

$(VENV)-%/.installed: pyproject.toml constraints/$$(or $$(CONSTRAINTS_$$*),$$*).txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP_INSTALL) --constraint $(lastword $^) $(INSTALL_$*)
	touch $@

# Those that CI needs; `make --jobs 2 environments` sets up two at a time.
environments: $(STAMP) $(patsubst %,$(VENV)-%/.installed,rllib tianshou words cuda lowest)

# --- programs ---------------------------------------------------------------------------------------------------------------------------

train: $(STAMP)
	$(BIN)/dice-envs train liars_dice --preset quick --seed 1 --out runs/liars_dice_quick --resume

# Self-play, to be hard to exploit: one die each, the distance from an equilibrium measured exactly on the way.
train-nash: $(STAMP)
	$(BIN)/dice-envs train liars_dice --preset equilibrium -o rules=openspiel -o num_dice=1 --steps 5000000 --set minibatch=512 --set settle=true --seed 1 --out runs/liars_dice_nash --resume

# A page in the browser with all games; ARGS=--no-browser opens no browser. Uses $(VENV) if it is there.
PLAY_VENV = $(if $(wildcard $(STAMP)),$(VENV),$(VENV)-play)
play: $$(PLAY_VENV)/.installed
	$(PLAY_VENV)/bin/dice-envs play --web $(ARGS)

# Run one of experiments/examples: make example NAME=sb3_ppo ARGS="--algorithm dqn". Those whose names begin with rllib_ or tianshou_
# have their own environments.
EXAMPLES = $(filter-out __init__,$(basename $(notdir $(wildcard experiments/examples/*.py))))
OWN_VENVS = rllib tianshou
EXAMPLE_VENV = $(VENV)$(strip $(foreach own,$(OWN_VENVS),$(if $(filter $(own)_%,$(NAME)),-$(own))))
example: $$(EXAMPLE_VENV)/.installed
	$(EXAMPLE_VENV)/bin/python -m experiments.examples.$(or $(NAME),$(error which example? NAME=, one of $(EXAMPLES))) $(ARGS)

# --- checks -----------------------------------------------------------------------------------------------------------------------------

# With bounds checks, kernels raise when they index outside an array. Less optimisation makes them compile faster. Jobs with these
# settings share compiled kernels, also from other environments with the same numba and NumPy.
CHECKED = NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1
PYTEST = $(BIN)/python -m pytest
FAST = -m "not slow and not thorough and not web"

# Before a commit: linters, types, every game's contract, and the tests of what has changed since BASE.
BASE ?= main
check: $(STAMP) lint types
	$(CHECKED) $(PYTEST) -n auto $(FAST) tests/games/test_conformance.py $$($(BIN)/python -m tests.support.changed $(BASE))

# The tests of a file share kernels and solutions, so one process runs them all.
test: $(STAMP)
	$(CHECKED) $(BIN)/python -m pytest -n auto --dist loadfile $(FAST)

# `make test-NAME` runs other tests, in the environment of that name if there is one.
test-%: $(VENV)$$(if $$(INSTALL_$$*),-$$*)/.installed
	$(or $(TEST_$*),$(error there are no tests of the name $*))

# The golden playthroughs once more, with kernels optimised as users run them.
TEST_golden = $(PYTEST) -m golden tests/games/test_golden.py
# Kernels compute for long, optimised as users run them. They are all compiled anew: what is long for another reason is `thorough`.
TEST_slow = $(PYTEST) -n auto -m "slow and not web"
# Every agent with every game and option, invalid inputs, training, kills, Ray, and the longer of the short tests.
TEST_thorough = $(CHECKED) $(PYTEST) -n auto -m "thorough and not slow and not web"
# The page in a browser, which tests/experiments/web/install-browser installs if there is none.
TEST_web = $(CHECKED) $(PYTEST) -m web tests/experiments/web
# The guides of docs/extend: their examples are put in place and run.
TEST_guides = $(CHECKED) $(PYTEST) tests/test_extend.py
# More kills, invalid inputs and concurrent processes. KILLS: of each command; FUZZ: factor on the usual number of examples.
KILLS ?= 50
FUZZ ?= 50
TEST_survival = KILLS=$(KILLS) FUZZ=$(FUZZ) $(PYTEST) tests/test_kills.py tests/test_fuzz.py tests/test_crowds.py
# Kernels as plain Python, with fewer games and simulations (`scaled` in tests/conftest.py).
INTERPRETED = games/test_conformance agents/test_every_agent agents/mcts/test_room games/test_golden
TEST_interpreted = NUMBA_DISABLE_JIT=1 $(PYTEST) -n auto -m "not slow" $(INTERPRETED:%=tests/%.py)

APART = PYTHONPATH=. $(CHECKED) $(VENV)-$*/bin/python -m pytest -p no:cacheprovider
APART_ALONE = $(APART) --noconftest -p tests.support.libraries
TEST_rllib = $(APART_ALONE) tests/envs/test_rllib.py
TEST_tianshou = $(APART_ALONE) tests/envs/test_tianshou.py
TEST_words = $(APART_ALONE) tests/envs/test_textarena.py tests/envs/test_verifiers.py
# Kernels compiled for CUDA, which takes no GPU.
TEST_cuda = $(APART_ALONE) tests/cuda
# The interfaces to other libraries, with the lowest versions that pyproject.toml allows and with the newest ones.
INTERFACES = games/test_conformance core/test_extras envs/test_frames envs/test_illegal_action envs/test_seat
TEST_lowest = $(APART) -n auto -m "not slow and not thorough" $(INTERFACES:%=tests/%.py)
# Installs the newest versions each time, except torch, which stays at the build of constraints/dev.txt.
define TEST_newest
test -x $(VENV)-newest/bin/python || $(PYTHON) -m venv $(VENV)-newest
grep "^torch==" constraints/dev.txt > $(VENV)-newest/torch.txt
$(VENV)-newest/bin/python $(PIP_INSTALL) $(INSTALL_lowest) --upgrade --upgrade-strategy eager --constraint $(VENV)-newest/torch.txt
$(APART) -n auto -m "not slow and not thorough" $(INTERFACES:%=tests/%.py)
endef

# What `.ci/run` leaves out. .libraries gathers what both ran for docs/libraries.md.
nightly: export LIBRARIES ?= $(CURDIR)/.libraries
nightly: test-slow test-thorough test-interpreted test-newest

# On a machine with a GPU: the tests that need one, then what docs/gpu.md lists, in less than ten minutes. It uses an environment that is
# there: GPU_PYTHON, with the extras `cuda` and `experiments`, and pytest and hypothesis. Figures are printed last and stay in build/gpu.
GPU_PYTHON ?= python3
GPU_RUN = PYTHONUNBUFFERED=1 COLUMNS=250 timeout --kill-after 5
GPU_TESTS = cuda/test_training envs/test_tensor exact/test_measure
gpu:
	rm -rf build/gpu
	mkdir -p build/gpu
	-$(GPU_RUN) 140 $(GPU_PYTHON) -m pytest -q -m cuda -p no:cacheprovider $(GPU_TESTS:%=tests/%.py) > build/gpu/1_tests.txt 2>&1
	-$(GPU_RUN) 130 $(GPU_PYTHON) -m experiments bench tensors --device cuda --json build/gpu/tensors.json > build/gpu/2_tensors.txt 2>&1
	-$(GPU_RUN) 320 $(GPU_PYTHON) -m experiments bench training --device cuda --json build/gpu/training.json > build/gpu/3_training.txt 2>&1
	tail -n 50 build/gpu/*.txt

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

# --- documents --------------------------------------------------------------------------------------------------------------------------

# Write what is made from the code: `make figures` or NAME=pages the pages such as docs/games and their tables, `pictures` the
# games' moving pictures, `golden` the golden playthroughs and the score sheet (read the differences before you commit them), `stubs` the
# type stubs of `dice_envs.GAME_v0`, `algorithms` the plot of docs/algorithms.md, `luck` and `language` docs/luck.json and docs/language.json (ten minutes each), `results` docs/results,
# published figures beside ours (half an hour), `constraints` the versions of the environments, `libraries`
# docs/libraries.md from what `.ci/run` and then `make nightly` have recorded.
figures: $(STAMP)
	$(foreach name,$(or $(NAME),pages),$(call FIGURE,$(name)))

define FIGURE
$(or $(FIGURES_$(1)),$(error there are no figures of the name $(1)))

endef
FIGURES_pages = $(CHECKED) $(BIN)/python docs/generate.py pages
FIGURES_pictures = $(BIN)/python docs/generate.py pictures
FIGURES_golden = $(BIN)/python -m tests.support.golden
FIGURES_stubs = $(BIN)/python -m tests.support.stubs
FIGURES_algorithms = $(BIN)/python docs/generate.py algorithms
FIGURES_luck = $(BIN)/python docs/generate.py luck
FIGURES_language = $(BIN)/dice-envs benchmark language --json docs/language.json
FIGURES_libraries = $(BIN)/python -m tests.support.libraries write .libraries
REPRODUCE_thirties = thirties
REPRODUCE_score_dice = score-dice
REPRODUCE_shakes = shakes --seed 1 --games 100000
REPRODUCE_liars_dice = liars-dice --seed 1
REPRODUCE_fatestones = fatestones --seed 1 --games 20000 --work 1 --most 1000
define RESULT
mkdir -p build/results
$(BIN)/dice-envs reproduce $(REPRODUCE_$(1)) --json build/results/$(1).json
$(BIN)/python docs/generate.py "reproduce $(REPRODUCE_$(1))" build/results/$(1).json

endef
FIGURES_results = $(foreach game,thirties score_dice shakes liars_dice fatestones,$(call RESULT,$(game)))

# constraints/*.txt anew: the newest versions that go together, of all environments or those of PINS; torch stays the small CPU build. The
# lower bounds in lowest.txt are those of pyproject.toml.
PINS ?= dev rllib tianshou words cuda
FIGURES_constraints = $(foreach name,$(PINS),$(call PIN,$(name)))
define PIN
rm -rf build/pins
$(PYTHON) -m venv build/pins
grep "^torch==" constraints/dev.txt > build/pins/torch.txt
build/pins/bin/python $(PIP_INSTALL) --constraint build/pins/torch.txt $(INSTALL_$(1))
build/pins/bin/python -m pip freeze --exclude-editable > build/pins/$(1).txt
mv build/pins/$(1).txt constraints/$(1).txt

endef

# Build the documentation, with warnings as errors and without network access. `make docs BUILDER=linkcheck` checks links to other sites.
BUILDER ?= html
docs: $(STAMP)
	$(FIGURES_pages)
	$(CHECKED) $(BIN)/python -m sphinx -b $(BUILDER) $(if $(filter html,$(BUILDER)),--fail-on-warning --keep-going) --quiet docs docs/_build/$(BUILDER)

clean:
	rm -rf docs/_build $(VENV) $(VENV)-* build dist .pytest_cache .mypy_cache .ruff_cache
