"""Times of optimal Liar's Dice."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dice_envs import configure
from dice_envs.experiments.bench import BenchPart, BenchRow, beside_openspiel, best_seconds
from dice_envs.games.liars_dice.exact.cfr import RoundSolver
from dice_envs.games.liars_dice.exact.solver import solve as solve_liars_dice
from dice_envs.games.liars_dice.exact.tree import Tree


def _liars_dice(quick: bool) -> Iterator[BenchRow]:
    """Time an iteration beside OpenSpiel's, an iteration of the largest round, and whole games to a certified precision."""
    solver = RoundSolver(Tree(configure("liars_dice", rules="openspiel", num_dice=1), (1, 1)))
    ours = best_seconds(lambda: solver.iterate(100)) / 100
    name = "Liar's Dice, OpenSpiel's rules, one die each: an iteration"

    def openspiel(pyspiel: Any) -> float:
        solver = pyspiel.CFRPlusSolver(pyspiel.load_game("liars_dice(players=2,numdice=1,dice_sides=6)"))
        return best_seconds(solver.evaluate_and_update_policy)

    yield beside_openspiel(name, ours, "s", openspiel, "OpenSpiel C++ CFR+", 1 / 200)
    most = 3 if quick else 5
    largest = RoundSolver(Tree(configure("liars_dice", num_dice=most), (most, most)))
    seconds = best_seconds(lambda: largest.iterate(10)) / 10
    yield BenchRow(f"Liar's Dice, {most} v {most} dice: an iteration", seconds, "s", None if quick else 0.35)
    variant = configure("liars_dice", num_dice=most)
    aims = {(1e-3, 1): 180, (1e-4, 1): 480, (1e-3, 2): 108, (1e-4, 2): 288}
    for (precision, threads), aim in list(aims.items())[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            solution = solve_liars_dice(variant, precision, threads=threads, folder=Path(folder))
        yield BenchRow(
            f"Liar's Dice, whole game of {most} dice to {precision:g}, {threads} thread{'s' * (threads > 1)}",
            solution.seconds,
            "s",
            None if quick else aim,
            note=f"off by {solution.exploitability:.1e} at most, V = {solution.value:.6f}",
        )


PARTS = (BenchPart("liars_dice", _liars_dice),)
