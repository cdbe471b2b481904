"""Liar's Dice and the shells, beside OpenSpiel, PettingZoo and SB3 used the usual way."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from experiments.bench import BenchRow, best_rate, best_seconds

__all__ = ["rows"]

VECTOR_GAMES = 4096
ARTICLE_SECONDS = 37.1997  # Oehm 2018: 10,000 games of two agents on all cores of a notebook

# A fresh process: import, first game, first observation, mask and action.
FIRST_STEP = """
import time
begun = time.perf_counter()
from dice_envs import liars_dice_v0
imported = time.perf_counter()
env = liars_dice_v0.raw_env()
env.reset(seed=0)
observation = env.last()[0]
env.step(int(observation["action_mask"].argmax()))
print(imported - begun, time.perf_counter() - imported)
"""


def rows(quick: bool) -> Iterator[BenchRow]:
    """One row after another; `quick` measures a tenth of the work."""
    scale = 0.1 if quick else 1.0
    yield _machine()
    yield _playouts(scale, "two players, five dice, elimination", 60.0)
    yield _playouts(scale, "one round of one die each, OpenSpiel rules", None, rules="openspiel", num_dice=1)
    yield _batched(scale)
    yield _vector(scale)
    yield from _raw_env(scale)
    yield _article_games()
    yield _training(scale)
    yield from _first_step()


def _machine() -> BenchRow:
    from dice_envs.dice import STREAM, below
    from dice_envs.kernel import kernel

    @kernel(cache=False)
    def roll(streams, count):
        total = 0
        for _ in range(count):
            total += below(streams[0], 6)
        return total

    streams = np.zeros(1, STREAM)
    rate = best_rate(lambda: roll(streams, 10_000_000), 10) if not isinstance(roll, type(_machine)) else 0.0
    return BenchRow("this machine: dice rolled", rate, "M/s", note="about 2,000 where the aims were set")


def _playouts(scale: float, what: str, aim: float | None, **options: Any) -> BenchRow:
    from dice_envs.batch import Batch

    batch = Batch("liars_dice", 64, seed=0, **options)
    steps = int(200_000 * scale)
    kernels, params = batch.variant.kernels, batch.variant.params
    rate = best_rate(lambda: kernels.playouts(params, batch.states, steps), 64 * steps / 1e6)
    return BenchRow(f"random playouts, {what}", rate, "M/s", aim)


def _batched(scale: float) -> BenchRow:
    """Legal actions chosen at random; what is timed is playing them, and every observation and mask afterwards."""
    import pyspiel

    from dice_envs.agent import _choose_all
    from dice_envs.batch import Batch
    from dice_envs.dice import new_streams
    from dice_envs.game import OVER

    n, steps = 1024, int(200 * scale) + 10
    batch = Batch("liars_dice", n, seed=0)
    streams, index = new_streams(1, n), np.arange(n)
    facts, params, kernels = batch.variant.facts, batch.variant.params, batch.variant.kernels
    observations, masks = np.empty((n, facts.observation_size), np.float32), np.empty((n, facts.num_actions), np.int8)
    actions = np.empty(n, np.int64)
    timed = 0.0
    for step in range(steps):
        kernels.legal(params, batch.states, index, masks)
        _choose_all(streams, masks, actions)
        start = time.perf_counter()
        kernels.play(params, batch.states, index, actions)
        over = np.flatnonzero(batch.states["seat"] == OVER)
        if len(over):
            kernels.deal(params, batch.states, over)
        kernels.view(params, batch.states, index, batch.states["seat"], observations, masks)
        timed += (time.perf_counter() - start) * (step >= 10)  # the first ones compile
    ours = n * (steps - 10) / timed / 1e6

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
                state.information_state_tensor()
                state.legal_actions_mask()
                legal = state.legal_actions()
                state.apply_action(legal[int(rng.random() * len(legal))])
                done += 1
        return done

    spiel_games(100)
    count = int(3000 * scale)
    start = time.perf_counter()
    done = spiel_games(count)
    peer = done / (time.perf_counter() - start) / 1e6
    return BenchRow("batched steps with observation and mask", ours, "M/s", 10.0, peer, "pyspiel liars_dice from Python")


def _vector(scale: float) -> BenchRow:
    import gymnasium

    import dice_envs  # noqa: F401 - registers the ids
    from dice_envs.agent import _choose_all
    from dice_envs.dice import new_streams

    vector = gymnasium.make_vec("dice_envs/LiarsDice-v0", num_envs=VECTOR_GAMES)
    streams, actions = new_streams(1, VECTOR_GAMES), np.empty(VECTOR_GAMES, np.int64)
    _, infos = vector.reset(seed=0)
    steps = int(150 * scale) + 5
    timed = 0.0
    for step in range(steps):
        _choose_all(streams, infos["action_mask"], actions)
        start = time.perf_counter()
        _, _, _, _, infos = vector.step(actions)
        timed += (time.perf_counter() - start) * (step >= 5)
    rate = VECTOR_GAMES * (steps - 5) / timed / 1e6
    return BenchRow(f"gym.make_vec, {VECTOR_GAMES} games against random", rate, "M/s", 2.0, note="learner steps")


def _aec_rate(make: Callable[[], Any], count: int) -> float:
    """Steps a second of an AEC environment through `agent_iter` and `last`, with random legal actions."""
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


def _raw_env(scale: float) -> Iterator[BenchRow]:
    from open_spiel.python import rl_environment
    from pettingzoo.classic import connect_four_v3

    from dice_envs import liars_dice_v0

    count = int(20_000 * scale) + 100
    ours = _aec_rate(liars_dice_v0.raw_env, count)
    four = _aec_rate(connect_four_v3.env, count // 4)
    spiel = rl_environment.Environment("liars_dice", include_full_state=False)
    rng = np.random.default_rng(0)

    def spiel_steps() -> None:
        done = 0
        while done < count:
            step = spiel.reset()
            while not step.last():
                legal = step.observations["legal_actions"][step.observations["current_player"]]
                step = spiel.step([legal[int(rng.random() * len(legal))]])
                done += 1

    yield BenchRow("raw_env", ours, "/s", 60_000, four, "PettingZoo connect_four through env()", "one game, from Python")
    yield BenchRow("raw_env", ours, "/s", 60_000, best_rate(spiel_steps, count, 2), "OpenSpiel rl_environment")
    yield BenchRow("env()", _aec_rate(liars_dice_v0.env, count // 4), "/s", None, four, "PettingZoo connect_four through env()")


def _article_games() -> BenchRow:
    import agents
    from dice_envs import configure
    from experiments.arena import play_table

    variant = configure("liars_dice", num_dice=6)
    players = [agents.make(f"numbers:preset=article,bluff={bluff}") for bluff in (1, 0)]
    seconds = best_seconds(lambda: play_table(variant, players, 10_000, 1))
    return BenchRow("the article's 10,000 games, 6 dice", seconds, "s", 0.1, ARTICLE_SECONDS, "the article, as published")


def _training(scale: float) -> BenchRow:
    """Whole training iterations: play, update and bookkeeping, two cores, as `train --preset quick` runs them."""
    from pathlib import Path

    from experiments.train import PRESETS, _Run

    with tempfile.TemporaryDirectory() as folder:
        from dice_envs import configure

        preset = PRESETS["liars_dice"]["quick"]
        run = _Run(Path(folder), configure("liars_dice"), preset, 0)
        model = run.model
        each = preset.num_envs * preset.num_steps
        model.learn(each)
        count = max(1, int(8 * scale)) * each
        start = time.perf_counter()
        model.learn(count, reset_num_timesteps=False)
        ours = count / (time.perf_counter() - start)
    return BenchRow(
        "PPO training, learner steps", ours, "/s", 25_000, _tutorial_rate(int(4096 * max(scale, 0.5))),
        "MaskablePPO on connect_four through a PettingZoo wrapper", "2 cores",
    )  # fmt: skip


def _tutorial_rate(steps: int) -> float:
    """The way PettingZoo's tutorial trains: one AEC game, both seats feeding one learner, MaskablePPO's defaults."""
    import gymnasium
    from pettingzoo.classic import connect_four_v3
    from sb3_contrib import MaskablePPO

    class OneGame(gymnasium.Env[Any, Any]):
        def __init__(self) -> None:
            self.aec = connect_four_v3.env()
            self.aec.reset()
            agent = self.aec.possible_agents[0]
            self.observation_space = self.aec.observation_space(agent)["observation"]
            self.action_space = self.aec.action_space(agent)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.aec.reset(seed=seed)
            return self.aec.observe(self.aec.agent_selection)["observation"], {}

        def step(self, action: Any) -> Any:
            actor = self.aec.agent_selection
            self.aec.step(int(action))
            reward = self.aec.rewards[actor]
            observation, _, terminated, truncated, info = self.aec.last()
            return observation["observation"], float(reward), terminated, truncated, info

        def action_masks(self) -> Any:
            return self.aec.observe(self.aec.agent_selection)["action_mask"].astype(bool)

    model = MaskablePPO("MlpPolicy", OneGame(), device="cpu")
    model.learn(model.n_steps)
    start = time.perf_counter()
    done = model.num_timesteps
    model.learn(steps, reset_num_timesteps=False)
    return (model.num_timesteps - done) / (time.perf_counter() - start)


def _first_step() -> Iterator[BenchRow]:
    with tempfile.TemporaryDirectory() as cache:
        for what, aim in (("cold", 5.0), ("warm", 1.5)):
            env = {**os.environ, "NUMBA_CACHE_DIR": cache}
            done = subprocess.run([sys.executable, "-c", FIRST_STEP], env=env, capture_output=True, text=True, check=True)
            imported, first = map(float, done.stdout.split())
            yield BenchRow(f"first step after import, {what}", first, "s", aim, note=f"the import itself took {imported:.2f} s")
