"""`reproduce score-dice`: every table of the paper on score distributions, as published and as computed.

Source: Isaksen, Holmgård, Togelius, Nealen, "Characterising Score Distributions in Dice Games", Game and Puzzle Design 2(1),
2016, in the exact figures of the notebook that recomputes it with icepool. Section numbers are the paper's; the order is the
notebook's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from dice_envs.experiments import ui
from dice_envs.experiments.reproduce import Chapter, Finding, chapter_of, printed
from dice_envs.experiments.ui.pages import saved_plot
from dice_envs.games.score_dice.exact.distribution import Pool, ScoreDistribution, plot_histogram, pool_name, score_distribution

FIGURES = ("win bias", "tie %", "closeness")
SOURCE = "Isaksen et al., Characterising Score Distributions in Dice Games (2016)"


# --- the paper's tables ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """One table of the source."""

    section: str  # of the paper
    title: str  # its subject
    ties: str  # the game's tie rule
    pairing: str  # "sorted" or "unsorted"
    games: Sequence[tuple[str, Pool, Pool]]  # (name, A's pool, B's pool)
    published: str  # a line for each of them: win bias, tie % and closeness

    @property
    def rows(self) -> list[tuple[str, Pool, Pool, tuple[str, ...]]]:
        """The games, each with its published figures."""
        lines = self.published.strip().splitlines()
        return [(*game, tuple(line.split())) for game, line in zip(self.games, lines, strict=True)]

    def compute(self) -> list[ScoreDistribution]:
        """Compute the distribution of each row afresh."""
        return [score_distribution(a, b, self.ties, self.pairing) for _, a, b, _ in self.rows]


_FIVE = (6,) * 5
# Pools against their like: five dice of various sizes, and various numbers of d6.
_SIZES, _NUMBERS = (
    [(pool_name(pool), pool, pool) for pool in pools]
    for pools in ([(size,) * 5 for size in (2, 4, 6, 8, 10)], [(6,) * count for count in (1, 2, 3, 4, 5)])
)
_EIGHTS = [(f"{5 - eights}d6/{eights}d8", _FIVE, (8,) * eights + (6,) * (5 - eights)) for eights in range(6)]

TABLES: tuple[PaperTable, ...] = (
    PaperTable("3.1", "Sorting dice, with ties", "none", "sorted", _SIZES, """
        0.00 24.61 0.632
        0.00 11.97 0.384
        0.00  9.91 0.340
        0.00  9.15 0.323
        0.00  8.64 0.315"""),
    PaperTable("3.1", "Sorting dice, with ties", "none", "sorted", _NUMBERS, """
        0.00 16.67 1.095
        0.00 20.52 0.680
        0.00 13.91 0.504
        0.00 11.71 0.404
        0.00  9.91 0.340"""),
    PaperTable("3.2", "Dice unsorted, with ties", "none", "unsorted", _SIZES, """
        0.00 24.61 0.632
        0.00 19.32 0.516
        0.00 16.69 0.490
        0.00 14.49 0.478
        0.00 12.71 0.471"""),
    PaperTable("3.2", "Dice unsorted, with ties", "none", "unsorted", _NUMBERS, """
        0.00 16.67 1.095
        0.00 37.50 0.775
        0.00 17.82 0.632
        0.00 23.95 0.548
        0.00 16.69 0.490"""),
    PaperTable("5.1", "Rolling sorted, A wins ties", "a", "sorted", _SIZES, """
        89.06 0.00 0.238
        54.79 0.00 0.271
        38.21 0.00 0.282
        29.13 0.00 0.287
        23.48 0.00 0.289"""),
    PaperTable("5.2", "Rolling unsorted, A wins ties", "a", "unsorted", _SIZES, """
        79.30 0.00 0.316
        44.96 0.00 0.400
        30.68 0.00 0.424
        23.19 0.00 0.434
        18.63 0.00 0.439"""),
    PaperTable("6", "Reducing bias with fewer dice", "a", "sorted",
        [(f"{count}d6 v 5d6", (6,) * count, _FIVE) for count in (2, 3, 4, 5)], """
        -35.61 32.37 0.608
        -23.63  0.00 0.451
          3.23 20.40 0.357
         38.21  0.00 0.282"""),
    PaperTable("6", "Reducing bias with fewer dice", "a", "sorted",
        [(f"{count}d6 v {count + 1}d6", (6,) * count, (6,) * (count + 1)) for count in (1, 2, 3, 4)], """
        -15.74  0.00 1.000
         -7.91 33.58 0.613
         -2.80  0.00 0.450
          3.23 20.40 0.357"""),
    PaperTable("7.1", "Mixed dice sorted, A wins ties", "a", "sorted", _EIGHTS, """
         38.21 0.00 0.282
         24.36 0.00 0.294
         10.80 0.00 0.302
         -2.24 0.00 0.305
        -14.56 0.00 0.305
        -25.98 0.00 0.301"""),
    PaperTable("7.1", "Mixed dice sorted, A wins ties", "a", "sorted",
        [("3d6/1d8/1d10", _FIVE, (6, 6, 6, 8, 10)), ("2d6/3d8", _FIVE, (6, 6, 8, 8, 8)),
         ("3d6/2d10", _FIVE, (6, 6, 6, 10, 10))], """
         2.67 0.00 0.307
        -2.24 0.00 0.305
        -5.36 0.00 0.310"""),
    PaperTable("7.2", "Mixed dice unsorted, A wins ties", "a", "unsorted", _EIGHTS, """
         30.68 0.00 0.424
         20.34 0.00 0.440
          9.48 0.00 0.450
         -1.61 0.00 0.452
        -12.60 0.00 0.446
        -23.19 0.00 0.434"""),
    PaperTable("7.2", "Mixed dice unsorted, A wins ties", "a", "unsorted",
        [("3d6/2d8", _FIVE, (6, 6, 6, 8, 8)), ("3d6/1d8/1d10", _FIVE, (6, 6, 6, 8, 10)),
         ("2d6/3d8", _FIVE, (6, 6, 8, 8, 8)), ("3d6/2d10", _FIVE, (6, 6, 6, 10, 10)),
         ("2d6/2d8/1d10", _FIVE, (6, 6, 8, 8, 10))], """
         9.48 0.00 0.450
         2.97 0.00 0.456
        -1.61 0.00 0.452
        -3.73 0.00 0.459
        -8.26 0.00 0.453"""),
    PaperTable("8.1", "Rolling sorted, rerolling tied dice", "reroll", "sorted", _SIZES, """
        0.00 0.00 0.350
        0.00 0.00 0.311
        0.00 0.00 0.302
        0.00 0.00 0.298
        0.00 0.00 0.296"""),
    PaperTable("8.1", "Rolling sorted, rerolling tied dice", "reroll", "sorted", _NUMBERS, """
        0.00  0.00 1.000
        0.00 34.15 0.616
        0.00  0.00 0.453
        0.00 21.00 0.361
        0.00  0.00 0.302"""),
    PaperTable("8.2", "Rolling unsorted, rerolling ties", "reroll", "unsorted", _SIZES, """
        0.00 0.00 0.447
        0.00 0.00 0.447
        0.00 0.00 0.447
        0.00 0.00 0.447
        0.00 0.00 0.447"""),
    PaperTable("8.2", "Rolling unsorted, rerolling ties", "reroll", "unsorted", _NUMBERS, """
        0.00  0.00 1.000
        0.00 50.00 0.707
        0.00  0.00 0.577
        0.00 37.50 0.500
        0.00  0.00 0.447"""),
)  # fmt: skip


# --- the command ----------------------------------------------------------------------------------------------------


def main(json: ui.JsonOption = None, report: ui.ReportOption = None) -> Chapter:
    """Every table of the paper on score distributions, published beside computed.

    All figures are exact; they agree if they are the same to the printed digits.
    """
    return chapter_of(f"Score dice: {SOURCE}", {"rows": _print_tables()}, json, report, _draw)


def _print_tables() -> list[Finding]:
    """Print each table as the notebook does, published beside computed figures, and the check of 2d6; return the rows."""
    rows: list[Finding] = []
    for number, table in enumerate(TABLES, 1):
        ui.console.print(f"\n{number}. Section {table.section}: {table.title} (computed beside published)")
        ui.console.print("|     Game     | win bias | tie % | closeness |   published")
        ui.console.print("|:------------:|---------:|------:|----------:|")
        for (name, _, _, published), result in zip(table.rows, table.compute(), strict=True):
            ours = result.cells
            exact = (result.win_bias, result.tie_percentage, f"1/√({result.mean_square})")
            line = f"| {name:12} |   {ours[0]:>6} | {ours[1]:>5} |     {ours[2]} |"
            beside = f"{published[0]:>6} {published[1]:>5} {published[2]}"
            ui.console.print(f"{line}   {beside}{'' if ours == published else '  differs'}")
            for cell, theirs, own, value in zip(FIGURES, published, ours, exact, strict=True):
                figure = f"{table.section} {table.title}, table {number}: {name} {cell}"
                rows.append(Finding(SOURCE, figure, float(theirs), float(own), 0.0, theirs == own, f"exactly {value}"))
    rows += _check_of_2d6()
    differing = [row.figure for row in rows if row.agrees is False]
    agreed = f"{len(rows) - len(differing)} of {len(rows)} published figures agree to the printed digits"
    ui.console.print(f"\n{agreed}{': not ' + '; '.join(differing) if differing else ''}")
    return rows


def _check_of_2d6() -> list[Finding]:
    """Repeat the notebook's check of the one cell in which the paper, which samples section 8.1, is a little off."""
    result = score_distribution((6, 6), (6, 6), "reroll")
    ties = float(result.tie_percentage)
    deviation = math.sqrt(ties * (100 - ties) / 6**10)  # the paper's sample is of 6**10 games
    rounding = 34.155  # the paper's figure is above this
    lines = (
        ("2d6 tie percentage", "34.1463", ties, f"P(tie) is exactly {result.chances[0]}"),
        ("Standard deviation of percentage", "0.0061", deviation, "of the paper's 6^10 sampled games"),
        ("Error in standard deviations", "1.4198", (rounding - ties) / deviation, "of the paper's rounded cell, at the least"),
    )
    rows = [printed(SOURCE, f"8.1 check: {name}", published, round(ours, 4), note) for name, published, ours, note in lines]
    for row in rows:
        ui.console.print(f"{row.figure}: {row.ours:.4f}   published {row.published:.4f}   ({row.note})")
    return rows


def _draw(report: Path) -> None:
    """Plot the distributions of each table side by side."""
    for number, table in enumerate(TABLES, 1):
        results = table.compute()
        name = f"score_dice_{number:02}_section_{table.section.replace('.', '_')}"
        caption = (
            f"Table {number}, section {table.section}, {table.title}: exact distributions of the score, {table.pairing}, "
            f"ties={table.ties}. Blue: A wins; red: B wins; grey: a tie."
        )
        across = min(3, len(results))
        down = math.ceil(len(results) / across)
        shape = {"figsize": (4 * across, 0.9 + 3.1 * down), "nrows": down, "ncols": across}
        with saved_plot(report, name, caption, sharey=True, squeeze=False, **shape) as (canvas, axes):
            for axis in axes.flat[len(results) :]:
                axis.set_visible(False)
            for axis, (label, *_), result in zip(axes.flat, table.rows, results, strict=False):
                plot_histogram(axis, result, label)
            for axis in axes[:, 1:].flat:
                axis.set_ylabel("")
            canvas.suptitle(f"{table.section} {table.title}: {table.pairing}, ties={table.ties}")
