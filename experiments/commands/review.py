"""`review`: what a player gave away in saved games, whatever luck it had."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dice_envs.experiments.play.records import Played, as_dict, games_in, grouped, save_report, seats_of, show
from dice_envs.experiments.ui.console import finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.options import JsonOption, ReportOption
from dice_envs.experiments.ui.page import command_line
from dice_envs.experiments.ui.progress import progress
from dice_envs.table.review import review


def main(
    files: Annotated[
        list[Path],
        typer.Argument(help="Finished games, saved by `play` or its page, in the order of play; of a folder, all that it has."),
    ],
    seat: Annotated[int | None, typer.Option(help="Review this seat alone.")] = None,
    agents: Annotated[bool, typer.Option("--agents", help="Review the agents' seats, too.")] = False,
    json: JsonOption = None,
    report: ReportOption = None,
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
    check_writable(json)
    check_report(report)
    games = games_in(files)
    seats = [seats_of(sitting, path, seat, agents) for path, sitting in games]
    played = []
    with progress("reviewing, games", len(games)) as done:
        for (path, sitting), chosen in zip(games, seats, strict=True):
            found = review(sitting, agents=not set(chosen) <= set(sitting.people))
            played += [Played(path, sitting, each, found) for each in chosen]
            done()
    groups = grouped(played)
    typed = {"seat": seat, "agents": agents, "json": json, "report": report}
    command = command_line(f"review {shlex.join(map(str, files))}", typed)
    finish(
        lambda: show(groups),
        lambda: write_json(json, as_dict(groups)),
        lambda: save_report(report, groups, command) if report is not None else None,
    )
