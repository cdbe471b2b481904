"""Tables and plots of `benchmark language`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dice_envs.evaluation import GAMES_WON
from dice_envs.experiments.language.scores import Score
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.plots import saved_plot

__all__ = ["grids_of", "plot"]


def grids_of(scores: Sequence[Score]) -> list[Grid]:
    """Return the tables of one task's scores: the players, bluffs if there are any, then a table for each kind of decision."""
    return [_main_grid(scores), *([_bluff_grid(scores)] if scores[0].bluffs else []), *_kind_grids(scores)]


def _figure(value: float, unit: str, error: float = math.nan) -> str:
    """Write a value: in per cent if it is a share."""
    factor, digits = (100, 2) if unit.startswith("%") or unit == GAMES_WON else (1, 3)
    text = f"{factor * value:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {factor * error:.{digits}f}"


def _main_grid(scores: Sequence[Score]) -> Grid:
    first = scores[0]
    unit = f"% of {GAMES_WON}" if first.result_unit == GAMES_WON else first.result_unit
    headings = ("player", f"regret a move ({first.unit})", "wrong", "illegal", f"result without luck ({unit})", "tokens")
    rows = [
        (
            each.player,
            _figure(each.regret, each.unit, each.error),
            f"{100 * each.wrong:.0f} %",
            f"{100 * each.illegal:.1f} %",
            _figure(each.result, each.result_unit, each.result_error),
            f"{each.tally.tokens:,}" if each.tally else "",
        )
        for each in scores
    ]
    notes = [f"a best response to optimal play: {_figure(first.best, first.result_unit)} {unit}; all intervals are 95 %"]
    random = [f"{each.player}: {each.tally.random:,}" for each in scores if each.tally and each.tally.random]
    if random:
        notes.append(f"moves drawn at random after two illegal replies: {', '.join(random)}")
    return Grid(f"{first.task}: {first.positions:,} positions and {first.games:,} games", headings, rows, notes=notes)


def _kind_grids(scores: Sequence[Score]) -> list[Grid]:
    """A table for each heading, a row for each kind of decision, a column for each player."""
    grids = []
    for by in dict.fromkeys(kind.by for each in scores for kind in each.kinds):
        found = [{kind.label: kind for kind in each.kinds if kind.by == by} for each in scores]
        labels = dict.fromkeys(label for kinds in found for label in kinds)
        rows = []
        for label in labels:
            cells = [
                f"{_figure(kinds[label].regret, scores[0].unit, kinds[label].error)} ({kinds[label].decisions:,})"
                if label in kinds
                else ""
                for kinds in found
            ]
            rows.append((label, *cells))
        title = f"regret by {by} ({scores[0].unit}; decisions in brackets)"
        grids.append(Grid(title, ("", *(each.player for each in scores)), rows))
    return grids


def _bluff_grid(scores: Sequence[Score]) -> Grid:
    rows = [
        (f"{100 * own.solution:.0f} % ({own.positions:,})", *(f"{100 * each.bluffs[k].player:.0f} %" for each in scores))
        for k, own in enumerate(scores[0].bluffs)
    ]
    title = "how often each bluffs where the solution bluffs this often (positions in brackets)"
    return Grid(title, ("solution", *(each.player for each in scores)), rows)


def plot(folder: Path, scores: Sequence[Score]) -> None:
    """Save the calibration plot of one task's bluffs; nothing for a game without bluffs."""
    if not scores[0].bluffs:
        return
    task = scores[0].task
    caption = (
        f"{task}: how often each player bluffs, beside how often the solution does at the same positions, with 95 % intervals."
    )
    with saved_plot(folder, f"bluffs_{task}", caption, figsize=(9, 6.5)) as (_, axes):
        axes.plot((0, 1), (0, 1), color="#999999", linestyle="--", label="as often as the solution")
        for number, each in enumerate(scores):
            shift = 0.006 * (number - (len(scores) - 1) / 2)  # side by side, so that intervals can be told apart
            axes.errorbar(
                [own.solution + shift for own in each.bluffs],
                [own.player for own in each.bluffs],
                [[min(own.error, own.player) for own in each.bluffs], [min(own.error, 1 - own.player) for own in each.bluffs]],
                marker="o",
                linestyle="none",
                capsize=3,
                label=each.player,
            )
        axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), xlabel="chance of a bluff, solution", ylabel="share of bluffs, player")
        axes.set_title(f"bluffs in {task}")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
