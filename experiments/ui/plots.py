"""Plots of reports, saved as files and collected with their captions for a page."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dice_envs.core.files import atomic, named_in_errors
from dice_envs.experiments.ui import console

BLUE, ORANGE = "#2a6f97", "#e76f51"  # told apart by colour-blind people, too


class Plot(NamedTuple):
    """A saved plot and its caption."""

    path: Path
    caption: str


_noted: contextvars.ContextVar[list[Plot] | None] = contextvars.ContextVar("noted", default=None)


@contextlib.contextmanager
def plots_noted() -> Iterator[list[Plot]]:
    """Collect the plots that the block saves, in order, in the list that this yields."""
    plots: list[Plot] = []
    token = _noted.set(plots)
    try:
        yield plots
    finally:
        _noted.reset(token)


# A page shows plots at half their size, in two columns.
_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # a dollar sign in an agent's name is not a formula
    "font.size": 12,
    "axes.titlesize": 13,
    "figure.titlesize": 14,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
}


@contextlib.contextmanager
def saved_plot(report: Path, name: str, caption: str = "", **kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a matplotlib canvas and its axes; save it as `report/name.png`, with a caption, unless the block raises.

    The user's own settings of matplotlib are left out: they may need programs that are missing, such as LaTeX.
    """
    path = report / f"{name}.png"
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context(["default", _STYLE]):
        canvas = Figure(kwargs.pop("figsize", (8, 5)), layout="constrained")
        yield canvas, canvas.subplots(**kwargs)
        with named_in_errors(path), atomic(path) as temporary:
            canvas.savefig(temporary, format="png", dpi=120)
    console.whole_line(f"plot: {path}")
    noted = _noted.get()
    if noted is not None:
        noted.append(Plot(path, caption or name.replace("_", " ")))


def bars(axes: Any, labels: Sequence[str], values: Sequence[float], errors: Sequence[float]) -> None:
    """Draw horizontal bars with the half-widths of their intervals, the first on top."""
    places = range(len(values) - 1, -1, -1)
    axes.barh(places, values, 0.6, xerr=errors, capsize=3, color=BLUE, ecolor="#333333")
    axes.set_yticks(places, labels)


def counted(axes: Any, which: Literal["x", "y"]) -> None:
    """Label the x or y axis with whole numbers only, for an axis that counts."""
    from matplotlib.ticker import MaxNLocator

    (axes.xaxis if which == "x" else axes.yaxis).set_major_locator(MaxNLocator(integer=True))


def logarithmic(axes: Any, which: Literal["x", "y"]) -> None:
    """Make the x or y axis of a plot logarithmic, labelled with 1, 2 and 5 times powers of ten.

    matplotlib's own labels are formulas, which `saved_plot` does not render.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
