"""Tables and plots of an evaluation without luck."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dice_envs.core.options import options_text
from dice_envs.evaluation import GAMES_WON, Evaluation, Loss
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid, show_all
from dice_envs.experiments.ui.plots import saved_plot

__all__ = ["evaluation_grids", "save_plots", "show"]

MOST_SHOWN = 5  # of the costliest decisions


def show(found: Evaluation, notes: Sequence[str] = ()) -> None:
    """Print what the player is worth, where it gives wins away, its costliest decisions, and more notes."""
    show_all(evaluation_grids(found))
    for note in notes:
        console.whole_line(note)


def evaluation_grids(found: Evaluation) -> list[Grid]:
    """Return the tables of an evaluation."""
    return [_value_grid(found), *_loss_grids(found), *([_worst_grid(found)] if found.worst else [])]


def _figure(found: Evaluation, value: float, error: float | None = None) -> str:
    """Write a value: in per cent if it is a share of games won."""
    factor, digits = (100, 3) if found.unit == GAMES_WON else (1, 4)
    text = f"{factor * value:.{digits}f}"
    return text if error is None else f"{text} ± {factor * error:.{digits}f}"


def _unit(found: Evaluation) -> str:
    return "% of games won" if found.unit == GAMES_WON else found.unit


def _title(found: Evaluation) -> str:
    options = f" ({options_text(found.options)})" if found.options else ""
    against = f" against {found.against}" if found.against else ""
    matches = f" in matches of {found.match:,}" if found.match > 1 else ""
    return f"{found.agent}{against} in {found.game}{options}: {found.games:,} games{matches}, seed {found.seed}"


def _ratio(found: Evaluation) -> str:
    """The variance ratio in words."""
    if found.variance_ratio is None or found.variance_interval is None:
        return "all luck is taken out: the value is that of these games' decisions, whatever the dice did"
    low, high = found.variance_interval
    return (
        f"the variance is {found.variance_ratio:.3g} times smaller (95 % interval {low:.3g} to {high:.3g}); "
        f"the same interval takes about {found.plain_games:,.0f} games with luck"
    )


def _value_grid(found: Evaluation) -> Grid:
    given = found.best - found.value
    rows = [
        ("without luck", _figure(found, found.value, found.error), _figure(found, given, found.error)),
        ("as played", _figure(found, found.plain, found.plain_error), ""),
        ("a best response", _figure(found, found.best), ""),
    ]
    taken = f"share of the luck taken out {found.coefficient:.3f}; {found.note}"
    return Grid(_title(found), ("", f"{_unit(found)} ± 95 %", "given away"), rows, notes=[_ratio(found), taken])


def _loss_grids(found: Evaluation) -> list[Grid]:
    headings = ("", "decisions", "of them wrong", f"given away a game ({_unit(found)})")
    grids = []
    for heading, losses in _by_heading(found).items():
        rows = [
            (each.label, f"{each.decisions:,}", f"{each.wrong:,}", _figure(found, each.loss, each.error)) for each in losses
        ]
        grids.append(Grid(f"given away by {heading}", headings, rows))
    return grids


def _by_heading(found: Evaluation) -> dict[str, list[Loss]]:
    groups: dict[str, list[Loss]] = {}
    for loss in found.losses:
        groups.setdefault(loss.by, []).append(loss)
    return groups


def _worst_grid(found: Evaluation) -> Grid:
    rows = [(_figure(found, each.cost), each.position, each.played, each.better) for each in found.worst[:MOST_SHOWN]]
    headings = (f"cost ({_unit(found)})", "the player saw", "it played", "better")
    return Grid("the costliest decisions", headings, rows, words=(1, 2, 3))


def save_plots(folder: Path, found: Evaluation) -> None:
    """Save a plot of where the player gives wins away, one part for each heading."""
    groups = _by_heading(found)
    bars = [len(losses) for losses in groups.values()]
    if not bars:
        return
    factor = 100 if found.unit == GAMES_WON else 1
    sizes = {"figsize": (8, 1.6 * len(bars) + 0.35 * sum(bars)), "gridspec_kw": {"height_ratios": [each + 1 for each in bars]}}
    caption = f"{_title(found)}: where it gives away what it lacks of a best response."
    with saved_plot(folder, f"evaluate_{found.game}", caption, nrows=len(bars), squeeze=False, **sizes) as (canvas, axes):
        for (heading, losses), own in zip(groups.items(), axes[:, 0], strict=True):
            places = np.arange(len(losses))[::-1]
            values = factor * np.array([each.loss for each in losses])
            errors = factor * np.array([each.error for each in losses])
            own.barh(places, values, 0.6, xerr=errors, capsize=3, color="#2a6f97", ecolor="#333333")
            own.set_yticks(places, [each.label for each in losses])
            own.set_title(f"by {heading}", loc="left")
            own.set_xlim(left=0)
        axes[-1, 0].set_xlabel(f"given away a game, {_unit(found)} ± 95 %")
        canvas.suptitle(_title(found))
