"""What `--report` writes: plots as files, and a web page of tables, plots and the command that made them.

A page needs no other file and no network.
"""

from __future__ import annotations

import base64
import contextlib
import contextvars
import dataclasses
import datetime
import math
import platform
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import dice_envs
from dice_envs.core.files import atomic, write_text
from dice_envs.core.machine import needs
from dice_envs.experiments.ui import console
from dice_envs.experiments.ui.grids import Grid

with needs("commands", "a page"):
    import jinja2

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
    "lines.markersize": 5,
    "axes.prop_cycle": (  # lines are told apart without colours, too
        "cycler(color=['#1f77b4', '#ff7f0e', '#2ca02c', '#d62728', '#9467bd', '#8c564b', '#e377c2', '#7f7f7f'])"
        " + cycler(marker=['o', 's', '^', 'D', 'v', 'P', 'X', '*'])"
    ),
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
        with atomic(path) as temporary:
            canvas.savefig(temporary, format="png", dpi=120)
    console.whole_line(f"plot: {path}")
    noted = _noted.get()
    if noted is not None:
        noted.append(Plot(path, caption or name.replace("_", " ")))


def bars(axes: Any, labels: Sequence[str], values: Sequence[float], errors: Sequence[float | None]) -> None:
    """Draw horizontal bars, the first on top, with the half-widths of their intervals; exact ones, 0, have none.

    A bar whose interval is not known, None, is hatched.
    """
    places, hatch = range(len(values) - 1, -1, -1), ["//" if error is None else "" for error in errors]
    halves = [error or math.nan for error in errors]
    axes.barh(places, values, 0.6, xerr=halves, capsize=3, color=BLUE, ecolor="#333333", hatch=hatch)
    axes.set_yticks(places, labels)


def heat_map(
    axes: Any,
    numbers: Any,
    texts: Sequence[Sequence[str]],
    lines: Sequence[str],
    columns: Sequence[str],
    colours: str,
    most: float,
) -> None:
    """Draw numbers from 0 to `most`, a row for each line, as coloured cells with a text in each; NaN leaves one blank."""
    shown = axes.imshow(numbers, cmap=colours, vmin=0, vmax=most, aspect="auto")
    for row, cells in enumerate(texts):
        for column, text in enumerate(cells):
            red, green, blue, _ = shown.cmap(shown.norm(numbers[row][column]))
            ink = "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else "black"
            axes.text(column, row, text, ha="center", va="center", color=ink)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(lines)), lines)


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


# --- a page ------------------------------------------------------------------------------------------------------------


MOST_OPEN = 40  # rows of a table that is not folded
PAGE = "index.html"
VERSIONS_OF = ("numpy", "numba", "torch")


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page: text, tables, plots."""

    title: str
    text: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    plots: Sequence[Plot] = ()


@dataclasses.dataclass(frozen=True)
class About:
    """How a result was made."""

    command: str  # makes it again
    options: Mapping[str, Any]  # of the command, name → value
    seed: int | None = None  # of all random draws; None: nothing was random


def command_line(command: str, given: Mapping[str, Any]) -> str:
    """Return a command line, such as `reproduce shakes --games 1000`. None, empty and false options are left out.

    Game options, named `option`, are written `-o`.
    """
    parts = ["dice-envs", command]
    for name, value in given.items():
        option = "-o" if name == "option" else f"--{name.replace('_', '-')}"
        if value is True:
            parts.append(option)
        elif value is not None and value is not False and value != []:
            parts += [f"{option} {shlex.quote(str(each))}" for each in (value if isinstance(value, list) else [value])]
    return " ".join(parts)


def versions(*more: str) -> dict[str, str]:
    """Return the versions of the software that makes results, and of `more` libraries: name → version."""
    found = {"dice-envs": dice_envs.__version__, "Python": platform.python_version()}
    for name in (*VERSIONS_OF, *more):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def filled(template: str, **values: Any) -> str:
    """Return a template of Jinja with values in it, which are escaped."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(template).render(values) + "\n"


def render(title: str, intro: Sequence[str], sections: Iterable[Section], about: About) -> str:
    """Return the page as HTML that is also XML. Plots are read from their files."""
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    known = {"versions": versions(), "date": date, "most_open": MOST_OPEN, "read": base64.b64encode}
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return filled(template, title=title, intro=intro, sections=list(sections), about=about, **known)


def write_page(folder: Path, title: str, intro: Sequence[str], sections: Iterable[Section], about: About) -> Path:
    """Write `index.html` into the folder, atomically, and return its path."""
    path = folder / PAGE
    write_text(path, render(title, intro, sections, about))
    console.whole_line(f"page: {path}")
    return path
