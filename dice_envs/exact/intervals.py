"""95 % confidence intervals of means of bounded values, which hold with few values too, and where rare ones are large.

The upper limit is the 97.5 % point of the mean of the sample and one more value, the largest possible one, under weights
that are uniform on the simplex; the lower limit likewise with the smallest possible value. For shares these are the limits of
Clopper and Pearson; with many values they become those of the normal distribution. A sample whose values are all alike has an
interval too: of n games without a loss the limit is about 3.7 / n of the largest loss.

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"
(Mathematical Methods of Statistics 14, 2005), for the limits; E. Learned-Miller, P. S. Thomas, "A new confidence interval for
the mean of a bounded random variable" (2019), for how often they hold: in all that was tried, without a proof. R. Lugannani,
S. Rice, "Saddle point approximation for the distribution of the sum of independent random variables" (Advances in Applied
Probability 12, 1980), for how they are computed: to a relative 0.3 %, on the wide side.
"""

from __future__ import annotations

import functools
import math

import numpy as np

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
_TAIL = 0.025
_PRECISION = 1e-5  # of a limit, as a share of its distance from the mean
_MOST_DIFFERENT = 10_000  # values; more are rounded, which changes limits by less than they are precise


def mean_interval(values: np.ndarray, low: float, high: float, counts: np.ndarray | None = None) -> tuple[float, float]:
    """Return the limits of the 95 % interval of the mean that independent values are drawn with.

    Args:
        values: (n,) float64. Without any the interval is all that is possible.
        low, high: the smallest and the largest possible value; rounding may leave values a little outside.
        counts: (n,) how often each value was drawn, a tie between two of them half a time; once if left out.
    """
    seen, inverse = np.unique(np.asarray(values, np.float64), return_inverse=True)
    often = np.bincount(inverse, counts, len(seen)).astype(np.float64)
    seen, often = seen[often > 0], often[often > 0]
    shift = 0.0
    if len(seen) > _MOST_DIFFERENT:
        grid = (seen[-1] - seen[0]) / _MOST_DIFFERENT
        places = np.rint((seen - seen[0]) / grid).astype(np.int64)
        rounded, merged = seen[0] + grid * np.arange(_MOST_DIFFERENT + 1), np.bincount(places, often).astype(np.float64)
        shift = float((seen @ often - rounded @ merged) / often.sum())
        seen, often = rounded[merged > 0], merged[merged > 0]
    return shift - _upper_limit(-seen[::-1], often[::-1], -low), shift + _upper_limit(seen, often, high)


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


def match_half_width(means: np.ndarray, match: int, low: float, high: float) -> float:
    """Return the half-width for the mean of matches, whose games depend on each other, from the mean of each one.

    For single games it is `half_width`. For longer matches it is Student's, and no less than the loss of a whole game that is
    so rare that none of these games showed it.

    Args:
        means: (matches,) float64.
        match: number of games in each.
        low, high: the smallest and the largest possible result of a game.
    """
    if match == 1 or len(means) < 2:
        return half_width(means, low, high)
    least = (high - low) * (1 - _TAIL ** (1 / (len(means) * match)))
    return max(least, t95(len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means)))


@functools.cache
def t95(degrees: int) -> float:
    """Return the 97.5 % point of Student's distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 1 - _TAIL))


def _upper_limit(values: np.ndarray, counts: np.ndarray, high: float) -> float:
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
        return _distance(_tail_above(values - limit, counts)) - _distance(_TAIL)

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
