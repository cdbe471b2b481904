"""Times of optimal Liar's Dice, of best responses and of measures."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import Variant, agents, configure
from dice_envs.agents.ppo import NetworkPolicy
from dice_envs.exact import Effort, asked
from dice_envs.exact.contract import Measurement
from dice_envs.exact.liars_dice.cfr import RoundSolver
from dice_envs.exact.liars_dice.measures import exploitability, measure
from dice_envs.exact.liars_dice.solver import solve as solve_liars_dice
from dice_envs.exact.liars_dice.tree import Tree
from dice_envs.experiments.bench import BenchPart, BenchRow, beside_openspiel, best_seconds


def _liars_dice(quick: bool) -> Iterator[BenchRow]:
    """Time an iteration beside OpenSpiel's, an iteration of the largest round, and whole games to a certified precision."""
    solver = RoundSolver(Tree(configure("liars_dice", rules="openspiel", num_dice=1), (1, 1)))
    ours = best_seconds(lambda: solver.iterate(100)) / 100
    name = "Liar's Dice, OpenSpiel's rules, one die each: an iteration"
    yield beside_openspiel(name, ours, "s", _openspiel_iteration, "OpenSpiel C++ CFR+", 1 / 200)
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


def _openspiel_iteration(pyspiel: Any) -> float:
    solver = pyspiel.CFRPlusSolver(pyspiel.load_game("liars_dice(players=2,numdice=1,dice_sides=6)"))
    return best_seconds(solver.evaluate_and_update_policy)


def _liars_dice_responses(quick: bool) -> Iterator[BenchRow]:
    """Time best responses in whole games."""
    dice = 3 if quick else 5
    variant = configure("liars_dice", num_dice=dice)
    players = [agents.make(f"numbers:bluff={bluff}") for bluff in (0, 0.25, 0.75, 1)]
    found: list[float] = []

    def respond_to_all() -> None:
        found[:] = [50 + 50 * exploitability(variant, player) for player in players]

    seconds = best_seconds(respond_to_all)
    won = " / ".join(f"{share:.1f}" for share in found)
    name = f"Liar's Dice: best responses to four numbers agents, whole games, {dice} dice each"
    yield BenchRow(name, seconds, "s", None if quick else 5, note=f"they win {won} %")


def _liars_dice_measures(quick: bool) -> Iterator[BenchRow]:
    """Time the measure of a network that comes to every information set, and a deviation gain at a table of three."""
    for seats, dice, aim in ((2, 3 if quick else 5, 240), (3, 2 if quick else 3, 20)):

        def first(number: int, seats: int = seats) -> Measurement:
            variant = configure("liars_dice", num_players=seats, num_dice=number)
            agent = _untrained(variant) if seats == 2 else agents.make("numbers:bluff=0.25")
            return measure(variant, asked(agent, variant), Effort())[0]

        first(1)  # compiles
        start = time.perf_counter()
        found = first(dice)
        seconds = time.perf_counter() - start
        who = "a network of random weights" if seats == 2 else "numbers:bluff=0.25"
        name = f"Liar's Dice: {found.name} of {who}, whole games, {seats} players with {dice} dice each"
        yield BenchRow(name, seconds, "s", None if quick else aim, note=f"{found.value:.4f}; {found.note}")


def _untrained(variant: Variant) -> NetworkPolicy:
    """Return a network with two hidden layers of 128 and random weights."""
    sizes = (variant.facts.observation_size, 128, 128, variant.facts.num_actions)
    rng = np.random.default_rng(1)
    layers = [(rng.normal(0, below**-0.5, (above, below)), np.zeros(above)) for below, above in itertools.pairwise(sizes)]
    return NetworkPolicy("liars_dice", variant.changed_options(), [(w.astype("f4"), b.astype("f4")) for w, b in layers])


PARTS = tuple(BenchPart("liars_dice", rows) for rows in (_liars_dice, _liars_dice_responses, _liars_dice_measures))
