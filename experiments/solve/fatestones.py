"""Exact values of FateStones draws."""

from __future__ import annotations

import dataclasses
import time
from math import comb
from typing import Annotated

import numpy as np

from dice_envs import configure
from dice_envs.core.options import check_range
from dice_envs.exact.contract import plus_minus
from dice_envs.experiments import ui
from dice_envs.experiments.jobs import resumable
from dice_envs.games.fatestones.exact.draws import MOST_DRAWS, add_up, draw_hands, mean_of, parts_of_all, solve_each, solve_part

DRAWS_IN_PART = 20_000
MOST_SOLVED = 10**9  # draws with --draws 0, which take hours


def main(
    option: ui.OptionOption = None,
    draws: Annotated[int, ui.count_option(help="Sampled draws; 0 for all (fair dice, three a hand: minutes).")] = 100_000,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    resume: ui.ResumeOption = False,
    ray: ui.RayOption = None,
) -> None:
    """Winnings of the best response and of the Nash strategy against a random player, over all draws or a sample.

    With --ray the draws are spread over a cluster, with the same result. With --json, solved parts are kept beside that file
    until the end, for --resume.

    Example: solve fatestones --draws 0
    """
    if draws != 0:
        check_range("draws", draws, 2, MOST_DRAWS)
    variant = configure("fatestones", **ui.game_options(option))
    bag, hand = len(variant.params.bag), variant.params.hand_size
    every = comb(bag, hand) * comb(bag - hand, hand)
    if draws == 0 and every > MOST_SOLVED:
        raise ValueError(f"draws must not be 0 for all: there are {every:,} of this bag, {MOST_SOLVED:,} are allowed")
    start = time.perf_counter()
    what = {"solve": "fatestones", "game": str(variant), "draws": draws}
    with resumable(json, resume, what, seed, ray) as (seed, workers):
        if draws:
            ui.console.print(f"seed {seed}")
            hands = draw_hands(variant, draws, seed)
            pieces = [(hands[first : first + DRAWS_IN_PART],) for first in range(0, draws, DRAWS_IN_PART)]
            with ui.progress("draws", draws):
                solved = workers.run(solve_each, (), pieces, [len(piece) for (piece,) in pieces])
            result = mean_of(np.concatenate(solved))
        else:
            parts = parts_of_all(variant)
            with ui.progress("hands", comb(bag, hand)):
                sums = workers.run(solve_part, (variant,), parts, [last - first for first, last in parts])
            result = add_up(sums)
        seconds = time.perf_counter() - start
        ui.console.print(f"{result.draws:,} draws in {seconds:.1f} s; wins minus losses per draw:")
        ui.console.print(
            f"  best response to random  {plus_minus(result.best_response, result.best_response_error, 6, sign=True)}"
        )
        ui.console.print(f"  Nash against random      {plus_minus(result.nash, result.nash_error, 6, sign=True)}")
        ui.console.print(f"  mean |value|, Nash both  {result.unfairness:+.6f}")
        ui.console.print(f"  most left from Nash      {result.gap:.1e} at any position")
        ui.write_json(json, {**dataclasses.asdict(result), "seconds": seconds, "seed": seed if draws else None})
