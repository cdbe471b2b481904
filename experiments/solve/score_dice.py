"""`solve score_dice`: the exact distribution of the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs import configure
from dice_envs.core.options import check_choice
from dice_envs.experiments import ui
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.pages import counted, saved_plot
from dice_envs.games.score_dice.exact.distribution import PAIRINGS, ScoreDistribution, score_distribution


def main(
    option: ui.OptionOption = None,
    pairing: Annotated[str, typer.Option(help="sorted: highest with highest; unsorted: a random pairing.")] = "sorted",
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
) -> None:
    """Exact distribution of the score of score dice, as fractions, and its win bias, ties and closeness.

    The score is A's points minus B's. Win bias is 100 (P(score > 0) - P(score < 0)), closeness 1 / √E[score²].

    Example: solve score_dice -o pool_a=6,6,6,6,6 -o pool_b=6,6,8,8,8 -o ties=a --pairing sorted
    """
    options = configure("score_dice", **ui.game_options(option)).options
    check_choice("pairing", pairing, PAIRINGS)
    game = f"{pool_name(options.pool_a)} v {pool_name(options.pool_b)}, {pairing}, ties={options.ties}"
    with ui.progress(game):
        result = score_distribution(options.pool_a, options.pool_b, options.ties, pairing)
    rows = [(f"{score:+d}" if score else "0", f"{float(chance):.6f}", str(chance)) for score, chance in result.chances.items()]
    Grid(game, ("score", "chance", "exactly"), rows, words=()).show()
    bias, ties, closeness = cells(result)
    ui.console.print(f"win bias {bias}, ties {ties} %, closeness {closeness}")
    summary: dict[str, Any] = {
        "win_bias": float(result.win_bias),
        "tie_percentage": float(result.tie_percentage),
        "closeness": result.closeness,
        "distribution": {str(score): str(chance) for score, chance in result.chances.items()},
    }

    def plot(folder: Path) -> None:
        with saved_plot(folder, "score_dice_distribution", "The exact distribution of the score.") as (_, axes):
            plot_histogram(axes, result, game)

    ui.write_all(json, summary, report, plot)


Pool = tuple[int, ...]  # sizes of dice
MOST_TICKS = 13  # scores that have a tick of their own


def pool_name(pool: Sequence[int]) -> str:
    """Return a pool as dice players write it, smallest dice first: "2d6/3d8"."""
    return "/".join(f"{count}d{size}" for size, count in sorted(Counter(pool).items()))


def cells(result: ScoreDistribution) -> tuple[str, str, str]:
    """Return win bias, tie % and closeness to the digits that the tables print."""
    return f"{float(result.win_bias):.2f}", f"{float(result.tie_percentage):.2f}", f"{result.closeness:.3f}"


def plot_histogram(axes: Any, result: ScoreDistribution, title: str) -> None:
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
        counted(axes)
