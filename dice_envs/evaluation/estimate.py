"""Means of results from which luck is taken out, with 95 % intervals.

A game's result is what was expected before it, less what the player's own choices gave away, plus luck. In either seat the mean
of luck is 0, so result − c · luck has the mean of the results for every c. The best c is the slope of the regression of results
on luck within seats: what one seat is worth more than the other is no luck. For the estimate to stay unbiased, each game's c is
computed from other games (cross-fitting).

Where both players' probabilities are known, luck can be told in two ways: by the values of either one against the other. Both
are then subtracted, each with its own coefficient (Zinkevich et al. choose among such estimates; Owen 8.9 combines them).

Sources: M. Zinkevich, M. Bowling, N. Bard, M. Kan, D. Billings, "Optimal unbiased estimators for evaluating agent performance"
(AAAI 2006), for the value that is subtracted at every event of chance; N. Burch, M. Schmid, M. Moravčík, D. Morrill,
M. Bowling, "AIVAT: A new variance reduction technique for agent evaluation in imperfect information games" (AAAI 2018), for
the events of a known opponent; A. Owen, "Monte Carlo theory, methods and examples" (2013), 8.9, for the coefficient.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from dice_envs.exact.intervals import Z95, match_half_width

FOLDS = 10  # each one's coefficient comes from the others
LEAST_FITTED = 5 * FOLDS  # with fewer matches coefficients add up to 1, which no chance result of a few games can distort
MOST_TAKEN = 1.5  # a larger coefficient comes from luck that hardly varies in the other folds, and would spoil this one
_ALIKE = 0.01  # two kinds of luck whose difference spreads less than this share of them are one


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adjusted:
    """Means with the half-widths of their 95 % intervals.

    Attributes:
        value, error: the player's mean result, without luck.
        plain, plain_error: the same as games are won.
        variance_ratio: how many times as many games the plain mean needs for the same interval; None where all luck is
            taken out.
        variance_interval: its 95 % interval; None without a ratio.
        coefficient: the share of the luck that was taken out, from a regression: the mean over the folds; with several kinds
            of luck their sum.
    """

    value: float
    error: float
    plain: float
    plain_error: float
    variance_ratio: float | None
    variance_interval: tuple[float, float] | None
    coefficient: float


def adjust(
    results: np.ndarray,
    expected: np.ndarray,
    lost: np.ndarray,
    low: float = 0.0,
    high: float = 1.0,
    seats: int = 2,
    losers: Sequence[int] = (1,),
) -> Adjusted:
    """Take the luck out of results.

    Args:
        results: (matches, games) float64. Matches are independent of each other, and the player's seat rotates over them.
        expected: as many: what a best response wins, by the seat alone; or (kinds, matches, games) for several kinds of luck.
        lost: like `expected`: what choices gave away.
        low, high: the worst and the best possible result of a game.
        seats: in which the player sits in turn; 1 if it has all of them.
        losers: whose choices `lost` counts, for each kind of luck: 1 the player's, −1 the opponent's.
    """
    matches, match = results.shape
    expected, lost = (each.reshape(-1, *results.shape).mean(axis=2) for each in (expected, lost))
    plain, lost = results.mean(axis=1), np.array(losers)[:, None] * lost
    seat = np.arange(matches) % min(seats, matches)
    coefficients = _coefficients(seat, plain, plain - expected + lost)
    taken = coefficients.sum(axis=0)
    # Result less luck, and less what the seat is worth: the values at the start are means over the seats.
    starts = _means(seat, expected).mean(axis=-1)
    adjusted = (1 - taken) * plain + (coefficients * (starts[:, None] - lost)).sum(axis=0)
    value, plain_value = (float(np.clip(_means(seat, each).mean(), low, high)) for each in (adjusted, plain))
    ratio, interval = _variance_ratio(_within(seat, plain), _within(seat, adjusted))
    # Bounds, mean over the folds, of adjusted results of games in which nobody gives away more than there is to win.
    sides = np.sort((1 - taken) * np.array([[low], [high]]), axis=0)
    for coefficient, start, loser in zip(coefficients, starts, losers, strict=True):
        sides += np.sort(coefficient * np.array([[start], [start - loser * (high - low)]]), axis=0)
    least, most = (float(side.mean()) for side in sides)
    return Adjusted(
        value=value,
        error=min(_error(value, seat, adjusted, match, least, most), high - low),
        plain=plain_value,
        plain_error=min(_error(plain_value, seat, plain, match, low, high), high - low),
        variance_ratio=ratio,
        variance_interval=interval,
        coefficient=float(taken.mean()),
    )


def _error(value: float, seat: np.ndarray, values: np.ndarray, match: int, low: float, high: float) -> float:
    """Return the half-width of the interval of a mean over seats, from the values of each match and their bounds."""
    count = np.bincount(seat)
    if len(seat) < LEAST_FITTED:  # too few to tell what a seat is worth, so it counts as luck
        center, scale = np.full(len(count), value), len(seat) / len(count) / count
    else:
        center, scale = _means(seat, values), np.sqrt(count / (count - 1))
    reach = [float(np.max(scale * side)) for side in (center - min(low, *center), max(high, *center) - center)]
    return match_half_width(scale[seat] * (values - center[seat]), match, -reach[0], reach[1])


def _means(seat: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean of values (…, matches) in each seat, (…, seats) float64."""
    return np.stack([values[..., seat == each].mean(axis=-1) for each in range(seat.max() + 1)], axis=-1)


def _within(seat: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values (…, matches) less their mean in the same seat."""
    return values - _means(seat, values)[..., seat]


def _coefficients(seat: np.ndarray, results: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """Return coefficients of each kind of luck in each match, (kinds, matches) float64, from matches of the other folds."""
    even = 1 / len(luck)
    if len(results) < LEAST_FITTED:
        return np.full(luck.shape, even)
    fold = np.arange(len(results)) // 2 % FOLDS  # both seats in each
    found = np.full((len(luck), FOLDS), even)
    for each in range(FOLDS):
        others = fold != each
        own_luck = _within(seat[others], luck[:, others])
        if own_luck.any():
            found[:, each] = np.linalg.lstsq(own_luck.T, _within(seat[others], results[others]), rcond=_ALIKE)[0]
    return np.clip(found, 0.0, MOST_TAKEN)[:, fold]


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
