"""Seeds: one rule at every door, a stream of its own for every run and purpose, and calls that leave the process as it was."""

import inspect
import os
import random
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import matplotlib
import numpy as np
import pettingzoo  # noqa: F401 - importing it adds a filter of warnings
import pytest
import torch
import typer.main
from threadpoolctl import threadpool_info

import dice_envs
import dice_envs.envs.sb3
from dice_envs import Batch, SeatEnv, SeatVectorEnv, configure, fatestones_v0, liars_dice_v0, measure, names
from dice_envs.agent.specs import make_agent
from dice_envs.core.dice import derived_seeds, next_u64
from dice_envs.envs.text import TextEnv
from dice_envs.exact.measuring import random_odds
from dice_envs.experiments import response
from dice_envs.experiments.__main__ import app
from dice_envs.experiments.arena import play_table, tournament
from dice_envs.experiments.commands import distill
from dice_envs.experiments.ui.pages import saved_plot
from dice_envs.games.liars_dice.exact.solver import solve
from dice_envs.learn.ppo import PPO
from dice_envs.learn.presets import preset_of
from dice_envs.table.sitting import Sitting
from tests.support.commands import run
from tests.support.subsets import few

ONE_DIE = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}
VARIANT = configure("liars_dice", **ONE_DIE)
TINY = {"num_envs": 8, "num_steps": 4, "minibatch": 16, "hidden": (8,), "epochs": 1, "threads": 1, "measure_every": 0}
PRESET = preset_of("liars_dice", "quick", steps=32, **TINY)


def make_vec_env(game=VARIANT, num_envs=4, seed=None, **arguments):
    return dice_envs.envs.sb3.make_vec_env(game, num_envs, seed=seed, **arguments)


def train(seed=None, threads=1, **arguments):
    return dice_envs.train(VARIANT, steps=32, seed=seed, settings=TINY | {"threads": threads}, **arguments)


def sb3_reset(env):
    return env.reset(), env.games.states.copy()


def openspiel(seed):
    pytest.importorskip("pyspiel")
    from dice_envs.envs.openspiel import AgentPolicy, openspiel_game

    game = openspiel_game(VARIANT)
    return AgentPolicy(game, "random", seed)._streams.copy()


# Each door takes a seed and returns something that it fixes.
DOORS = {
    "Batch": lambda seed: Batch(VARIANT, 3, seed=seed).states,
    "raw_env": lambda seed: (env := liars_dice_v0.raw_env(), env.reset(seed=seed), env._states.copy())[2],
    "env": lambda seed: (env := liars_dice_v0.env(), env.reset(seed=seed), env.last()[0]["observation"])[2],
    "parallel_env": lambda seed: fatestones_v0.parallel_env().reset(seed=seed)[0]["player_0"]["observation"],
    "SeatEnv": lambda seed: SeatEnv(VARIANT).reset(seed=seed)[0],
    "gymnasium.make": lambda seed: gymnasium.make("dice_envs/LiarsDice-v0").reset(seed=seed)[0],
    "gymnasium.make_vec": lambda seed: gymnasium.make_vec("dice_envs/LiarsDice-v0", num_envs=3).reset(seed=seed)[0],
    "vector, a list": lambda seed: SeatVectorEnv(VARIANT, 2).reset(seed=[seed, 7])[0],
    "make_vec_env": lambda seed: sb3_reset(make_vec_env(seed=seed))[0],
    "SB3VecEnv.seed": lambda seed: np.array(make_vec_env().seed(seed)),
    "TextEnv": lambda seed: TextEnv(VARIANT).reset(seed=seed)[0],
    "Sitting": lambda seed: Sitting(VARIANT, seed, ["random"] * 2).seed,
    "OpenSpiel": openspiel,
    "evaluate": lambda seed: dice_envs.evaluate(VARIANT, "random", games=10, seed=seed),
    "measure": lambda seed: measure(VARIANT, "random", seed=seed).seed,
    "random_odds": lambda seed: random_odds(VARIANT, Batch(VARIANT, 1, seed=1).states[0], seed, 20).values,
    "tournament": lambda seed: tournament(VARIANT, ["random", "numbers"], 10, seed).as_dict()["win_rate"][0][1],
    "play_table": lambda seed: play_table(VARIANT, [make_agent("random")] * 2, 10, seed),
    "train": lambda seed: train(seed).policy.layers[0][0],
}
WRONG = [True, np.bool_(True), 3.0, 1.5, np.float64(3), "3", b"3", -1, np.int64(-1), 2**128, np.timedelta64(1, "ns"), [3] * 5]


@pytest.mark.parametrize("name", DOORS)
def test_every_door_has_one_rule_for_seeds(name):
    door = DOORS[name]
    for seed in WRONG:
        with pytest.raises((ValueError, gymnasium.error.Error), match="seed must be a whole number"):
            door(seed)
    for given in (np.uint8(254), np.int64(254)):  # 254 + i does not fit into eight bits
        np.testing.assert_array_equal(door(given), door(254))
    door(0)
    if name != "gymnasium.make_vec":  # which adds the number of the game
        door(2**128 - 1)


def commands(group, words=()):
    """The words of each command that has the option --seed."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        elif "-" not in name and any("--seed" in parameter.opts for parameter in command.params):  # also with underscores
            yield (*words, name)


def test_openspiels_own_seed_is_at_most_32_bits_and_may_be_fresh():
    pytest.importorskip("pyspiel")
    from dice_envs.envs.openspiel import openspiel_game

    for seed in (seed for seed in WRONG if seed != -1):
        with pytest.raises(ValueError, match="rng_seed must be a whole number from -1"):
            openspiel_game(VARIANT, chance="sampled", rng_seed=seed)
    assert str(openspiel_game(VARIANT, rng_seed=np.uint8(254))) == str(openspiel_game(VARIANT, rng_seed=254))


@pytest.mark.thorough
def test_every_command_is_as_wide_as_the_library(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(commands(typer.main.get_command(app)))
    assert len(found) > 12
    arguments = {
        "arena": ["thirties", "random", "random"], "evaluate": ["thirties", "random"], "measure": ["thirties", "random"],
        "train": ["thirties"], "distill": ["liars_dice"], "solve": ["--draws", "2"], "play": ["thirties"],
        "benchmark": ["random"],
    }  # fmt: skip
    for words in found:
        result = run(*words, *arguments.get(words[0], []), "--seed", str(2**128))
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (
            2, f"error: seed must be a whole number from 0 to 2**128 - 1, not {2**128}"
        ), words  # fmt: skip
    widest = run("evaluate", "thirties", "random", "--games", "10", "--seed", str(2**128 - 1))
    assert str(2**128 - 1) in "".join(widest.output.split())


def drawn(streams):
    """The next draws of all streams of a run."""
    return {int(next_u64(stream)) for stream in np.array(streams, copy=True).reshape(-1)}


@few(2, "game", names())
def test_runs_share_no_stream_with_each_other_nor_one_run_two(game):
    variant = configure(game)
    seen = set()
    for seed in range(5):
        model = PPO(dice_envs.core.game.single_seat(game), preset_of(game, "quick", **TINY), "random", seed)
        games = model.env._games
        parts = [games.states["rng"].view([("rng", np.uint64)]), games.streams]
        parts += [Batch(variant, 8, seed).states["rng"].view([("rng", np.uint64)])]
        for part in parts:
            found = drawn(part)
            assert len(found) == part.size, "each game has its own"
            assert not found & seen
            seen |= found


def test_the_learners_draws_and_weights_are_the_runs_own():
    models = [PPO(VARIANT, PRESET, "random", seed) for seed in (1, 1, 2)]
    weights = [next(model.networks.parameters()).tolist() for model in models]
    for model in models:
        model.iterate()
    draws = [torch.rand(4, generator=model._draws).tolist() for model in models]
    for each in (draws, weights):
        assert each[0] == each[1] != each[2]
    assert torch.rand(4, generator=torch.Generator().manual_seed(1)).tolist() != draws[0], "not the run's seed itself"
    purposes = ("games", "weights", "draws", "positions", "pool", "pairs", "own search", "again", "evaluation", "play")
    assert len({seed for purpose in purposes for run in range(5) for seed in derived_seeds(run, purpose, 10)}) == 500
    assert derived_seeds(None, "games") != derived_seeds(None, "games")


def test_np_random_seed_repeats_the_games():
    for env in (SeatEnv(VARIANT), SeatVectorEnv(VARIANT, 3)):
        first, _ = env.reset()
        np.testing.assert_array_equal(env.reset(seed=env.np_random_seed)[0], first)
        env.reset(seed=11)
        env.reset()
        assert env.np_random_seed == 11, "the stream continues"
        expected, _ = gymnasium.utils.seeding.np_random(11)
        assert env.np_random.random() == expected.random()
    for arguments in ({"seed": [4, 5, 6]}, {"seed": 4, "options": {"reset_mask": np.array([True, False, True])}}):
        env.reset(seed=11)
        env.reset(**arguments)
        assert env.np_random_seed == -1, "no single seed repeats them"


# --- the caller's process -----------------------------------------------------------------------------------------------


def process():
    """Everything of a process that a library call could leave changed."""
    numpy_state = np.random.get_state()  # noqa: NPY002
    return {
        "PyTorch's threads": (torch.get_num_threads(), ThreadPoolExecutor(1).submit(torch.get_num_threads).result()),
        "BLAS threads": [(each["user_api"], each["num_threads"]) for each in threadpool_info()],
        "NumPy's stream": (numpy_state[1].tolist(), *numpy_state[2:]),
        "Python's stream": random.getstate(),
        "PyTorch's stream": torch.get_rng_state().tolist(),
        "PyTorch's flags": (
            torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark,
            torch.get_default_dtype(), torch.is_grad_enabled(),
        ),
        "environment": dict(os.environ),
        "filters of warnings": list(warnings.filters),
        "floating-point errors": np.geterr(),
        "print options": np.get_printoptions(),
        "matplotlib": matplotlib.rcParams.copy(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "folder": os.getcwd(),
    }  # fmt: skip


class Net:
    """A user's network as an agent."""

    def __init__(self):
        self.layer = torch.nn.Linear(VARIANT.facts.observation_size, VARIANT.facts.num_actions)

    def probabilities(self, turn):
        with torch.no_grad():
            logits = self.layer(torch.from_numpy(turn.observations))
        return torch.softmax(logits.masked_fill(torch.from_numpy(turn.legal) == 0, -torch.inf), dim=1).numpy()


NET = Net()


def plot(folder):
    folder.mkdir()
    with saved_plot(folder, "plot") as (_, axes):
        axes.plot([1, 2])


def distilled(folder):
    small = distill.Learner(VARIANT, (), distill.DistillSettings((8,), steps=2), seed=1)
    distill.train(small, distill.TrainingPositions(VARIANT, solve(VARIANT, 1e-2), seed=1), lambda made, loss: None)


CALLS = {  # `make test` makes the first seven
    "train": lambda folder: train(seed=1),
    "train sb3": lambda folder: train(seed=1, learner="sb3"),
    "evaluate": lambda folder: dice_envs.evaluate(VARIANT, NET, games=10, seed=1),
    "make_vec_env": lambda folder: sb3_reset(make_vec_env()),
    "make_vec": lambda folder: gymnasium.make_vec("dice_envs/Thirties-v0", num_envs=3).reset(),
    "saved_plot": plot,
    "TextEnv": lambda folder: TextEnv(VARIANT).reset(seed=1),
    "train, resumed": lambda folder: [
        dice_envs.train(VARIANT, steps=steps, seed=1, settings=TINY, folder=folder) for steps in (32, 64)
    ],
    "train_response": lambda folder: response.train_response(VARIANT, make_agent("random"), 1e-4, 1, PRESET),
    "measure_response": lambda folder: response.measure_response(VARIANT, "r", make_agent("random"), 1e-4, 10, 1, PRESET),
    "distill": distilled,
    "measure": lambda folder: measure(VARIANT, NET),
    "tournament": lambda folder: tournament(VARIANT, ["random", "mcts:10"], 4, 1),
}


@few(7, "name", CALLS)
def test_a_call_leaves_the_process_as_it_was(name, tmp_path):
    CALLS[name](tmp_path / "first")  # imports what it needs
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        before = process()
        CALLS[name](tmp_path / "second")
        after = process()
    finally:
        torch.set_num_threads(threads)
    assert {what: value for what, value in after.items() if value != before[what]} == {}


@pytest.mark.parametrize("learner", ["ppo", "sb3"])
def test_trainings_at_once_find_what_each_finds_alone_and_leave_the_process_as_it_was(learner, threads_change_often):
    def trained(seed):
        found = train(seed, threads=1 + seed % 2, learner=learner)
        return [array.tolist() for layer in found.policy.layers for array in layer], torch.get_num_threads()

    alone, before = [trained(seed) for seed in range(6)], process()
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(trained, range(6))) == alone
    assert process() == before


def test_the_learner_works_with_the_threads_of_its_preset(monkeypatch):
    threads = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    response.train_response(VARIANT, make_agent("random"), 1e-4, 1, PRESET)
    assert PRESET.threads in threads
    assert inspect.unwrap(distill.train) is not distill.train


WORDS_AND_GAMES = """
import anyio, numba, numpy, typer.main
from dice_envs import Uniform, configure, load, names
from dice_envs.experiments import __main__, arena, assistant
from dice_envs.table.rules import rules_text
numpy.seterr(all="raise", over="ignore" if numba.config.DISABLE_JIT else "raise")  # random streams wrap around
games = assistant.Games()
print(games.list_games(), anyio.run(assistant.make_server(games).list_tools))
print([command.help for command in typer.main.get_command(__main__.app).commands.values()])
for name in names():
    print(rules_text(load(name)), games.rules(name), games.new_game(name, seat=0, seed=1))
    print(arena.play_table(configure(name), [Uniform()] * configure(name).facts.num_seats, 5, 1))
"""


@pytest.mark.thorough
def test_every_interpreter_says_and_plays_the_same(run_python):
    """With warnings and floating-point errors raised; without docstrings, and kernels; with sets in other orders."""
    kinds = {}, {"PYTHONWARNINGS": "error"}, {"PYTHONOPTIMIZE": "2", "NUMBA_DISABLE_JIT": "1"}
    first, *others = (run_python(WORDS_AND_GAMES, PYTHONHASHSEED=str(seed), **kind) for seed, kind in enumerate(kinds))
    assert others == [first, first]
