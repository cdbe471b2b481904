"""`reproduce GAME`: published figures beside computed ones; a module of `dice_envs.experiments.reproduce` for each game."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

import dice_envs.experiments.reproduce
from dice_envs.core.options import check_range
from dice_envs.experiments.arena import MOST_GAMES
from dice_envs.experiments.discovery import add_commands, modules
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.options import JsonOption, RayOption, ReportOption, SeedOption, count_option, seed_or_fresh
from dice_envs.experiments.ui.page import About, Chapter, Section, command_line, sections_of, write_page
from dice_envs.experiments.ui.plots import plots_noted

LEAST_GAMES = 1000  # accepted by every source
FILES = ("json", "report", "resume", "ray")  # parameters that do not change the results, only where they are made or written


def group(guarded: Callable[..., Any]) -> typer.Typer:
    """Return the group of commands, each wrapped by `guarded`."""
    app = typer.Typer(no_args_is_help=True, help="Every figure of a source, published beside computed.")
    app.command("all")(guarded(all_sources))
    add_commands(app, modules(dice_envs.experiments.reproduce), lambda main: guarded(_with_page(main)))
    return app


def all_sources(
    games: Annotated[
        int | None, count_option("--games", help="Games to play for each source; each source's default if left out.")
    ] = None,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    ray: RayOption = None,
) -> None:
    """Reproduce every source in turn; --report writes one page with all figures and plots.

    JSON: {"seed", "sources": {game: rows}}.

    Example: reproduce all --report report
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


def _intro(what: str) -> list[str]:
    return [f"{what} Published figures stand beside ours; ± is the half-width of a 95 % interval; exact figures are marked."]


def _with_page(main: Callable[..., Chapter]) -> Callable[..., Chapter]:
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
