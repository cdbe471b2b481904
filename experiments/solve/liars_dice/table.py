"""Display of solutions for three players and more: strategies that no seat gains much by leaving, with a certificate."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dice_envs.exact.liars_dice.seating import Dice
from dice_envs.exact.liars_dice.solution import Solution
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.plots import saved_plot

TABLE_PRECISION = 1e-3  # what all seats together may gain, in shares of wins
MOST_PLOTTED = 40  # rounds; the largest ones


def named(dice: Dice) -> str:
    """Return the dice of a round in words."""
    return " v ".join(map(str, dice))


def _percent(shares: np.ndarray) -> str:
    return " / ".join(f"{100 * share:.2f}" for share in shares)


def show_table(solution: Solution) -> None:
    """Show what each seat wins from each round on."""
    single = solution.variant.options.rounds == "single"
    won = "share of the win of each, %" if single else "% of games that each wins from here"
    headings = ["dice, the starter's first", won, "gain by best responses, % each", "iterations", "seconds"]
    rows = []
    for dice, each in solution.rounds.items():
        plays, responds = each.certificate
        rows.append([named(dice), _percent(plays), _percent(responds - plays), f"{each.iterations:,}", f"{each.seconds:.1f}"])
    Grid("", headings, rows, words=range(len(headings))).show()
    what = "has this share of the win, which all who lose no die share" if single else "wins"
    console.print(f"each seat {what}, % (mean over those who may start): {_percent(solution.plays)}")
    console.print(
        f"by leaving the strategies alone the seats gain {_percent(solution.responds - solution.plays)} %, "
        f"{max(solution.gain, 0):.2e} in all; {solution.seconds:.1f} s"
    )


def draw_shares(folder: Path, solution: Solution) -> None:
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
        panel.set_yticks(range(len(rounds)), [named(dice) for dice, _ in rounds])
        panel.set_xlabel(what)
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=most)
