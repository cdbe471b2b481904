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
from typing import Any

import numpy as np

from dice_envs.exact.intervals import Z95, anytime_half_width, mean_interval, results_half_width

FOLDS = 10  # each one's coefficient comes from the others
LEAST_FITTED = 5 * FOLDS  # with fewer results coefficients add up to 1, which no chance result of a few games can distort
# With fewer results, one game in which everything is given away would be likelier than luck: nothing is taken out.
LEAST_ADJUSTED = 10
MOST_TAKEN = 1.5  # a larger coefficient comes from luck that hardly varies in the other folds, and would spoil this one
_ALIKE = 0.01  # two kinds of luck whose difference spreads less than this share of them are one
_UNLIKELY = 3.2e-5  # the chance that a normal number is more than 4 standard deviations above its mean


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
    seat: np.ndarray,
    low: float = 0.0,
    high: float = 1.0,
    most_lost: Sequence[float | None] = (None,),
    losers: Sequence[int] = (1,),
    anytime: bool = False,
) -> Adjusted:
    """Take the luck out of results.

    Args:
        results: (n,) float64, independent of each other: of games, or means of matches.
        expected: as many: what a best response wins, by the seat alone; or (kinds, n) for several kinds of luck.
        lost: like `expected`: what choices gave away.
        seat: (n,) the player's seat, 0, 1, … in turn; 0 throughout if it has all of them.
        low, high: the worst and the best possible result.
        most_lost: for each kind of luck, the most that choices can give away in a game; None: as much as there is to win.
        losers: whose choices `lost` counts, for each kind of luck: 1 the player's, −1 the opponent's.
        anytime: make intervals that hold at all looks together, at the first so many of these results, for every number; with
            one kind of luck.
    """
    if anytime:  # whole rounds of the seats, which are alike
        whole = len(results) - len(results) % (int(seat.max()) + 1)
        results, expected, lost, seat = (each[..., :whole] for each in (results, expected, lost, seat))
    luck, lost = luck_of(results, expected, lost, losers), np.array(losers)[:, None] * np.reshape(lost, (-1, len(results)))
    most = np.array([high - low if each is None else min(each, high - low) for each in most_lost])
    unfitted = _unfitted(len(results), most, high - low, anytime)
    coefficients = _coefficients(seat, results, luck, unfitted, bool(most.any()), anytime)
    taken = coefficients.sum(axis=0)
    # Result less luck, and less what the seat is worth: the values at the start are means over the seats.
    starts = _means(seat, np.reshape(expected, lost.shape)).mean(axis=-1)
    adjusted = (1 - taken) * results + (coefficients * (starts[:, None] - lost)).sum(axis=0)
    value, plain_value = (float(np.clip(_means(seat, each).mean(), low, high)) for each in (adjusted, results))
    ratio, interval = _variance_ratio(_within(seat, results), _within(seat, adjusted))
    # Bounds of adjusted results in which nobody gives away more than `most`; those for all looks are the same at each.
    bounding = np.array([[0.0, 1.0]]) if anytime else coefficients
    sides = np.sort((1 - bounding.sum(axis=0)) * np.array([[low], [high]]), axis=0)
    for coefficient, start, loser, own in zip(bounding, starts, losers, most, strict=True):
        sides += np.sort(coefficient * np.array([[start], [start - loser * own]]), axis=0)
    least, largest = float(sides[0].min()), float(sides[1].max())
    return Adjusted(
        value=value,
        error=min(_error(value, seat, adjusted, least, largest, anytime), high - low),
        plain=plain_value,
        plain_error=min(_error(plain_value, seat, results, low, high, anytime), high - low),
        variance_ratio=ratio,
        variance_interval=interval,
        coefficient=float(taken.mean()),
    )


def luck_of(results: np.ndarray, expected: np.ndarray, lost: np.ndarray, losers: Sequence[int] = (1,)) -> np.ndarray:
    """Return the luck in each result, (kinds, n) float64; see `adjust`."""
    expected, lost = (np.reshape(each, (-1, len(results))) for each in (expected, lost))
    return np.asarray(results - expected + np.array(losers)[:, None] * lost)


def is_fair(luck: np.ndarray, most: float) -> bool:
    """Return whether luck (n,) can have mean 0: it is within about four standard errors of it.

    Else the probabilities that luck was computed from are not those that were played.

    Args:
        luck: of independent results.
        most: bound on it, either way.
    """
    low, high = mean_interval(luck, -most, most, tail=_UNLIKELY)
    return low <= 0 <= high


def _error(value: float, seat: np.ndarray, values: np.ndarray, low: float, high: float, anytime: bool) -> float:
    """Return the half-width of the interval of a mean over seats, from results and their bounds."""
    count = np.bincount(seat)
    if anytime:
        return anytime_half_width(values.reshape(-1, len(count)).mean(axis=1), low, high)
    if len(seat) < LEAST_FITTED:  # too few to tell what a seat is worth, so it counts as luck
        center, scale = np.full(len(count), value), len(seat) / len(count) / count
    else:
        center, scale = _means(seat, values), np.sqrt(count / (count - 1))
    reach = [float(np.max(scale * side)) for side in (center - min(low, *center), max(high, *center) - center)]
    return results_half_width(scale[seat] * (values - center[seat]), -reach[0], reach[1])


def _means(seat: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean of values (…, matches) in each seat, (…, seats) float64."""
    return np.stack([values[..., seat == each].mean(axis=-1) for each in range(seat.max() + 1)], axis=-1)


def _within(seat: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values (…, matches) less their mean in the same seat."""
    return values - _means(seat, values)[..., seat]


def _unfitted(count: int, most: np.ndarray, spread: float, anytime: bool) -> float:
    """Return the coefficient of each kind of luck where none is fitted. It does not depend on what happened in the games."""
    few = count < LEAST_ADJUSTED and not anytime
    return 0.0 if few and most.mean() >= spread else 1 / len(most)


def _coefficients(
    seat: np.ndarray, results: np.ndarray, luck: np.ndarray, unfitted: float, is_fitted: bool, anytime: bool
) -> np.ndarray:
    """Return coefficients of each kind of luck in each result, (kinds, n) float64, from results of other folds.

    For intervals at any time they come from earlier results, change whenever there are twice as many, and are at most 1.
    """
    found, count = np.full(luck.shape, unfitted), len(results)
    fold = np.arange(count) // 2 % FOLDS  # both seats in each
    parts: list[tuple[Any, Any]] = [(fold == each, fold != each) for each in range(FOLDS)]
    if anytime:
        firsts = [LEAST_FITTED << power for power in range(count.bit_length()) if LEAST_FITTED << power < count]
        parts = [(slice(first, 2 * first), slice(first)) for first in firsts]
    for own, others in parts if is_fitted and count >= LEAST_FITTED else ():
        own_luck = _within(seat[others], luck[:, others])
        if own_luck.any():
            slopes = np.linalg.lstsq(own_luck.T, _within(seat[others], results[others]), rcond=_ALIKE)[0]
            found[:, own] = slopes[:, None]
    return np.clip(found, 0.0, 1.0 if anytime else MOST_TAKEN)


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
