"""Intervals of shares."""

from __future__ import annotations

import math

from dice_envs.exact import Z95

__all__ = ["wilson_half_width"]


def wilson_half_width(share: float, count: int, spread: float | None = None) -> float:
    """Half the width of the 95 % Wilson interval of a share seen in `count` trials.

    `spread` is the variance of a trial, if it is not that of a win or a loss: of games that may be tied, say.
    """
    if count == 0:
        return 1.0
    z2 = Z95 * Z95
    variance = share * (1 - share) if spread is None else spread
    return Z95 / (1 + z2 / count) * math.sqrt(variance / count + z2 / (4 * count * count))
