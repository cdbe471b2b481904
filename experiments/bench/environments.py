"""Speed of environments, from kernels to Python interfaces, beside OpenSpiel and ordinary environments."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np

from dice_envs import Batch, configure, liars_dice_v0
from dice_envs.agent.specs import make_agent
from dice_envs.core.dice import STREAM, below, choose_from_mask, new_streams
from dice_envs.core.game import OVER
from dice_envs.core.kernel import kernel
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.bench import BenchPart, BenchRow, best_rate, best_seconds

VECTOR_GAMES = 4096
SPIEL = "pyspiel from Python, the same game"
ONE_ROUND: dict[str, Any] = {"rules": "openspiel", "num_dice": 5}  # the game that OpenSpiel has

LIARS_DICE = "dice_envs/LiarsDice-v0"
CART_POLE = "CartPole-v1"

# Run in a fresh process: the import, and the first game, observation, mask and action.
FIRST_STEP = """
import time
begun = time.perf_counter()
import gymnasium
{imports}
imported = time.perf_counter()
{steps}
print(imported - begun, time.perf_counter() - imported)
"""
AEC_STEP = """
env = game.raw_env()
env.reset(seed=0)
env.step(int(env.last()[0]["action_mask"].argmax()))
"""
STEP = """
env = gymnasium.make("{id}")
mask = env.reset(seed=0)[1].get("action_mask")
env.step(0 if mask is None else int(mask.argmax()))
"""
VECTOR_STEP = """
vector = gymnasium.make_vec("{id}", num_envs=16)
masks = vector.reset(seed=0)[1].get("action_mask")
vector.step(vector.action_space.sample() if masks is None else masks.argmax(axis=1))
"""
OURS, CONNECT_FOUR = "from dice_envs import liars_dice_v0 as game", "from pettingzoo.classic import connect_four_v3 as game"


@kernel
def _roll(streams, count):
    total = 0
    for _ in range(count):
        total += below(streams[0], 6)
    return total


@kernel
def _choose_all(streams, masks, actions):
    """Draw a random legal action for each game. `streams` and `actions` are modified in place."""
    for k in range(len(masks)):
        actions[k] = choose_from_mask(streams[k], masks[k])


def _machine(quick: bool) -> Iterator[BenchRow]:
    """Measure the machine itself, without a game."""
    streams = np.zeros(1, STREAM)
    compiled = not isinstance(_roll, type(_machine))
    rate = best_rate(lambda: _roll(streams, 10_000_000), 10) if compiled else 0.0
    yield BenchRow("this machine: dice rolled", rate, "M/s", note="about 2,000 where the aims were set")


_ONE_DIE = {"rules": "openspiel", "num_dice": 1}
# Random play in compiled code: game, row, options, games at once, steps of each, and more of the row.
_PLAYS: tuple[tuple[str, str, dict[str, Any], int, int, dict[str, Any]], ...] = (
    ("liars_dice", "random playouts, two players, five dice, elimination", {}, 64, 200_000, {"aim": 60.0}),
    ("liars_dice", "random playouts, one round of one die each, OpenSpiel rules", _ONE_DIE, 64, 200_000, {}),
    ("fatestones", "FateStones: random play, steps", {}, 1024, 2000, {}),
    ("score_dice", "score dice: random play, 5d6 v 5d6", {}, 1000, 10_000, {"note": "steps on one core"}),
    ("thirties", "thirties: random play, one player", {"num_players": 1}, 1000, 2000, {"note": "decisions, on one core"}),
    ("thirties", "thirties: random play, table of four", {"num_players": 4}, 1000, 2000, {"note": "decisions, on one core"}),
)


def _random_play(number: int, quick: bool) -> Iterator[BenchRow]:
    """Measure millions of random steps a second; games are dealt again when they end."""
    game, name, options, games, steps, more = _PLAYS[number]
    batch, steps = Batch(configure(game, **options), games, seed=1), steps // 10 if quick else steps
    kernels = batch.variant.kernels
    rate = best_rate(lambda: kernels.playouts(batch.states, steps), games * steps / 1e6)
    yield BenchRow(name, rate, "M/s", **more)


def _score_dice_batch(quick: bool) -> Iterator[BenchRow]:
    """Measure steps through Batch."""
    batch = Batch("score_dice", 1000, seed=1)
    index, choices = np.arange(1000), np.zeros(1000, np.int64)

    def games() -> None:
        batch.variant.kernels.deal(batch.states, index)
        for column in range(5):
            choices[:] = column
            for _ in range(2):
                batch.play(choices)

    rate = best_rate(games, 10_000 / 1e6, 10 if quick else 30)
    yield BenchRow("score dice: steps through Batch, actions checked", rate, "M/s", note="1,000 games at once")


def _batched(quick: bool) -> Iterator[BenchRow]:
    """Time the play of random legal actions, with every observation and mask afterwards; the choice is not timed."""
    n, steps = 1024, (20 if quick else 200) + 10
    batch = Batch("liars_dice", n, seed=0, **ONE_ROUND)
    streams, index = new_streams(1, n), np.arange(n)
    facts, kernels = batch.variant.facts, batch.variant.kernels
    observations, masks = np.empty((n, facts.observation_size), np.float32), np.empty((n, facts.num_actions), np.int8)
    actions = np.empty(n, np.int64)
    timed = 0.0
    for step in range(steps):
        kernels.legal(batch.states, index, masks)
        _choose_all(streams, masks, actions)
        start = time.perf_counter()
        kernels.play(batch.states, index, actions)
        over = np.flatnonzero(batch.states["seat"] == OVER)
        if len(over):
            kernels.deal(batch.states, over)
        kernels.view(batch.states, index, batch.states["seat"], False, observations, masks)
        timed += (time.perf_counter() - start) * (step >= 10)  # the first ones compile
    ours = n * (steps - 10) / timed / 1e6

    name = "one round of five dice each: batched steps with observation and mask"
    yield BenchRow(name, ours, "M/s", 10.0, spiel_rate(quick, 2), SPIEL)


@functools.cache
def spiel_rate(quick: bool, learners: int) -> float:
    """Return pyspiel's millions of random steps a second from Python: those of the first players, with observation and mask."""
    import pyspiel

    game = pyspiel.load_game("liars_dice(numdice=5)")
    rng = np.random.default_rng(0)

    def spiel_games(count: int) -> int:
        done = 0
        for _ in range(count):
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    state.apply_action(int(rng.integers(6)))
                    continue
                if state.current_player() < learners:
                    state.information_state_tensor()
                    state.legal_actions_mask()
                    done += 1
                legal = state.legal_actions()
                state.apply_action(legal[int(rng.random() * len(legal))])
        return done

    def rate() -> float:
        start = time.perf_counter()
        done = spiel_games(100 if quick else 1000)
        return done / (time.perf_counter() - start) / 1e6

    return max(rate() for _ in range(4))


def _step_rate(env: Any, steps: int) -> float:
    """Return the steps a second of a Gymnasium environment, single or of many games, with random legal actions.

    Only `step` is timed, in the best of four runs.
    """
    count = getattr(env, "num_envs", 0)
    streams, chosen, rng = new_streams(1, count), np.empty(count, np.int64), np.random.default_rng(0)

    def choose(mask: np.ndarray | None) -> Any:
        if mask is None:
            return env.action_space.sample()
        if not count:
            legal = mask.nonzero()[0]
            return int(legal[int(rng.random() * len(legal))])
        _choose_all(streams, mask, chosen)
        return chosen

    def run() -> float:
        timed, (_, info) = 0.0, env.reset(seed=0)
        for _ in range(steps):
            actions = choose(info.get("action_mask"))
            start = time.perf_counter()
            _, _, ended, truncated, info = env.step(actions)
            timed += time.perf_counter() - start
            if not count and (ended or truncated):
                _, info = env.reset()
        return timed

    return steps * max(count, 1) / min(run() for _ in range(4))


def _one_game(quick: bool) -> Iterator[BenchRow]:
    """Time the environments that most people begin with, beside Gymnasium's own."""
    steps = 500 if quick else 10_000
    ours, theirs = (_step_rate(gymnasium.make(name), steps) for name in (LIARS_DICE, CART_POLE))
    yield BenchRow("gymnasium.make", ours, "/s", None, theirs, f"gymnasium.make of {CART_POLE}", "one game against random")
    ours = _step_rate(gymnasium.make(LIARS_DICE, **ONE_ROUND), steps)
    name = "one round of five dice each: gymnasium.make"
    yield BenchRow(name, ours, "/s", None, spiel_rate(quick, 1) * 1e6, SPIEL, "learner steps against random")
    for games in (1, 8, 64):
        ours, theirs = (_step_rate(gymnasium.make_vec(name, games), steps // 4) for name in (LIARS_DICE, CART_POLE))
        peer = f"gymnasium.make_vec of {CART_POLE}"
        yield BenchRow(f"gymnasium.make_vec, games: {games}", ours, "/s", None, theirs, peer, "all games together")


def _vector(quick: bool) -> Iterator[BenchRow]:
    """Time `step` of Gymnasium's vector environment, one seat of many games, with the opponents' moves."""
    for opponents, options, aim in (("random", ONE_ROUND, None), ("random", {}, 8.0), ("numbers", {}, 5.0)):
        vector = gymnasium.make_vec(LIARS_DICE, num_envs=VECTOR_GAMES, opponents=opponents, **options)
        rate = _step_rate(vector, 15 if quick else 50) / 1e6
        name = "one round of five dice each: " * bool(options) + f"gym.make_vec, {VECTOR_GAMES} games against {opponents}"
        peer = spiel_rate(quick, 1) if options else None
        yield BenchRow(name, rate, "M/s", aim, peer, SPIEL * bool(options), "learner steps")


def _aec_rate(make: Callable[[], Any], count: int) -> float:
    """Return the steps a second of an AEC environment through `agent_iter` and `last`, with random legal actions."""
    env = make()
    rng = np.random.default_rng(0)

    def run(steps: int) -> None:
        done, seed = 0, 0
        while done < steps:
            env.reset(seed=seed)
            seed += 1
            for _ in env.agent_iter():
                observation, _, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    env.step(None)
                    continue
                legal = observation["action_mask"].nonzero()[0]
                env.step(int(legal[int(rng.random() * len(legal))]))
                done += 1

    return best_rate(lambda: run(count), count, 2)


def _raw_env(quick: bool) -> Iterator[BenchRow]:
    from open_spiel.python import rl_environment

    count = (2_000 if quick else 20_000) + 100
    ours = _aec_rate(lambda: liars_dice_v0.raw_env(**ONE_ROUND), count)
    spiel = rl_environment.Environment("liars_dice", include_full_state=False, numdice=5)
    rng = np.random.default_rng(0)

    def spiel_steps() -> None:
        done = 0
        while done < count:
            step = spiel.reset()
            while not step.last():
                legal = step.observations["legal_actions"][step.observations["current_player"]]
                step = spiel.step([legal[int(rng.random() * len(legal))]])
                done += 1

    peer = best_rate(spiel_steps, count, 2), "OpenSpiel rl_environment, the same game"
    yield BenchRow("one round of five dice each: raw_env", ours, "/s", 60_000, *peer, "one game, from Python")
    from pettingzoo.classic import connect_four_v3

    for name in ("raw_env", "env"):
        ours, theirs = (_aec_rate(getattr(game, name), count // 4) for game in (liars_dice_v0, connect_four_v3))
        yield BenchRow(f"{name}()", ours, "/s", None, theirs, f"PettingZoo's connect_four_v3.{name}()", "one game, from Python")


def _first_seconds(imports: str, steps: str, cache: str) -> tuple[float, float]:
    """Return the seconds of the import and of the first step in a fresh process, with a cache of compiled code."""
    code, env = FIRST_STEP.format(imports=imports, steps=steps), {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    imported, first = map(float, done.stdout.split())
    return imported, first


def _first_step(quick: bool) -> Iterator[BenchRow]:
    """Time the first step with nothing compiled (cold) and with all of it (warm), beside one that compiles nothing."""
    gym = (("gymnasium.make", STEP, 4.0), ("gymnasium.make_vec", VECTOR_STEP, 4.0))
    rows = [("raw_env", (OURS, AEC_STEP), (CONNECT_FOUR, AEC_STEP), "connect_four_v3.raw_env()", 3.0)]
    rows += [
        (name, (OURS, code.format(id=LIARS_DICE)), ("", code.format(id=CART_POLE)), f"{name} of {CART_POLE}", aim)
        for name, code, aim in gym
    ]
    for name, ours, theirs, peer, aim in rows:
        with tempfile.TemporaryDirectory() as cache:
            for what, most in (("cold", aim), ("warm", 0.3)):
                (imported, first), (_, other) = (_first_seconds(*each, cache) for each in (ours, theirs))
                note = f"the import itself took {imported:.2f} s"
                yield BenchRow(f"first step of {name} after import, {what}", first, "s", most, other, peer, note)


# Oehm 2018: 10,000 games with six dice each, on all cores of a notebook: the agents' bluffs → seconds.
ARTICLE_SECONDS = {(1.0, 0.0): 37.1997, (1.0, 0.75, 0.25, 0.0): 60 * 1.164514}


def _article_games(quick: bool) -> Iterator[BenchRow]:
    for bluffs, published in ARTICLE_SECONDS.items():
        variant = configure("liars_dice", num_players=len(bluffs), num_dice=6)
        players = [make_agent(f"numbers:preset=article,bluff={bluff}") for bluff in bluffs]
        seconds = best_seconds(functools.partial(play_table, variant, players, 10_000, 1), 10)
        name = f"the article's 10,000 games, {len(bluffs)} players, 6 dice"
        aim = 0.01 if len(bluffs) == 2 else None
        yield BenchRow(name, seconds, "s", aim, published, "the article, as published")


PARTS = (
    BenchPart("", _machine),
    *(BenchPart(play[0], functools.partial(_random_play, number)) for number, play in enumerate(_PLAYS)),
    BenchPart("score_dice", _score_dice_batch),
    BenchPart("liars_dice", _article_games),
    BenchPart("liars_dice", _one_game),
    BenchPart("liars_dice", _batched),
    BenchPart("liars_dice", _vector),
    BenchPart("liars_dice", _raw_env),
    BenchPart("liars_dice", _first_step),
)
