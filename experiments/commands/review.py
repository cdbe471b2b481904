"""`review`: what a player gave away in saved games, whatever luck it had; tables, plots and data of it.

A record says what a player gave away in many games.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from dice_envs.agent import Uniform
from dice_envs.core.options import check_range
from dice_envs.core.work import advance, work
from dice_envs.evaluation import Scale
from dice_envs.exact.intervals import half_width, t95
from dice_envs.experiments import ui
from dice_envs.experiments.ui import pages
from dice_envs.experiments.ui.grids import Grid
from dice_envs.table.advice import NOTHING, Review, Split, amount, noted, review
from dice_envs.table.sitting import PERSON, Sitting


def main(
    files: Annotated[
        list[Path],
        typer.Argument(help="Finished games, saved by `play` or its page, in the order of play; of a folder, all that it has."),
    ],
    seat: Annotated[int | None, typer.Option(help="Review this seat alone.")] = None,
    agents: Annotated[bool, typer.Option("--agents", help="Review the agents' seats, too.")] = False,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
) -> None:
    """Review saved games of people: how much of each result was play and how much luck, and over all games what a player
    gives away, with a 95 % interval, and whether it becomes less.

    Luck is all that was not the player's own choice, so few games say much about play. Games of one kind make one record:
    the same game with the same options and the same player. A folder is read in the order in which its files were written,
    without games that are not over.

    Example: review games --report record
    """
    if seat is not None and agents:
        raise ValueError("--seat names one seat, --agents all of them: leave out one")
    games = games_in(files)
    seats = [seats_of(sitting, path, seat, agents) for path, sitting in games]
    played = []
    with ui.progress("reviewing, games", len(games)):
        for (path, sitting), chosen in zip(games, seats, strict=True):
            with work():
                found = review(sitting, agents=not set(chosen) <= set(sitting.people))
            played += [Played(path, sitting, each, found) for each in chosen]
            advance()
    groups = grouped(played)
    typed = {"seat": seat, "agents": agents, "json": json, "report": report}
    command = pages.command_line(f"review {shlex.join(map(str, files))}", typed)
    records = {"records": [_group_dict(each) for each in groups]}
    ui.write_all(json, records, report, lambda folder: save_report(folder, groups, command), lambda: show(groups))


@dataclasses.dataclass(frozen=True)
class Record:
    """A player's games of one game with the same options, in the order in which they were played.

    Errors are half of 95 % intervals; None after one game.
    """

    games: int  # their number
    given_away: float  # mean of what the player's choices cost in a game
    error: float | None
    luck: float  # mean luck of a game
    luck_error: float | None
    result: float  # mean result of a game
    trend: float | None  # change of what is given away from game to game, by least squares; None after fewer than three games
    trend_error: float | None
    marks: dict[str, int]  # mark → number of moves; see `Judged`
    scale: Scale  # of all figures


def record_of(games: Sequence[tuple[Review, int]]) -> Record:
    """Return the record of a player who sat at the given seat in each reviewed game; all have splits, of one scale."""
    splits = [found.splits[seat] for found, seat in games]
    given, luck = np.array([(-split.play, split.luck) for split in splits]).T
    scale, trend, trend_error = splits[0].scale, None, None
    if len(given) > 2:
        from scipy.stats import linregress  # slow to import

        line = linregress(np.arange(len(given)), given)
        trend = float(line.slope)
        trend_error = t95(len(given) - 2) * float(np.nan_to_num(line.stderr))  # NaN where all values are the same
    return Record(
        games=len(splits),
        given_away=float(given.mean()),
        error=half_width(given, 0.0, scale.spread) if len(given) > 1 else None,
        luck=float(luck.mean()),
        luck_error=half_width(luck, -scale.spread, scale.spread) if len(luck) > 1 else None,
        result=float(np.mean([split.result for split in splits])),
        trend=trend,
        trend_error=trend_error,
        marks=dict(sum((found.marks[seat] for found, seat in games), Counter())),
        scale=scale,
    )


class Played(NamedTuple):
    """One seat of a reviewed game, and the game's file."""

    path: Path
    sitting: Sitting
    seat: int
    review: Review

    @property
    def split(self) -> Split | None:
        """Its result as play and luck; None if that is unknown."""
        return self.review.splits.get(self.seat)


class Group(NamedTuple):
    """Games of one kind with the same player."""

    title: str  # the game with its options, and the player
    player: str  # PERSON or an agent's spec; with its seat where several people played
    played: list[Played]  # in order
    record: Record | None  # over all these games; None if results cannot be divided into play and luck


def games_in(paths: Sequence[Path]) -> list[tuple[Path, Sitting]]:
    """Return the saved games in files and folders that are over, each with its file.

    Of a folder, all files `*.json` are read, in the order in which they were written; games that are not over are left out.

    Raises:
        ValueError: a file is damaged, no saved game, or named itself and not over; or a folder has no game that is over.
        OSError: a file cannot be read.
    """
    found = []
    for path in paths:
        files = sorted(path.glob("*.json"), key=lambda file: (file.stat().st_mtime_ns, file)) if path.is_dir() else [path]
        # No agent is asked: whatever a file names is not made.
        games = [(file, Sitting.load_from(file, lambda variant, spec: Uniform())) for file in files]
        over = [(file, sitting) for file, sitting in games if sitting.over]
        if not over and path.is_dir():
            raise ValueError(f"{path}: no saved game (*.json) in this folder is over")
        if not over:
            raise ValueError(f"{path}: the game is not over; `play --load {path}` goes on with it")
        found += over
    return found


def seats_of(sitting: Sitting, path: Path, seat: int | None, agents: bool) -> list[int]:
    """Return the seats to review: the given one, all with `agents`, else those of people. ValueError if there are none."""
    if seat is not None:
        check_range(f"--seat, with {path},", seat, 0, len(sitting.seats) - 1)
        return [seat]
    if not agents and not sitting.people:
        raise ValueError(f"{path}: no person played; add --agents, or name a seat with --seat")
    return list(range(len(sitting.seats))) if agents else list(sitting.people)


def grouped(played: Sequence[Played]) -> list[Group]:
    """Group games by rules and player, in the order of their first games."""
    groups: dict[tuple[Any, ...], list[Played]] = {}
    for each in played:
        variant = each.sitting.variant.plain
        groups.setdefault((variant.game.name, variant.options, _player(each)), []).append(each)
    found = []
    for (_, _, player), members in groups.items():
        divided = [(each.review, each.seat) for each in members if each.split is not None]
        record = record_of(divided) if divided else None
        found.append(Group(f"{members[0].sitting.variant.plain}, {player}", player, members, record))
    return found


def _player(played: Played) -> str:
    sitting, seat = played.sitting, played.seat
    who = sitting.seats[seat]
    return f"{who} at seat {seat}" if who == PERSON and len(sitting.people) > 1 else who


# --- on the terminal --------------------------------------------------------------------------------------------------


def show(groups: Sequence[Group]) -> None:
    """Print the games and the record of each group."""
    for each in groups:
        _games_grid(each).show()
        for line in _record_lines(each):
            ui.console.whole_line(line)


def _games_grid(found: Group) -> Grid:
    rows: list[Sequence[str]] = []
    for each in found.played:
        worst, split = each.review.worst.get(each.seat), each.split
        said = f"{worst.number}, {worst.words} [{worst.mark}]" if worst else ""
        if split is None:
            play = f"{0.0 - each.review.totals.get(each.seat, 0.0):.3f}".replace("-", "−")
            rows.append((str(each.path), f"{each.sitting.returns[each.seat]:+g}", play, "", said))
        else:
            play, luck = amount(split.play, split.scale), amount(split.luck, split.scale)
            rows.append((str(each.path), split.outcome, play, luck, said))
    return Grid(found.title, ("game", "result", "play", "luck", "worst move"), rows, words=(0, 4))


def _record_lines(found: Group) -> list[str]:
    """Return the record in words, and what its values assume."""
    record, notes = found.record, [f"({noted(found.played[0].review)})"]
    if record is None:
        totals = [each.review.lost.get(each.seat, "not known") or NOTHING for each in found.played]
        return [f"given away: {', '.join(totals)}", *notes]
    unit = record.scale.unit
    given = unit.text(unit.figure(record.given_away, record.error or None, 2))
    marks = ", ".join(f"{record.marks[mark]} {mark}" for mark in ("best", "fine", "slip", "blunder") if record.marks.get(mark))
    lines = [
        f"given away a game: {given}{_over(record)}",
        f"luck a game: {unit.text(unit.figure(record.luck, record.luck_error, 2, sign=True))}",
        f"moves: {marks or 'none with a choice'}",
    ]
    if record.trend is not None:
        tells = "less and less" if record.trend < 0 else "more and more"
        if abs(record.trend) <= (record.trend_error or 0.0):
            tells = "which may be none"
        lines.append(
            f"trend from game to game: {unit.text(unit.figure(record.trend, record.trend_error, 2, sign=True))}, {tells}"
        )
    return lines + notes


def _over(record: Record) -> str:
    if record.error is None:
        return " in one game, which has no interval"
    if record.error == 0:
        return f" in all {record.games} games, too alike for an interval"
    return f" (95 % interval, {record.games} games)"


# --- data and plots ---------------------------------------------------------------------------------------------------


def _group_dict(found: Group) -> dict[str, Any]:
    """Return a record as what JSON can hold. Shares of games won are numbers from 0 to 1."""
    variant = found.played[0].sitting.variant.plain
    record = None
    if found.record is not None:
        record = {**dataclasses.asdict(found.record), "unit": found.record.scale.unit}
        del record["scale"]
    return {
        "game": variant.game.name,
        "options": variant.changed_options(),
        "player": found.player,
        "record": record,
        "note": noted(found.played[0].review),
        "games": [_game_dict(each) for each in found.played],
    }


def _game_dict(played: Played) -> dict[str, Any]:
    split = played.split
    judged = [move for move in played.review.moves if move.seat == played.seat]
    moves = [{**dataclasses.asdict(move), "text": move.text} for move in judged]
    shown = ("start", "result", "play", "luck")
    divided = None if split is None else {**{name: vars(split)[name] for name in shown}, "text": split.text}
    returns = float(played.sitting.returns[played.seat])
    return {"file": str(played.path), "seat": played.seat, "return": returns, "split": divided, "moves": moves}


def save_report(report: Path, groups: Sequence[Group], command: str) -> None:
    """Save a page of all records, with a plot of each: what each game gave away, and the mean so far with its interval.

    `command` makes the page again.
    """
    sections = []
    for number, each in enumerate(groups, 1):
        plots: list[pages.Plot] = []
        if each.record is not None and len(each.played) > 1:
            name = f"review_{number}_{each.played[0].sitting.variant.game.name}"
            caption = f"What each game's moves gave away: {each.title}."
            with pages.plots_noted() as plots, pages.saved_plot(report, name, caption) as (_, axes):
                _plot(axes, each, each.record.scale)
        sections.append(pages.Section(each.title, _record_lines(each), [_games_grid(each)], plots))
    pages.write_page(report, "dice-envs: your games", [], sections, pages.About(command, {}))


def _plot(axes: Any, found: Group, scale: Scale) -> None:
    factor, unit = (100, "% of winning") if scale.unit.is_share else (1, scale.unit)
    given = -factor * np.array([each.split.play for each in found.played if each.split is not None])
    places = np.arange(1, len(given) + 1)
    means = np.cumsum(given) / places
    axes.plot(places, given, "o", color=pages.BLUE, label="a game")
    axes.plot(places, means, color=pages.ORANGE, marker="", label="mean so far")
    if len(given) > 1:
        halves = np.array([half_width(given[:count], 0.0, factor * scale.spread) for count in places[1:]])
        low, high = np.maximum(means[1:] - halves, 0.0), means[1:] + halves
        axes.fill_between(places[1:], low, high, color=pages.ORANGE, alpha=0.2, linewidth=0, label="its 95 % interval")
        # The interval of two games may be wide; the plot shows what the games fill.
        axes.set_ylim(0, 1.1 * max(given.max(), high[-1], 1e-9))
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("game")
    axes.set_ylabel(f"given away, {unit}")
    axes.set_title(found.title)
    axes.legend()
