"""How the commands find what each game adds: a module or package named like it in `solve`, `reproduce`, `bench` and
`logs`, and the agents that play it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import typer

import agents
from dice_envs.agent import Agent
from dice_envs.game import Variant, names

__all__ = ["add_commands", "agents_by_game", "make_players", "modules"]


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """The modules and packages inside a package by name, private ones left out."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def add_commands(app: typer.Typer, package: ModuleType, guarded: Callable[..., Any]) -> None:
    """Add the function `main` of each module of the package to the app, under the module's name with hyphens and,
    hidden, with underscores."""
    for name, module in modules(package).items():
        command = guarded(module.main)
        app.command(name.replace("_", "-"), help=module.main.__doc__)(command)
        if "_" in name:
            app.command(name, hidden=True, help=module.main.__doc__)(command)


def agents_by_game() -> dict[str | None, dict[str, Any]]:
    """The agents that specs can name, by the game that they play; those of None play any. Name → class in each."""
    found: dict[str | None, dict[str, Any]] = {game: {} for game in (None, *names())}
    for name, factory in agents.factories().items():
        found[_game_of(factory)][name] = factory
    return found


def make_players(variant: Variant, specs: Sequence[str]) -> list[Agent]:
    """The agents that the specs name.

    Raises:
        ValueError: a spec names no agent, or one that plays another game.
    """
    players = [agents.make(spec) for spec in specs]
    for spec, player in zip(specs, players, strict=True):
        game = _game_of(type(player))
        if game not in (None, variant.game.name):
            known = agents_by_game()
            fitting = sorted({**known[None], **known[variant.game.name]})
            raise ValueError(
                f"{spec.partition(':')[0]} plays {game} only; agents for {variant.game.name} are: {', '.join(fitting)}"
            )
    return players


def _game_of(agent_class: type) -> str | None:
    """The only game that an agent plays, or None for one that plays any."""
    game: str | None = getattr(agent_class, "plays", None)
    return game
