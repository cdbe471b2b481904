"""Commands that end with a page: `reproduce GAME --report DIR`, `reproduce all`."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dice_envs.experiments.reproduce
from dice_envs.core.options import check_range
from dice_envs.experiments.arena import MOST_GAMES
from dice_envs.experiments.discovery import modules
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.options import seed_or_fresh
from dice_envs.experiments.ui.page import About, Chapter, Section, sections_of, write_page
from dice_envs.experiments.ui.plots import plots_noted

__all__ = ["command_line", "reproduce_all", "with_page"]

LEAST_GAMES = 1000  # accepted by every source
FILES = ("json", "report", "resume", "ray")  # parameters that do not change the results, only where they are made or written


def command_line(command: str, given: Mapping[str, Any]) -> str:
    """Return a command line, such as `reproduce shakes --games 1000`. None, empty and false options are left out."""
    parts = ["python -m experiments", command]
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            parts.append(option)
        elif value is not None and value is not False and value != []:
            parts += [f"{option} {shlex.quote(str(each))}" for each in (value if isinstance(value, list) else [value])]
    return " ".join(parts)


def _intro(what: str) -> list[str]:
    return [f"{what} Published figures stand beside ours; ± is half of a 95 % interval, and what is exact says so."]


def with_page(main: Callable[..., Chapter]) -> Callable[..., Chapter]:
    """Wrap the command `main` of a source so that it also writes a page into the folder of `--report`."""
    parameters = inspect.signature(main).parameters

    @functools.wraps(main)
    def run(**given: Any) -> Chapter:
        with plots_noted() as plots:
            chapter = main(**given)
        report = given.get("report")
        if report is not None:
            changed = {name: value for name, value in given.items() if value != parameters[name].default and name not in FILES}
            options = {name: value for name, value in given.items() if name not in (*FILES, "seed") and value is not None}
            name = main.__module__.rpartition(".")[2].replace("_", "-")
            seed = {} if chapter.seed is None else {"seed": chapter.seed}
            command = command_line(f"reproduce {name}", {**changed, **seed, "report": report})
            about = About(command, options, chapter.seed)
            write_page(
                report, chapter.title, _intro("Every figure of the source."), sections_of(chapter, plots, apart=True), about
            )
        return chapter

    return run


def reproduce_all(
    games: int | None, seed: int | None, json: Path | None, report: Path | None, ray: str | None
) -> dict[str, Chapter]:
    """Reproduce the figures of all sources, one after another, and write one page of them.

    Args:
        games: of each source that plays games; None: each source's own number.
        seed: fixes all random draws.
        json: file for the rows of all sources.
        report: folder of the page and its plots.
        ray: address of the cluster that shares the work.

    Returns:
        The chapters by the sources' names.

    Raises:
        ValueError: wrong arguments.
    """
    if games is not None:
        check_range("games", games, LEAST_GAMES, MOST_GAMES)
    check_writable(json)
    check_report(report)
    seed = seed_or_fresh(seed)
    chapters: dict[str, Chapter] = {}
    sections: list[Section] = []
    for name, module in modules(dice_envs.experiments.reproduce).items():
        console.print(f"\nreproduce {name.replace('_', '-')}")
        parameters = inspect.signature(module.main).parameters
        wanted = {"games": games, "seed": seed, "report": report, "ray": ray}
        with plots_noted() as plots:
            given = {key: value for key, value in wanted.items() if key in parameters and value is not None}
            chapters[name] = module.main(**given)
        sections += sections_of(chapters[name], plots)
    rows = {name: chapter.rows for name, chapter in chapters.items()}
    about = About(
        command_line("reproduce all", {"games": games, "seed": seed, "report": report}), {"games": games or "usual"}, seed
    )
    title = "dice-envs: every figure of every source"
    finish(
        lambda: write_json(json, {"seed": seed, "sources": rows}),
        lambda: write_page(report, title, _intro("Five games."), sections, about) if report is not None else None,
    )
    return chapters
