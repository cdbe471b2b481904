"""Exact values of FateStones draws."""

from __future__ import annotations

import dataclasses
import time
from math import comb
from typing import Annotated

import typer

from dice_envs import configure
from dice_envs.exact.fatestones import MOST_DRAWS, draw_hands, solve_all, solve_draws
from dice_envs.game import check_range
from experiments.options import JsonOption, OptionOption, SeedOption, game_options
from experiments.output import check_writable, console, progress, seed_or_fresh, write_json

MOST_SOLVED = 10**9  # draws of a bag, all of which are to be solved: hours


def main(
    option: OptionOption = None,
    draws: Annotated[int, typer.Option(help="Sampled draws; 0 for all (fair dice, three a hand: minutes).")] = 100_000,
    seed: SeedOption = None,
    json: JsonOption = None,
) -> None:
    """What the best response and the Nash strategy win from a random player, over all draws or a sample.

    Example: solve fatestones --draws 0
    """
    if draws != 0:
        check_range("draws", draws, 2, MOST_DRAWS)
    variant = configure("fatestones", **game_options(option))
    bag, hand = len(variant.params.bag), variant.params.hand_size
    every = comb(bag, hand) * comb(bag - hand, hand)
    if draws == 0 and every > MOST_SOLVED:
        raise ValueError(f"draws must not be 0 for all: there are {every:,} of this bag, {MOST_SOLVED:,} are allowed")
    seed = seed_or_fresh(seed)
    check_writable(json)
    start = time.perf_counter()
    if draws:
        console.print(f"seed {seed}")
        result = solve_draws(draw_hands(variant, draws, seed))
    else:
        with progress("hands", comb(bag, hand)) as done:
            result = solve_all(variant, done)
    seconds = time.perf_counter() - start
    console.print(f"{result.draws:,} draws in {seconds:.1f} s; wins minus losses per draw:")
    console.print(f"  best response to random  {result.best_response:+.6f} ± {result.best_response_error:.6f}")
    console.print(f"  Nash against random      {result.nash:+.6f} ± {result.nash_error:.6f}")
    console.print(f"  mean |value|, Nash both  {result.unfairness:+.6f}")
    console.print(f"  most left from Nash      {result.gap:.1e} at any position")
    write_json(json, {**dataclasses.asdict(result), "seconds": seconds, "seed": seed if draws else None})
