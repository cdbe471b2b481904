"""95 % confidence intervals."""

from __future__ import annotations

import math

__all__ = ["Z95", "share_bound", "wilson_half_width"]

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution


def wilson_half_width(share: float, count: int, variance: float | None = None) -> float:
    """Return half the width of the 95 % Wilson interval of a share seen in `count` trials; 1 without trials.

    It is above 0 even where all trials end alike. `variance` is that of one trial, if trials have other outcomes than a win
    and a loss, such as ties.
    """
    if count == 0:
        return 1.0
    z2 = Z95 * Z95
    variance = share * (1 - share) if variance is None else variance
    return Z95 / (1 + z2 / count) * math.sqrt(variance / count + z2 / (4 * count * count))


def share_bound(seen: int, count: int) -> float:
    """Return the upper end of the 95 % Wilson interval of a share seen `seen` times in `count` trials; 1 without trials."""
    if count == 0:
        return 1.0
    share, z2 = seen / count, Z95 * Z95
    return min(1.0, (share + z2 / (2 * count)) / (1 + z2 / count) + wilson_half_width(share, count))
