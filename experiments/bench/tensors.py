"""Speed of `dice_envs.TensorEnv`: many games as PyTorch tensors, on a CPU or a GPU."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import Any

import torch

from dice_envs import TensorEnv
from dice_envs.core.game import load, names
from dice_envs.core.machine import torch_threads
from dice_envs.experiments.bench import BenchPart, BenchRow, best_rate
from dice_envs.experiments.bench.environments import SPIEL, spiel_rate
from dice_envs.learn.ppo import captured

GAMES = (4096, 16_384, 65_536)
ROUNDS = 16  # steps of one recorded graph
NASHBENCH = "nashbench, published: random moves, 2.8, 42 and 340 M/s with 64, 1,024 and 16,384 games on an RTX A6000"


def _rate(env: TensorEnv, steps: int) -> float:
    """Return millions of steps a second, in each of which every game's learner makes a random legal move.

    Recorded steps include the choice of the moves, a small share of them.
    """
    draws = torch.Generator(env.device).manual_seed(1)

    def choose() -> torch.Tensor:
        order = 1 - torch.rand(env.masks.shape[1], device=env.device, generator=draws)  # above 0
        return (env.masks * order).argmax(1)

    def play() -> None:
        for _ in range(ROUNDS):
            env.step(choose())

    env.reset(seed=1)
    if env.recording is not None:
        again = captured(play, draws)

        def several() -> None:
            for _ in range(steps // ROUNDS):
                again()
            env.check()  # it waits for the device

        return best_rate(several, env.num_envs * (steps // ROUNDS) * ROUNDS / 1e6)
    play()
    seconds = 0.0
    for _ in range(steps):
        actions = choose()
        start = time.perf_counter()
        env.step(actions)
        seconds += time.perf_counter() - start
    return env.num_envs * steps / seconds / 1e6


def _steps(game: str, quick: bool, device: str) -> Iterator[BenchRow]:
    """Measure a learner's steps: its move, the opponents' answers, deals of new games, observations and masks."""
    of_liars_dice = game == "liars_dice"
    settings: dict[str, dict[str, Any]] = {"numbers": {"opponents": "numbers"}} if of_liars_dice else {}
    settings |= {"random": {}} if device == "cpu" else {"random": {}, "itself": {"self_play": 1.0}}
    for what, chosen in settings.items():
        for count in GAMES[:1] if device == "cpu" else GAMES:
            with torch_threads(1):
                rate = _rate(TensorEnv(game, count, device=device, **chosen), 4 * ROUNDS if quick else 32 * ROUNDS)
            name = f"TensorEnv, {load(game).title}: {count:,} games against {what}"
            yield BenchRow(name, rate, "M/s", None, *((spiel_rate(quick, 1), SPIEL, NASHBENCH) if of_liars_dice else ()))


PARTS = tuple(BenchPart(game, functools.partial(_steps, game), on_device=True) for game in names())
