"""The tables of "Characterising Score Distributions in Dice Games", as published and as played.

Source: Isaksen, Holmgård, Togelius, Nealen, Game and Puzzle Design 2(1), 2016, in the exact figures of the notebook
that recomputes it with icepool. Section numbers are the paper's; the order is the notebook's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from dice_envs import configure
from dice_envs.agents.score_dice import Highest, Shuffled
from dice_envs.exact.score_dice.distribution import Distribution, Pairing, score_distribution
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.solve.score_dice.distribution import Pool, cells, pool_name

__all__ = ["HEADER", "TABLES", "PaperTable", "played_scores", "sampled", "table_line"]


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """One table of the source.

    Attributes:
        section: of the paper.
        title: its subject.
        ties: the game's tie rule.
        pairing: "sorted" or "unsorted".
        rows: (name, A's pool, B's pool, published win bias, tie % and closeness).
    """

    section: str
    title: str
    ties: str
    pairing: Pairing
    rows: tuple[tuple[str, Pool, Pool, tuple[str, str, str]], ...]

    def compute(self) -> list[Distribution]:
        """Compute the distribution of each row afresh."""
        return [score_distribution(a, b, self.ties, self.pairing) for _, a, b, _ in self.rows]


HEADER = "|     Game     | win bias | tie % | closeness |\n|:------------:|---------:|------:|----------:|"


def table_line(name: str, result: Distribution) -> str:
    """Format a line of a table as the notebook prints it."""
    bias, ties, closeness = cells(result)
    return f"| {name:12} |   {bias:>6} | {ties:>5} |     {closeness} |"


def _alike(section: str, title: str, ties: str, pairing: Pairing, by: str, published: str) -> PaperTable:
    """Return a table of pools against their like: five dice of various sizes, or various numbers of d6."""
    pools = [(size,) * 5 for size in (2, 4, 6, 8, 10)] if by == "sizes" else [(6,) * count for count in (1, 2, 3, 4, 5)]
    return _table(section, title, ties, pairing, [(pool_name(pool), pool, pool) for pool in pools], published)


def _table(
    section: str, title: str, ties: str, pairing: Pairing, games: Sequence[tuple[str, Pool, Pool]], published: str
) -> PaperTable:
    figures = [line.split() for line in published.strip().splitlines()]
    rows = tuple((name, a, b, (bias, tie, close)) for (name, a, b), (bias, tie, close) in zip(games, figures, strict=True))
    return PaperTable(section, title, ties, pairing, rows)


_FIVE = (6,) * 5
_EIGHTS = [(f"{5 - eights}d6/{eights}d8", _FIVE, (8,) * eights + (6,) * (5 - eights)) for eights in range(6)]

TABLES: tuple[PaperTable, ...] = (
    _alike("3.1", "Sorting dice, with ties", "none", "sorted", "sizes", """
        0.00 24.61 0.632
        0.00 11.97 0.384
        0.00  9.91 0.340
        0.00  9.15 0.323
        0.00  8.64 0.315"""),
    _alike("3.1", "Sorting dice, with ties", "none", "sorted", "numbers", """
        0.00 16.67 1.095
        0.00 20.52 0.680
        0.00 13.91 0.504
        0.00 11.71 0.404
        0.00  9.91 0.340"""),
    _alike("3.2", "Dice unsorted, with ties", "none", "unsorted", "sizes", """
        0.00 24.61 0.632
        0.00 19.32 0.516
        0.00 16.69 0.490
        0.00 14.49 0.478
        0.00 12.71 0.471"""),
    _alike("3.2", "Dice unsorted, with ties", "none", "unsorted", "numbers", """
        0.00 16.67 1.095
        0.00 37.50 0.775
        0.00 17.82 0.632
        0.00 23.95 0.548
        0.00 16.69 0.490"""),
    _alike("5.1", "Rolling sorted, A wins ties", "a", "sorted", "sizes", """
        89.06 0.00 0.238
        54.79 0.00 0.271
        38.21 0.00 0.282
        29.13 0.00 0.287
        23.48 0.00 0.289"""),
    _alike("5.2", "Rolling unsorted, A wins ties", "a", "unsorted", "sizes", """
        79.30 0.00 0.316
        44.96 0.00 0.400
        30.68 0.00 0.424
        23.19 0.00 0.434
        18.63 0.00 0.439"""),
    _table("6", "Reducing bias with fewer dice", "a", "sorted",
        [(f"{count}d6 v 5d6", (6,) * count, _FIVE) for count in (2, 3, 4, 5)], """
        -35.61 32.37 0.608
        -23.63  0.00 0.451
          3.23 20.40 0.357
         38.21  0.00 0.282"""),
    _table("6", "Reducing bias with fewer dice", "a", "sorted",
        [(f"{count}d6 v {count + 1}d6", (6,) * count, (6,) * (count + 1)) for count in (1, 2, 3, 4)], """
        -15.74  0.00 1.000
         -7.91 33.58 0.613
         -2.80  0.00 0.450
          3.23 20.40 0.357"""),
    _table("7.1", "Mixed dice sorted, A wins ties", "a", "sorted", _EIGHTS, """
         38.21 0.00 0.282
         24.36 0.00 0.294
         10.80 0.00 0.302
         -2.24 0.00 0.305
        -14.56 0.00 0.305
        -25.98 0.00 0.301"""),
    _table("7.1", "Mixed dice sorted, A wins ties", "a", "sorted",
        [("3d6/1d8/1d10", _FIVE, (6, 6, 6, 8, 10)), ("2d6/3d8", _FIVE, (6, 6, 8, 8, 8)),
         ("3d6/2d10", _FIVE, (6, 6, 6, 10, 10))], """
         2.67 0.00 0.307
        -2.24 0.00 0.305
        -5.36 0.00 0.310"""),
    _table("7.2", "Mixed dice unsorted, A wins ties", "a", "unsorted", _EIGHTS, """
         30.68 0.00 0.424
         20.34 0.00 0.440
          9.48 0.00 0.450
         -1.61 0.00 0.452
        -12.60 0.00 0.446
        -23.19 0.00 0.434"""),
    _table("7.2", "Mixed dice unsorted, A wins ties", "a", "unsorted",
        [("3d6/2d8", _FIVE, (6, 6, 6, 8, 8)), ("3d6/1d8/1d10", _FIVE, (6, 6, 6, 8, 10)),
         ("2d6/3d8", _FIVE, (6, 6, 8, 8, 8)), ("3d6/2d10", _FIVE, (6, 6, 6, 10, 10)),
         ("2d6/2d8/1d10", _FIVE, (6, 6, 8, 8, 10))], """
         9.48 0.00 0.450
         2.97 0.00 0.456
        -1.61 0.00 0.452
        -3.73 0.00 0.459
        -8.26 0.00 0.453"""),
    _alike("8.1", "Rolling sorted, rerolling tied dice", "reroll", "sorted", "sizes", """
        0.00 0.00 0.350
        0.00 0.00 0.311
        0.00 0.00 0.302
        0.00 0.00 0.298
        0.00 0.00 0.296"""),
    _alike("8.1", "Rolling sorted, rerolling tied dice", "reroll", "sorted", "numbers", """
        0.00  0.00 1.000
        0.00 34.15 0.616
        0.00  0.00 0.453
        0.00 21.00 0.361
        0.00  0.00 0.302"""),
    _alike("8.2", "Rolling unsorted, rerolling ties", "reroll", "unsorted", "sizes", """
        0.00 0.00 0.447
        0.00 0.00 0.447
        0.00 0.00 0.447
        0.00 0.00 0.447
        0.00 0.00 0.447"""),
    _alike("8.2", "Rolling unsorted, rerolling ties", "reroll", "unsorted", "numbers", """
        0.00  0.00 1.000
        0.00 50.00 0.707
        0.00  0.00 0.577
        0.00 37.50 0.500
        0.00  0.00 0.447"""),
)  # fmt: skip


def played_scores(table: PaperTable, a: Pool, b: Pool, games: int, seed: int | np.random.SeedSequence) -> np.ndarray:
    """Play games through the environment; return A's scores, (games,) float64.

    For a sorted table both players always choose their highest die, for an unsorted one a random die.
    """
    variant = configure("score_dice", pool_a=a, pool_b=b, ties=table.ties, reward="score")
    player = Highest() if table.pairing == "sorted" else Shuffled()
    returns = play_table(variant, [player, player], games, seed)
    number = np.arange(games)
    return returns[number, number % 2]  # the player that sits at A's seat in each game


def sampled(scores: np.ndarray) -> list[tuple[float, float]]:
    """Return win bias, tie % and closeness of played games, each with the standard error of the estimate."""
    root = math.sqrt(len(scores))
    signs, even, squares = np.sign(scores), scores == 0, scores**2
    square = squares.mean()
    with np.errstate(divide="ignore", invalid="ignore"):  # closeness is infinite where all of a few games end even
        closeness = float(square**-0.5), float(0.5 * square**-1.5 * squares.std()) / root
    return [
        (100 * float(signs.mean()), 100 * float(signs.std()) / root),
        (100 * float(even.mean()), 100 * float(even.std()) / root),
        closeness,
    ]
