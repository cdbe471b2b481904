"""`review`: what a player gave away in saved games, whatever luck it had."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_envs.experiments.play.records import Played, as_dict, grouped, open_finished, save_plots, seats_of, show
from dice_envs.experiments.ui.console import finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.options import JsonOption, ReportOption
from dice_envs.experiments.ui.progress import progress
from dice_envs.table.review import review

__all__ = ["PLACE", "main"]

PLACE = 5  # in the list of --help


def main(
    files: Annotated[list[Path], typer.Argument(help="Finished games, saved by `play` or its page, in the order of play.")],
    seat: Annotated[int | None, typer.Option(help="Review this seat alone.")] = None,
    agents: Annotated[bool, typer.Option("--agents", help="Review the agents' seats, too.")] = False,
    json: JsonOption = None,
    report: ReportOption = None,
) -> None:
    """Review saved games of people: how much of each result was play and how much luck, and over all games what a player
    gives away, with a 95 % interval, and whether it becomes less.

    Luck is all that was not the player's own choice, so few games say much about play. Games of one kind make one record:
    the same game with the same options and the same player.

    Example: review monday.json tuesday.json --report plots
    """
    if seat is not None and agents:
        raise ValueError("--seat names one seat, --agents all of them: leave out one")
    check_writable(json)
    check_report(report)
    sittings = [open_finished(path) for path in files]
    seats = [seats_of(sitting, path, seat, agents) for sitting, path in zip(sittings, files, strict=True)]
    played = []
    with progress("reviewing, games", len(files)) as done:
        for path, sitting, chosen in zip(files, sittings, seats, strict=True):
            found = review(sitting, agents=not set(chosen) <= set(sitting.people))
            played += [Played(path, sitting, each, found) for each in chosen]
            done()
    groups = grouped(played)
    finish(
        lambda: show(groups),
        lambda: write_json(json, as_dict(groups)),
        lambda: save_plots(report, groups) if report is not None else None,
    )
