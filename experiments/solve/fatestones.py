"""Exact values of FateStones draws."""

from __future__ import annotations

import dataclasses
import time
from math import comb
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import configure
from dice_envs.core.options import check_range
from dice_envs.exact.fatestones.draws import (
    MOST_DRAWS,
    add_up,
    circles,
    draw_hands,
    margins,
    mean_of,
    parts_of_all,
    solve_each,
    solve_part,
)
from dice_envs.experiments.jobs.workers import resumable
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.grids import Grid, plus_minus
from dice_envs.experiments.ui.options import (
    JsonOption,
    OptionOption,
    RayOption,
    ResumeOption,
    SeedOption,
    count_option,
    game_options,
)
from dice_envs.experiments.ui.progress import progress
from dice_envs.games.fatestones import CODES, FACES

DRAWS_IN_PART = 20_000
MOST_IN_CIRCLES = 100  # different dice of a bag whose circles are listed
CIRCLES_SHOWN = 10
MOST_SOLVED = 10**9  # draws with --draws 0, which take hours


def main(
    option: OptionOption = None,
    draws: Annotated[int, count_option(help="Sampled draws; 0 for all (fair dice, three a hand: minutes).")] = 100_000,
    seed: SeedOption = None,
    json: JsonOption = None,
    resume: ResumeOption = False,
    ray: RayOption = None,
    rank: Annotated[
        bool, typer.Option("--rank", help="List the bag's dice from the worst to the best, and circles of dice, instead.")
    ] = False,
) -> None:
    """Winnings of the best response and of the Nash strategy against a random player, over all draws or a sample.

    With --rank every die of the bag is listed with its mean margin (chance to win less chance to lose) against a random one of
    all 462 dice, and the number of dice that it beats in the bag; then the circles of three dice that beat each other. JSON:
    {"dice": [{"die", "average_roll", "margin", "margin_in_bag", "beats", "loses_to"}], "circles": [{"dice", "least_margin"}]}.

    With --ray the draws are spread over a cluster, with the same result. With --json, solved parts are kept beside that file
    until the end, for --resume.

    Example: solve fatestones --draws 0
    """
    if draws != 0:
        check_range("draws", draws, 2, MOST_DRAWS)
    variant = configure("fatestones", **game_options(option))
    if rank:
        check_writable(json)
        write_json(json, _rank(np.unique(variant.params.bag)))
        return
    bag, hand = len(variant.params.bag), variant.params.hand_size
    every = comb(bag, hand) * comb(bag - hand, hand)
    if draws == 0 and every > MOST_SOLVED:
        raise ValueError(f"draws must not be 0 for all: there are {every:,} of this bag, {MOST_SOLVED:,} are allowed")
    check_writable(json)
    start = time.perf_counter()
    what = {"solve": "fatestones", "game": str(variant), "draws": draws}
    with resumable(json, resume, what, seed, ray) as (seed, workers):
        if draws:
            console.print(f"seed {seed}")
            hands = draw_hands(variant, draws, seed)
            pieces = [(hands[first : first + DRAWS_IN_PART],) for first in range(0, draws, DRAWS_IN_PART)]
            with progress("draws", draws) as done:
                solved = workers.run(solve_each, (), pieces, [len(piece) for (piece,) in pieces], done)
            result = mean_of(np.concatenate(solved))
        else:
            parts = parts_of_all(variant)
            with progress("hands", comb(bag, hand)) as done:
                sums = workers.run(solve_part, (variant,), parts, [last - first for first, last in parts], done)
            result = add_up(sums)
        seconds = time.perf_counter() - start
        console.print(f"{result.draws:,} draws in {seconds:.1f} s; wins minus losses per draw:")
        console.print(
            f"  best response to random  {plus_minus(result.best_response, result.best_response_error, 6, sign=True)}"
        )
        console.print(f"  Nash against random      {plus_minus(result.nash, result.nash_error, 6, sign=True)}")
        console.print(f"  mean |value|, Nash both  {result.unfairness:+.6f}")
        console.print(f"  most left from Nash      {result.gap:.1e} at any position")
        write_json(json, {**dataclasses.asdict(result), "seconds": seconds, "seed": seed if draws else None})


def _rank(dice: np.ndarray) -> dict[str, Any]:
    """Print the dice and their circles; return what --json writes."""
    inside = margins(dice)
    against_all = margins(np.arange(len(FACES)))[dice].mean(axis=1)
    rows: list[dict[str, Any]] = [
        {
            "die": CODES[die],
            "average_roll": float(FACES[die].mean()),
            "margin": float(against_all[place]),
            "margin_in_bag": float(inside[place].mean()),
            "beats": int((inside[place] > 0).sum()),
            "loses_to": int((inside[place] < 0).sum()),
        }
        for place, die in enumerate(dice.tolist())
    ]
    rows.sort(key=lambda row: (round(row["margin"], 9), round(row["margin_in_bag"], 9), row["die"]))
    headings = ("die", "average roll", "margin against all 462", "in the bag", "beats", "loses to")
    cells = [
        (str(row["die"]), f"{row['average_roll']:.3f}", f"{row['margin']:+.4f}", f"{row['margin_in_bag']:+.4f}",
         str(row["beats"]), str(row["loses_to"]))
        for row in rows
    ]  # fmt: skip
    Grid("from the worst", headings, cells, words=range(len(headings))).show()
    console.print("The faces of all 462 dice together are even, so the mean margin against them follows the average roll.")
    found = circles(dice) if len(dice) <= MOST_IN_CIRCLES else []
    if len(dice) > MOST_IN_CIRCLES:
        console.print(f"circles are listed for bags of up to {MOST_IN_CIRCLES} different dice, not {len(dice)}")
    else:
        console.print(
            f"{len(found):,} circles of three dice, each of which beats the next; those with the greatest least margin:"
        )
    for circle in found[:CIRCLES_SHOWN]:
        names = " > ".join(str(CODES[die]) for die in (*circle.dice, circle.dice[0]))
        console.print(f"  {names}, each by {circle.least:.4f} or more")
    return {
        "dice": rows,
        "circles": [{"dice": [CODES[die] for die in each.dice], "least_margin": each.least} for each in found],
    }
