"""A search for pools of dice with a given win bias, tie percentage or closeness of the score."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dice_envs.exact.score_dice.distribution import Distribution, Pairing, score_distribution
from dice_envs.experiments.solve.score_dice.distribution import Pool

__all__ = ["STANDARD_DICE", "Match", "check_targets", "nearest_pools", "pools_of"]

STANDARD_DICE = (4, 6, 8, 10, 12, 20)


@dataclasses.dataclass(frozen=True)
class Match:
    """Two pools, the distribution of their score, and its distance from the targets."""

    pool_a: Pool
    pool_b: Pool
    result: Distribution
    distance: float


def pools_of(dice: Sequence[int], fewest: int, most: int) -> Iterator[Pool]:
    """Yield all pools of `fewest` to `most` dice of these sizes."""
    for count in range(fewest, most + 1):
        yield from itertools.combinations_with_replacement(sorted(dice), count)


def check_targets(
    bias: float | None, tie_percentage: float | None, closeness: float | None
) -> tuple[float | None, float | None, float | None]:
    """Return the targets of a search. ValueError if there is none, or one that nothing can meet."""
    targets = (bias, tie_percentage, closeness)
    if all(target is None for target in targets):
        raise ValueError("a search needs a target: bias, ties or closeness")
    for name, target, low, high in (
        ("bias", bias, -100, 100),
        ("ties", tie_percentage, 0, 100),
        ("closeness", closeness, 0, 10),
    ):
        if target is not None and not low <= target <= high:
            raise ValueError(f"the target of {name} must be a number from {low} to {high}, not {target!r}")
    return targets


def nearest_pools(
    candidates_a: Sequence[Pool],
    candidates_b: Sequence[Pool],
    ties: str,
    pairing: Pairing,
    bias: float | None = None,
    tie_percentage: float | None = None,
    closeness: float | None = None,
    count: int = 10,
    done: Callable[[int], Any] = lambda amount: None,
) -> list[Match]:
    """Return the pairs of pools nearest to the targets, best first; every pair of candidates is tried.

    The distance is Euclidean over the given targets, with win bias and ties as shares (100 points count as 1 of closeness),
    which puts all three on similar scales.

    Raises:
        ValueError: no target, one that nothing can meet, or no candidates.
    """
    targets = check_targets(bias, tie_percentage, closeness)
    if count < 1 or not candidates_a or not candidates_b:
        raise ValueError("a search needs candidates for both pools and at least 1 result to list")

    def match(a: Pool, b: Pool) -> Match:
        result = score_distribution(a, b, ties, pairing)
        values = (float(result.win_bias), float(result.tie_percentage), result.closeness)
        gaps = [
            (value - target) * scale
            for value, target, scale in zip(values, targets, (0.01, 0.01, 1.0), strict=True)
            if target is not None
        ]
        done(1)
        return Match(a, b, result, math.hypot(*gaps))

    return heapq.nsmallest(  # which keeps no more than it returns
        count,
        (match(a, b) for a in candidates_a for b in candidates_b),
        key=lambda match: (match.distance, len(match.pool_a) + len(match.pool_b), match.pool_a, match.pool_b),
    )
