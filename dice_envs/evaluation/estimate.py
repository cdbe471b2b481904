"""Means of results from which luck is taken out, with 95 % intervals.

A game's result is what was expected before it, less what the player's own choices gave away, plus luck. The mean of luck is 0,
so result − c · luck has the mean of the results for every c. The best c is the slope of the regression of results on luck.
For the estimate to stay unbiased, each game's c is computed from other games (cross-fitting).

Where both players' probabilities are known, luck can be told in two ways: by the values of either one against the other. Both
are then subtracted, each with its own coefficient (Zinkevich et al. choose among such estimates; Owen 8.9 combines them).

Sources: M. Zinkevich, M. Bowling, N. Bard, M. Kan, D. Billings, "Optimal unbiased estimators for evaluating agent performance"
(AAAI 2006), for the value that is subtracted at every event of chance; N. Burch, M. Schmid, M. Moravčík, D. Morrill,
M. Bowling, "AIVAT: A new variance reduction technique for agent evaluation in imperfect information games" (AAAI 2018), for
the events of a known opponent; A. Owen, "Monte Carlo theory, methods and examples" (2013), 8.9, for the coefficient.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dice_envs.exact.intervals import Z95

__all__ = ["Adjusted", "adjust", "half_width", "t95"]

FOLDS = 10  # each one's coefficient comes from the others
LEAST_FITTED = 5 * FOLDS  # with fewer matches coefficients add up to 1, which no chance result of a few games can distort
_ALIKE = 0.01  # two kinds of luck whose difference spreads less than this share of them are one


class Adjusted(NamedTuple):
    """Means with the half-widths of their 95 % intervals.

    Attributes:
        value, error: from which luck is taken out.
        plain, plain_error: as games are won.
        variance_ratio: of a plain result to one without luck; None where all luck is taken out.
        variance_interval: its 95 % interval; None without a ratio.
        coefficient: the share of the luck that is taken out, mean over the folds; with several kinds of luck their sum.
    """

    value: float
    error: float
    plain: float
    plain_error: float
    variance_ratio: float | None
    variance_interval: tuple[float, float] | None
    coefficient: float


def adjust(results: np.ndarray, expected: np.ndarray, lost: np.ndarray, spread: float = 1.0) -> Adjusted:
    """Take the luck out of results.

    Args:
        results: (matches, games) float64. Matches are independent of each other.
        expected: as many: what a best response wins, by the seat alone; or (kinds, matches, games) for several kinds of luck.
        lost: like `expected`: what the player's choices gave away.
        spread: the best possible result less the worst.
    """
    expected, lost = (each.reshape(-1, *results.shape) for each in (expected, lost))
    plain, luck = results.mean(axis=1), (results - expected + lost).mean(axis=2)
    coefficients = _coefficients(plain, luck)
    # Seats rotate, which is no luck: what one is worth more than the other is taken out as well.
    by_seat = expected.mean(axis=(0, 2))
    adjusted = plain - (by_seat - by_seat.mean()) - (coefficients * luck).sum(axis=0)
    ratio, interval = _variance_ratio(plain, adjusted)
    coefficient = float(coefficients.sum(axis=0).mean())
    # Games that all end alike do not prove that others do. For the luck that is left, Wilson's interval of no win is the least.
    least = spread * Z95**2 / (2 * (results.size + Z95**2))
    return Adjusted(
        value=float(adjusted.mean()),
        error=max(half_width(adjusted), least * abs(1 - coefficient)),
        plain=float(plain.mean()),
        plain_error=max(half_width(plain), least),
        variance_ratio=ratio,
        variance_interval=interval,
        coefficient=coefficient,
    )


def half_width(values: np.ndarray) -> float:
    """Return half the width of the 95 % interval of the mean of two or more independent values, by Student's t."""
    return t95(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))


def t95(degrees: int) -> float:
    """Return the 97.5 % point of Student's distribution."""
    from scipy.special import stdtrit  # here, because it takes long to import

    return float(stdtrit(degrees, 0.975))


def _coefficients(results: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """Return coefficients of each kind of luck in each match, (kinds, matches) float64, from matches of the other folds."""
    even = 1 / len(luck)
    if len(results) < LEAST_FITTED:
        return np.full(luck.shape, even)
    fold = np.arange(len(results)) // 2 % FOLDS  # both seats in each
    found = np.full((len(luck), FOLDS), even)
    for each in range(FOLDS):
        others = fold != each
        own_luck = luck[:, others] - luck[:, others].mean(axis=1, keepdims=True)
        if own_luck.any():
            found[:, each] = np.linalg.lstsq(own_luck.T, results[others], rcond=_ALIKE)[0]
    return found[:, fold]


def _variance_ratio(plain: np.ndarray, adjusted: np.ndarray) -> tuple[float | None, tuple[float, float] | None]:
    """Return the ratio of two variances with its 95 % interval, by the delta method on its logarithm."""
    before, after = float(plain.var()), float(adjusted.var())
    if before == 0:  # all games ended alike, so no coefficient takes anything out
        return 1.0, (1.0, 1.0)
    if after <= 1e-18 * before:  # rounding
        return None, None
    ratio = before / after
    influence = (plain - plain.mean()) ** 2 / before - (adjusted - adjusted.mean()) ** 2 / after
    factor = math.exp(Z95 * float(influence.std(ddof=1)) / math.sqrt(len(plain)))
    return ratio, (ratio / factor, ratio * factor)
