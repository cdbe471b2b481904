"""`solve liars-dice` for three players and more: strategies that no seat gains much by leaving, with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from dice_envs.core.files import NOT_KEPT
from dice_envs.core.game import Variant
from dice_envs.exact.liars_dice.multiplayer.solution import Solution
from dice_envs.exact.liars_dice.multiplayer.solver import solve
from dice_envs.exact.liars_dice.seating import Dice
from dice_envs.exact.liars_dice.solver import Progress
from dice_envs.exact.liars_dice.store import CACHE, cache_folder
from dice_envs.experiments.solve.liars_dice.in_time import in_time
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.plots import saved_plot

TABLE_PRECISION = 1e-3  # what all seats together may gain, in shares of wins
MOST_PLOTTED = 40  # rounds; the largest ones


def solve_table(
    variant: Variant, precision: float, minutes: float | None, resume: bool
) -> tuple[Solution, Callable[[Path], Any]]:
    """Solve a game and show the result; return it, and what plots it into a folder.

    Raises:
        ValueError: the time is too short.
    """
    solution = in_time(solve, minutes, line_of, variant, precision, resume=resume)
    _show(solution)
    if solution.gain > precision:
        text = f"a gain of {precision:.1e} in all: no theorem promises it for three players and more"
        console.print(Text.assemble(("not reached: ", "yellow"), text))
    if CACHE not in NOT_KEPT:
        console.print(f"kept in {cache_folder()}", soft_wrap=True)
    return solution, lambda folder: _draw(folder, solution)


def line_of(progress: Progress) -> str:
    """Return the solver's progress in words."""
    left = f"; {progress.rounds_left} to go" if progress.rounds_left else ""
    state = "done, " if progress.finished else ""
    gain = f"the players gain {max(progress.width, 0):.1e} in all"
    return f"  {_named(progress.dice)} dice: {state}{gain} after {progress.iterations:,} iterations{left}"


def _named(dice: Dice) -> str:
    return " v ".join(map(str, dice))


def _percent(shares: np.ndarray) -> str:
    return " / ".join(f"{100 * share:.2f}" for share in shares)


def _show(solution: Solution) -> None:
    single = solution.variant.options.rounds == "single"
    won = "share of the win of each, %" if single else "% of games that each wins from here"
    headings = ["dice, the starter's first", won, "gain by best responses, % each", "iterations", "seconds"]
    rows = []
    for dice, each in solution.rounds.items():
        plays, responds = each.certificate
        rows.append([_named(dice), _percent(plays), _percent(responds - plays), f"{each.iterations:,}", f"{each.seconds:.1f}"])
    Grid("", headings, rows, words=range(len(headings))).show()
    what = "has this share of the win, which all who lose no die share" if single else "wins"
    console.print(f"each seat {what}, % (mean over those who may start): {_percent(solution.plays)}")
    console.print(
        f"by leaving the strategies alone the seats gain {_percent(solution.responds - solution.plays)} %, "
        f"{max(solution.gain, 0):.2e} in all; {solution.seconds:.1f} s"
    )


def _draw(folder: Path, solution: Solution) -> None:
    """Plot the shares of each round as bars, one on another, the starter's first."""
    rounds = list(solution.rounds.items())[-MOST_PLOTTED:]
    what = "share of the win, %" if solution.variant.options.rounds == "single" else "% of games won"
    most = max(len(dice) for dice, _ in rounds)
    shares = np.zeros((len(rounds), most))
    for row, (dice, each) in zip(shares, rounds, strict=True):
        row[: len(dice)] = 100 * each.certificate.plays
    caption = f"{what} by each player when all play the solution, by the dice of those left, the starter's first."
    with saved_plot(folder, "liars_dice_shares", caption, figsize=(8, 1.5 + 0.3 * len(rounds))) as (_, panel):
        for player in range(most):
            left = shares[:, :player].sum(axis=1)
            label = "starter" if player == 0 else f"{player} after it"
            panel.barh(range(len(rounds)), shares[:, player], left=left, label=label)
        panel.set_yticks(range(len(rounds)), [_named(dice) for dice, _ in rounds])
        panel.set_xlabel(what)
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=most)
