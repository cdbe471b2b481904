"""The exact distributions of score dice beside icepool, a general library of dice probabilities.

icepool is the peer of the benchmarks and an oracle of the tests. Its part is written from its documentation of evaluators, and
shares nothing with our own counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from dice_envs.experiments.bench import BenchPart, BenchRow, best_seconds
from dice_envs.experiments.reproduce.score_dice import TABLES, PaperTable
from dice_envs.games.score_dice.exact.distribution import score_distribution

try:
    import icepool
except ImportError:  # it comes with the extra `test`
    icepool = None


def _distributions(quick: bool) -> Iterator[BenchRow]:
    """Time the tables of the paper, and 20d6 against 20d6."""
    pool = (6,) * (10 if quick else 20)
    cases = (
        (
            "score dice: all tables of the paper, exact",
            lambda: [table.compute() for table in TABLES],
            lambda: tables(TABLES),
            0.2,
            f"{sum(len(table.rows) for table in TABLES)} rows in {len(TABLES)} tables; nothing kept between runs",
        ),
        (
            f"score dice: {len(pool)}d6 v {len(pool)}d6 sorted, exact",
            lambda: score_distribution(pool, pool),
            lambda: sorted_pairs(evaluators()["none"], pool, pool),
            None,
            "the project aims at 10 times icepool's speed",
        ),
    )
    repeats = 1 if quick else 3
    for name, ours, theirs, aim, note in cases:
        peer = best_seconds(theirs, repeats) if icepool else None
        yield BenchRow(name, best_seconds(ours, repeats), "s", aim, peer, "icepool" if icepool else "", note)


PARTS = (BenchPart("score_dice", _distributions),)


# --- the same by icepool --------------------------------------------------------------------------------------------

_Evaluator: Any = icepool.MultisetEvaluator if icepool else object


class _SortedPairs(_Evaluator):  # type: ignore[misc]
    """Score of sorted pairs and their number of ties: (A's points minus B's, ties)."""

    def __init__(self, ties: str) -> None:
        self.tie_points = int(ties == "a")
        self.reroll = ties == "reroll"  # report the ties, and leave out rolls in which all pairs tie

    def next_state(self, state: Any, order: Any, outcome: Any, a: int, b: int) -> Any:
        score, ties, lead = state if state is not None else (0, 0, 0)
        if lead > 0:  # dice of A are not paired yet: they beat B's new dice
            beaten = min(b, lead)
            score += beaten
            tied = min(a, b - beaten)
        else:
            beaten = min(a, -lead)
            score -= beaten
            tied = min(b, a - beaten)
        return score + self.tie_points * tied, ties + tied * self.reroll, lead + a - b

    def initial_state(self, order: Any, outcomes: Any, *sizes: Any, **kwargs: Any) -> Any:
        if order != icepool.Order.Descending:
            raise icepool.UnsupportedOrder
        return None

    def final_outcome(self, final_state: Any, order: Any, outcomes: Any, *sizes: Any, **kwargs: Any) -> Any:
        score, ties, _ = final_state
        if self.reroll:
            return icepool.Reroll if ties == min(sizes) else (score, ties)
        return score


def evaluators() -> dict[str, Any]:
    """Return an evaluator for each tie rule, with empty caches."""
    return {ties: _SortedPairs(ties) for ties in ("none", "a", "reroll")}


def sorted_pairs(evaluator: Any, a: Sequence[int], b: Sequence[int]) -> Any:
    """Return the score of sorted pairs as an icepool Die, by the evaluator of "none" or "a"."""
    return evaluator.evaluate(icepool.standard_pool(list(a)), icepool.standard_pool(list(b)))


def sorted_reroll(evaluator: Any, size_a: int, size_b: int, count: int) -> Any:
    """Return the same for `count` dice of one size each, tied dice rolled again, by the evaluator of "reroll"."""

    def play(score: int, tied: int) -> Any:
        if tied == 0:
            return score, 0
        once = evaluator.evaluate(icepool.d(size_a).pool(tied), icepool.d(size_b).pool(tied))
        return once.map(lambda more, left: (score + more, left))

    return icepool.Die([(0, count)]).map(play, repeat=count).marginals[0]


def _pair(size_a: int, size_b: int, ties: str) -> Any:
    difference = (icepool.d(size_a) - icepool.d(size_b)).map(lambda gap: (gap > 0) - (gap < 0))
    if ties == "a":
        return difference.map({0: 1})
    return difference.reroll([0], depth="inf") if ties == "reroll" else difference


def tables(paper_tables: Sequence[PaperTable]) -> list[list[Any]]:
    """Compute all rows of tables of the paper afresh, as icepool Dice."""
    by_ties = evaluators()

    def row(table: PaperTable, a: Sequence[int], b: Sequence[int]) -> Any:
        if table.pairing == "unsorted":
            kinds = Counter(zip(a, b, strict=True))  # in the order given, which does not matter if A's dice are alike
            return sum((count @ _pair(*sizes, table.ties) for sizes, count in kinds.items()), icepool.Die([0]))
        if table.ties == "reroll":
            return sorted_reroll(by_ties["reroll"], a[0], b[0], len(a))
        return sorted_pairs(by_ties[table.ties], a, b)

    return [[row(table, a, b) for _, a, b, _ in table.rows] for table in paper_tables]


def chances(die: Any) -> dict[int, Fraction]:
    """Return a Die as score → probability, by rising score."""
    return {int(score): Fraction(number, die.denominator()) for score, number in sorted(die.items()) if number}
