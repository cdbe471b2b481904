"""The exact analysis of the game of 30s beside the textbook recursion."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dice_envs.exact.thirties import Rules, forget_solutions, solve, throws
from dice_envs.experiments.bench import BenchRow, Part, best_seconds

__all__ = ["PARTS"]


def _against_fractions(quick: bool) -> Iterator[BenchRow]:
    """Time the strategy `maximize` in integers over all throws at once, and by the textbook recursion in fractions."""

    def by_fractions() -> Fraction:
        expected = [Fraction(0)]
        for dice in range(1, 7):
            total = Fraction(0)
            for throw, ways in throws(dice, 6):
                total += ways * max(sum(throw[again:]) + expected[again] for again in range(dice))
            expected.append(total / 6**dice)
        return expected[-1]

    value = solve(Rules(), "maximize")[1]
    if by_fractions() != value:
        raise ValueError("the peer's value differs from ours")
    repeats = 3 if quick else 10

    def afresh() -> None:
        forget_solutions()
        solve(Rules(), "maximize")

    ours = best_seconds(afresh, repeats)
    peer = best_seconds(by_fractions, repeats)
    note = "ours does it for every number of pips aside; the peer for none"
    yield BenchRow("thirties: maximize, exact", ours, "s", peer=peer, peer_name="recursion in fractions", note=note)


PARTS = (Part("thirties", _against_fractions),)
