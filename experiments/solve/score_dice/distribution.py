"""Pools and distributions of the score as people read them: names, rounded figures, bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dice_envs.exact.score_dice.distribution import Distribution
from dice_envs.experiments.ui.plots import counted

__all__ = ["Pool", "cells", "plot_histogram", "pool_name"]

Pool = tuple[int, ...]  # sizes of dice
MOST_TICKS = 13  # scores that have a tick of their own


def pool_name(pool: Sequence[int]) -> str:
    """Return a pool as dice players write it, smallest dice first: "2d6/3d8"."""
    return "/".join(f"{count}d{size}" for size, count in sorted(Counter(pool).items()))


def cells(result: Distribution) -> tuple[str, str, str]:
    """Return win bias, tie % and closeness to the digits that the tables print."""
    bias, ties = float(result.win_bias), float(result.tie_percentage)
    return f"{bias:.2f}", f"{ties:.2f}", f"{result.closeness:.3f}"


def plot_histogram(axes: Any, result: Distribution, title: str) -> None:
    """Plot the distribution as bars, in percent, A's wins in one colour and B's in another."""
    scores = list(result.chances)
    colours = ["#3b6ea5" if score > 0 else "#b5533c" if score < 0 else "#8a8a8a" for score in scores]
    axes.bar(scores, [100 * float(chance) for chance in result.chances.values()], color=colours, width=0.85)
    bias, ties, closeness = cells(result)
    axes.set_title(f"{title}\nbias {bias}, ties {ties} %, closeness {closeness}", fontsize=11)
    axes.set_xlabel("score: A's points − B's")
    axes.set_ylabel("% of games")
    if len(scores) <= MOST_TICKS:
        axes.set_xticks(scores)
    else:
        counted(axes, "x")
