"""95 % confidence intervals of means of bounded values, which hold with few values too, and where rare ones are large.

The upper limit is the 97.5 % point of the mean of the sample and one more value, the largest possible one, under weights
that are uniform on the simplex; the lower limit likewise with the smallest possible value. For shares these are the limits of
Clopper and Pearson; with many values they become those of the normal distribution. A sample whose values are all alike has an
interval too: of n games without a loss the limit is about 3.7 / n of the largest loss.

With MANY values or more a possible loss that is far larger than any seen would still fill most of an interval. There
`results_half_width` trusts the sample: it is asymptotic, and does not foresee losses of more than twice the largest one seen.

`anytime_half_width` is for those who look again and again and stop when they like: it holds at all looks together.

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"
(Mathematical Methods of Statistics 14, 2005), for the limits; E. Learned-Miller, P. S. Thomas, "A new confidence interval for
the mean of a bounded random variable" (2019), for how often they hold: in all that was tried, without a proof. R. Lugannani,
S. Rice, "Saddle point approximation for the distribution of the sum of independent random variables" (Advances in Applied
Probability 12, 1980), for how they are computed: to a relative 0.3 %, on the wide side. I. Waudby-Smith, A. Ramdas, "Estimating
means of bounded random variables by betting" (JRSS B 86, 2024), 4.1, for `anytime_half_width`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
TAIL = 0.025  # of each limit
MANY = 500  # values from which on `results_half_width` trusts the largest deviation seen
_SEEN = 1e-6  # of the possible range: smaller deviations are rounding
_PRECISION = 1e-5  # of a limit, as a share of its distance from the mean
_MOST_DIFFERENT = 10_000  # values; more are rounded, which changes limits by less than they are precise
# Shares of the largest possible bet, and their weights: narrowest after some hundred to some thousand values.
_BETS = 0.98 * 0.5 ** np.arange(20)
_WEIGHTS = (1 + np.abs(np.arange(20) - 4)) ** -1.5
_WEIGHTS /= _WEIGHTS.sum()


def mean_interval(
    values: np.ndarray, low: float, high: float, counts: np.ndarray | None = None, tail: float = TAIL
) -> tuple[float, float]:
    """Return the limits of the 95 % interval of the mean that independent values are drawn with.

    Args:
        values: (n,) float64. Without any the interval is all that is possible.
        low, high: the smallest and the largest possible value; rounding may leave values a little outside.
        counts: (n,) how often each value was drawn, a tie between two of them half a time; once if left out.
        tail: the chance that the mean lies below the lower limit, and that it lies above the upper one.
    """
    seen, often, shift = _distinct(values, counts)
    return shift - _upper_limit(-seen[::-1], often[::-1], -low, tail), shift + _upper_limit(seen, often, high, tail)


def _distinct(values: np.ndarray, counts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the different values in rising order, how often each was drawn, and what rounding took from their mean."""
    seen, inverse = np.unique(np.asarray(values, np.float64), return_inverse=True)
    often = np.bincount(inverse, counts, len(seen)).astype(np.float64)
    seen, often = seen[often > 0], often[often > 0]
    if len(seen) <= _MOST_DIFFERENT:
        return seen, often, 0.0
    grid = (seen[-1] - seen[0]) / _MOST_DIFFERENT
    places = np.rint((seen - seen[0]) / grid).astype(np.int64)
    rounded, merged = seen[0] + grid * np.arange(_MOST_DIFFERENT + 1), np.bincount(places, often).astype(np.float64)
    return rounded[merged > 0], merged[merged > 0], float((seen @ often - rounded @ merged) / often.sum())


def half_width(values: np.ndarray, low: float, high: float, counts: np.ndarray | None = None) -> float:
    """Return the distance from the mean to the farther limit of `mean_interval`; `high - low` without values."""
    if not len(values) or (counts is not None and not np.any(counts)):
        return high - low
    lower, upper = mean_interval(values, low, high, counts)
    mean = float(np.average(values, weights=counts))
    return max(mean - lower, upper - mean)


def share_half_width(share: float, count: int) -> float:
    """Return the distance from a share seen in `count` trials to the farther limit of its interval; 1 without trials."""
    return half_width(np.array([0.0, 1.0]), 0.0, 1.0, np.array([1 - share, share]) * count)


def share_bound(seen: int, count: int) -> float:
    """Return the upper limit of the interval of a share seen `seen` times in `count` trials; 1 without trials."""
    return mean_interval(np.array([0.0, 1.0]), 0.0, 1.0, np.array([count - seen, seen]))[1]


def ratio_half_width(parts: np.ndarray, wholes: np.ndarray, most: float) -> float:
    """Return the distance from sum(parts) / sum(wholes) to the farther limit of the interval of the ratio of their means.

    In it are all ratios r for which 0 is in the interval of the mean of parts − r · wholes (Fieller's limits), which is
    asymptotic as that of `results_half_width`.

    Args:
        parts, wholes: (n,) float64, independent pairs; −most ≤ part ≤ whole, and 0 ≤ whole ≤ most.
        most: bound on a whole.
    """
    from scipy.optimize import brentq

    ratio = float(parts.sum() / wholes.sum())

    def limits(ratio: float) -> tuple[float, float]:
        rest = parts - ratio * wholes
        return mean_interval(rest, *_trusted(rest, -most * (1 + max(ratio, 0)), most * max(0, 1 - ratio)))

    all_taken = limits(1.0)[1] >= -_SEEN * most  # but for rounding
    upper = 1.0 if all_taken else float(brentq(lambda tried: limits(tried)[1], ratio, 1.0, xtol=1e-6))
    far = ratio - 1.0
    while limits(far)[0] < 0 and far > -1e6:
        far = ratio - 2 * (ratio - far)
    lower = float(brentq(lambda tried: limits(tried)[0], far, ratio, xtol=1e-6)) if limits(far)[0] >= 0 else -math.inf
    return max(ratio - lower, upper - ratio)


def results_half_width(values: np.ndarray, low: float, high: float) -> float:
    """Return the half-width for the mean result of independent games or matches.

    It is `half_width`, but from MANY values on no value is expected farther from the mean than twice the farthest one seen.
    """
    return half_width(values, *_trusted(values, low, high))


def _trusted(values: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Return the bounds of values, from MANY values on by those seen."""
    mean = float(np.mean(values)) if len(values) else 0.0
    most = 2 * float(np.abs(values - mean).max(initial=0.0))
    if len(values) < MANY or most <= _SEEN * (high - low):
        return low, high
    return max(low, mean - most), min(high, mean + most)


def anytime_half_width(values: np.ndarray, low: float, high: float) -> float:
    """Return a half-width that holds at all looks together: with 95 % the mean is never outside, however often one looks.

    A gambler who bets on each value that it is above, or below, a wrong mean grows rich; on the right one the chance ever to
    multiply the stake by 40 is 1 in 40. The stake is spread over bets of all sizes. The interval is 1.6 to 1.9 times as wide as
    `half_width` with many values, more with fewer than a hundred.

    Args:
        values: (n,) float64, in any order, but all that were drawn so far.
        low, high: the smallest and the largest possible value.
    """
    from scipy.optimize import brentq

    seen, often, _ = _distinct(values, None)
    if not len(seen) or high <= low:
        return high - low
    mean, sides = float(np.average(seen, weights=often)), ((1, min(low, seen[0])), (-1, -max(high, seen[-1])))
    room = 1e-9 * (high - low)

    def excess(guess: float, sign: int, least: float) -> float:
        """Return the logarithm of the stake won by bets that the mean is above a guess, less that of 40."""
        growth = np.log1p(_BETS[:, None] * (sign * seen - guess) / (guess - least)) @ often
        return float(np.log(_WEIGHTS @ np.exp(growth - growth.max())) + growth.max() + math.log(TAIL))

    def limit(sign: int, least: float) -> float:
        if sign * mean - least <= room or excess(least + room, sign, least) < 0:
            return least
        return float(brentq(excess, least + room, sign * mean, (sign, least)))

    return max(sign * mean - limit(sign, least) for sign, least in sides)


@functools.cache
def t95(degrees: int) -> float:
    """Return the 97.5 % point of Student's distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - TAIL))


def _upper_limit(values: np.ndarray, counts: np.ndarray, high: float, tail: float) -> float:
    """Return the upper limit of the mean of different values in rising order, each drawn `counts` times."""
    from scipy.optimize import brentq

    top = max([float(high), *values[-1:].tolist()])
    values, counts = np.append(values, top) - top, np.append(counts, 1.0)
    span = -float(values[0])
    if span == 0:
        return top
    values = values / span  # for brentq, whose tolerance is absolute
    mean = float(values @ counts / counts.sum())
    step = Z95 * math.sqrt(float((values - mean) ** 2 @ counts)) / float(counts.sum())

    def missing(limit: float) -> float:
        return _distance(_tail_above(values - limit, counts)) - _distance(tail)

    above = _PRECISION * mean
    if mean == 0 or missing(above) < 0:
        return top
    return top + span * float(brentq(missing, mean, above, xtol=_PRECISION * step))


def _distance(chance: float) -> float:
    """Return a number that grows almost in proportion to a limit's distance from the mean."""
    return math.sqrt(-math.log(max(chance, 1e-300)))


def _tail_above(gaps: np.ndarray, counts: np.ndarray) -> float:
    """Return the chance that a sum of gaps, each times a standard exponential number, is above 0; its mean is not.

    The weighted mean of values is above a limit exactly where this sum of their gaps to the limit is.
    """
    from scipy.optimize import brentq

    gaps = gaps / gaps[-1]  # for brentq, whose tolerances are absolute too

    def slope(tilt: float) -> float:
        return float(counts @ (gaps / (1 - tilt * gaps)))

    # It is 0 at the saddle point.
    last = 1 - 1e-12
    tilt = float(brentq(slope, 0.0, last, rtol=1e-7)) if slope(0.0) < 0 < slope(last) else 0.0
    root = math.sqrt(max(0.0, 2 * float(counts @ np.log1p(-tilt * gaps))))
    scale = tilt * math.sqrt(float(counts @ (gaps / (1 - tilt * gaps)) ** 2))
    if root < 1e-6 or scale < 1e-6:
        return 0.5
    density = math.exp(-root * root / 2) / math.sqrt(2 * math.pi)
    return math.erfc(root / math.sqrt(2)) / 2 + density * (1 / scale - 1 / root)
