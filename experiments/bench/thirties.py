"""Speed of the game of 30s: the exact analysis, and play."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.bench import BenchRow, best_rate, best_seconds

GOALS_AIM = 0.2  # seconds
REPRODUCE_AIM = 0.5  # seconds


def rows(quick: bool) -> Iterator[BenchRow]:
    """The best strategies of all four goals; everything `reproduce thirties` computes; random play."""
    from dice_envs import Batch
    from dice_envs.exact.thirties import Rules, solve
    from dice_envs.games.thirties import GOALS
    from experiments.reproduce.thirties import all_rows

    repeats = 3 if quick else 10

    def goals() -> Any:
        return [solve(Rules(), goal) for goal in GOALS]

    yield BenchRow("thirties: best strategies of the four goals, exact", best_seconds(goals, repeats), "s", aim=GOALS_AIM)
    yield BenchRow("thirties: all that `reproduce thirties` computes", best_seconds(all_rows, repeats), "s", aim=REPRODUCE_AIM)
    num_games, steps = 1000, 200 if quick else 2000
    for num_players, name in ((1, "one player"), (4, "table of four")):
        batch = Batch("thirties", num_games, seed=1, num_players=num_players)
        variant = batch.variant

        def playouts(batch: Batch = batch, variant: Any = variant) -> Any:
            return variant.kernels.playouts(variant.params, batch.states, steps)

        rate = best_rate(playouts, num_games * steps / 1e6, repeats)
        yield BenchRow(f"thirties: random play, {name}", rate, "M/s", note="decisions, on one core")
    yield _against_fractions(quick)


def _against_fractions(quick: bool) -> BenchRow:
    """The strategy `maximize` by integers over all throws at once, and by the textbook recursion in fractions."""
    from fractions import Fraction

    from dice_envs.exact.thirties import Rules, solve, throws

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
    ours = best_seconds(lambda: solve(Rules(), "maximize"), repeats)
    peer = best_seconds(by_fractions, repeats)
    note = "ours does it for every number of pips aside; the peer for none"
    return BenchRow("thirties: maximize, exact", ours, "s", peer=peer, peer_name="recursion in fractions", note=note)
