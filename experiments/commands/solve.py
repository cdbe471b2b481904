"""`solve GAME`: exact results, computed and described by the game's function `solve_game`. Its parameters are the options."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.markup import escape
from rich.text import Text

from dice_envs.core.game import Game, load, names, single_seat
from dice_envs.exact import offered
from dice_envs.exact.contract import Solved, SolvedTable, Whole
from dice_envs.experiments import ui
from dice_envs.experiments.jobs import on_ray, resumable
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.pages import saved_plot

GROUP = "Exact values of a game."
# Options that commands share: name → its type, its default, and the parameters of a game's function that ask for it.
SHARED: dict[str, tuple[Any, Any, set[str]]] = {
    "seed": (ui.SeedOption, None, {"seed"}),
    "json": (ui.JsonOption, None, set()),
    "report": (ui.ReportOption, None, {"report"}),
    "resume": (ui.ResumeOption, False, {"workers"}),
    "ray": (ui.RayOption, None, {"workers", "cluster"}),
}


def command_of(game: Game) -> Callable[..., None]:
    """Return the command of a game that offers `solve_game`; see `dice_envs.exact.GameExact.solve_game`."""
    solve_game = offered(game, "solve_game")
    _, *parameters = inspect.signature(solve_game).parameters.values()
    hints = get_type_hints(solve_game, include_extras=True)
    settings = {each.name: each.default for each in parameters if hasattr(hints[each.name], "__metadata__")}
    wanted = {each.name for each in parameters} - settings.keys()

    def run(**given: Any) -> None:
        typed = ui.game_options(given["option"])
        for name in settings.keys() & typed.keys():
            raise ValueError(f"option {name} cannot be set with -o: use --{name}")
        variant, chosen = single_seat(game, **typed), {name: given[name] for name in settings}
        json, report, seed, ray = (given.get(name) for name in ("json", "report", "seed", "ray"))
        with contextlib.ExitStack() as stack:
            there: dict[str, Any] = {"say": ui.console.print, "progress": ui.progress, "report": report is not None}
            there["cluster"] = None if ray is None else functools.partial(on_ray, ray, None)
            if "workers" in wanted:
                what = {"solve": game.name, "game": str(variant), **chosen}
                seed, there["workers"] = stack.enter_context(resumable(json, given["resume"], what, seed, ray))
            there["seed"] = ui.seed_or_fresh(seed)
            found: Solved = solve_game(variant, **{name: there[name] for name in wanted}, **chosen)
            ui.write_all(json, found.data, report, lambda folder: _draw(folder, found), lambda: _show(found))

    options = {"option": (ui.OptionOption, None)}
    options |= {name: (_declared(name, hints[name]), default) for name, default in settings.items()}
    options |= {name: (kind, default) for name, (kind, default, uses) in SHARED.items() if not uses or uses & wanted}
    signature = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in options.items()
    ]
    command = functools.update_wrapper(run, solve_game)
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return command


def _declared(name: str, hint: Any) -> Any:
    """Return a setting's type with its option of the command line, from its type with its help."""
    words = escape(*hint.__metadata__)  # brackets would be taken for a style
    option = f"--{name.replace('_', '-')}"
    return Annotated[
        hint.__origin__, ui.count_option(option, help=words) if hint.__origin__ is int else typer.Option(option, help=words)
    ]


def _show(found: Solved) -> None:
    for each in found.shown:
        if isinstance(each, SolvedTable):
            Grid(*each).show()
        elif isinstance(each, Whole):
            ui.console.whole_line(each)
        else:
            ui.console.print(each if isinstance(each, str) else Text.assemble(*each))


def _draw(folder: Path, found: Solved) -> None:
    if found.plot is not None:
        with saved_plot(folder, found.plot.name, found.plot.caption, figsize=found.plot.size) as (_, axes):
            found.plot.draw(axes)


COMMANDS = {game.name: command_of(game) for game in map(load, names()) if offered(game, "solve_game")}
