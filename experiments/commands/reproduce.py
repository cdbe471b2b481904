"""`reproduce GAME`: published figures beside computed ones; a module of `dice_envs.experiments.reproduce` for each game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import dice_envs.experiments.reproduce
from dice_envs.experiments.discovery import add_commands, modules
from dice_envs.experiments.report import reproduce_all, with_page
from dice_envs.experiments.ui.options import JsonOption, RayOption, ReportOption, SeedOption, count_option

__all__ = ["group"]


def group(guarded: Callable[..., Any]) -> typer.Typer:
    """Return the group of commands, each wrapped by `guarded`."""
    app = typer.Typer(no_args_is_help=True, help="Every figure of a source, published beside computed.")
    app.command("all")(guarded(all_sources))
    add_commands(app, modules(dice_envs.experiments.reproduce), lambda main: guarded(with_page(main)))
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
    reproduce_all(games, seed, json, report, ray)
