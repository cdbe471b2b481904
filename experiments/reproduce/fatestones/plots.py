"""The curves and the fair dice as plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import configure
from dice_envs.exact.fatestones import circles, margins
from dice_envs.experiments.ui.plots import logarithmic, saved_plot
from dice_envs.games.fatestones import CODES, FACES

__all__ = ["draw"]


def draw(report: Path, points: list[dict[str, Any]]) -> None:
    """Save the plot of the fair dice, and those of the curves that have points."""
    _plot_margins(report)
    for game, quantity, title in (
        ("fatestones", "edge_share", "FateStones: share of the edge against random play that search captures"),
        ("fatestones", "exploitability", "FateStones: what a best response wins from search, a draw"),
        ("liars_dice", "exploitability", "One-die Liar's Dice: what a best response wins from search"),
    ):
        of_game = [point for point in points if point["game"] == game]
        if not of_game:
            continue
        caption = f"{title}, by simulations a move and rule of selection; bars are 95 % intervals."
        with saved_plot(report, f"{game}_{quantity}", caption, figsize=(10, 5)) as (_, axes):
            for rule in dict.fromkeys(point["rule"] for point in of_game):
                line = [point for point in of_game if point["rule"] == rule]
                errors = [point.get(f"{quantity}_ci95", 0.0) for point in line]
                axes.errorbar(
                    [p["simulations"] for p in line], [p[quantity] for p in line], errors, marker="o", capsize=3, label=rule
                )
            logarithmic(axes, "x")
            axes.set_xlabel("simulations a move")
            axes.set_ylabel({"edge_share": "share of the edge"}.get(quantity, quantity))
            axes.set_title(title, fontsize=12)
            axes.grid(alpha=0.3)
            axes.axhline(0, color="grey", linewidth=0.8)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _plot_margins(report: Path) -> None:
    """Plot which of the fair dice beats which, with the strongest circle marked."""
    bag = configure("fatestones").params.bag
    order = bag[np.argsort(FACES[bag].std(axis=1), kind="stable")]
    margin = margins(order)
    circle = circles(bag)[0].dice
    at = {int(die): place for place, die in enumerate(order)}
    names = [str(CODES[die]) for die in order]
    caption = (
        "Chance to win less chance to lose of the die at the left against the die below, among the 32 fair dice, from even to "
        "uneven faces. Squares mark the strongest circle: "
        f"{' > '.join(str(CODES[die]) for die in (*circle, circle[0]))}."
    )
    with saved_plot(report, "fatestones_margins", caption, figsize=(11, 9.5)) as (figure, axes):
        shown = axes.imshow(margin, cmap="RdYlGn", vmin=-0.5, vmax=0.5)
        for one, other in zip(circle, (*circle[1:], circle[0]), strict=True):
            axes.scatter(at[other], at[one], marker="s", s=110, facecolors="none", edgecolors="black", linewidths=1.8)
        axes.set_xticks(range(len(order)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(order)), names, fontsize=7)
        axes.set_title("FateStones: who beats whom among the fair dice")
        figure.colorbar(shown, ax=axes, label="chance to win less chance to lose")
