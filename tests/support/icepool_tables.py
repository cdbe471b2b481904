"""Exact distributions of score dice by icepool, written from its documentation of evaluators.

It shares nothing with our own counting.
"""

from collections import Counter
from fractions import Fraction

import icepool


class SortedPairs(icepool.MultisetEvaluator):
    """Score of sorted pairs and their number of ties: (A's points minus B's, ties)."""

    def __init__(self, ties):
        self.tie_points = int(ties == "a")
        self.reroll = ties == "reroll"  # report the ties, and leave out rolls in which all pairs tie

    def next_state(self, state, order, outcome, a, b):
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

    def initial_state(self, order, outcomes, *sizes, **kwargs):
        if order != icepool.Order.Descending:
            raise icepool.UnsupportedOrder
        return

    def final_outcome(self, final_state, order, outcomes, *sizes, **kwargs):
        score, ties, _ = final_state
        if self.reroll:
            return icepool.Reroll if ties == min(sizes) else (score, ties)
        return score


def sorted_pairs(evaluator, a, b):
    """Return the score of sorted pairs as an icepool Die, by the evaluator of "none" or "a"."""
    return evaluator.evaluate(icepool.standard_pool(list(a)), icepool.standard_pool(list(b)))


def sorted_reroll(evaluator, size_a, size_b, count):
    """Return the same for `count` dice of one size each, tied dice rolled again, by the evaluator of "reroll"."""

    def play(score, tied):
        if tied == 0:
            return score, 0
        once = evaluator.evaluate(icepool.d(size_a).pool(tied), icepool.d(size_b).pool(tied))
        return once.map(lambda more, left: (score + more, left))

    return icepool.Die([(0, count)]).map(play, repeat=count).marginals[0]


def pair(size_a, size_b, ties):
    difference = (icepool.d(size_a) - icepool.d(size_b)).map(lambda gap: (gap > 0) - (gap < 0))
    if ties == "a":
        return difference.map({0: 1})
    return difference.reroll([0], depth="inf") if ties == "reroll" else difference


def unsorted_pairs(a, b, ties):
    """Return the score of pools of equal size, paired in the order given. If A's dice are alike, the order does not matter."""
    kinds = Counter(zip(a, b, strict=True))
    return sum((count @ pair(*sizes, ties) for sizes, count in kinds.items()), icepool.Die([0]))


def rows_of(table):
    """Compute the rows of a table of the paper afresh, as icepool Dice."""
    evaluator = SortedPairs(table.ties)
    for _, a, b, _ in table.rows:
        if table.pairing == "unsorted":
            yield unsorted_pairs(a, b, table.ties)
        elif table.ties == "reroll":
            yield sorted_reroll(evaluator, a[0], b[0], len(a))
        else:
            yield sorted_pairs(evaluator, a, b)


def chances(die):
    """Return a Die as score → probability, by rising score."""
    return {int(score): Fraction(number, die.denominator()) for score, number in sorted(die.items()) if number}
