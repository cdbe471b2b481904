"""Baselines, heuristics and exact players, made from specs such as `numbers:bluff=0.25`.

Every module here may offer agents in a dictionary `AGENTS`: name → frozen dataclass with an `act` method (see
`dice_envs.agent.Agent`). Its fields are the agent's parameters, its docstring is what `python -m experiments agents`
prints. An agent of one game names it as `plays` (see `agents.base.OfOneGame`), one of a few games a tuple of
them; all others play any game.
One that does not play every variant refuses the others in `check_variant`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from typing import Any

from dice_envs.agent import Agent
from dice_envs.game import load, parse_options, shown

__all__ = ["factories", "for_game", "games_of", "make", "parse"]


@functools.cache
def factories() -> dict[str, Any]:
    """Every agent that a spec can name: name → class."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(__path__):
        for name, factory in getattr(importlib.import_module(f"{__name__}.{module.name}"), "AGENTS", {}).items():
            if name in found:
                raise TypeError(f"two modules of agents offer {name!r}")
            found[name] = factory
    return dict(sorted(found.items()))


def for_game(game: str | None) -> dict[str, Any]:
    """The agents that play a game, those that play any among them; None: those that play any. Name → class.

    Raises:
        ValueError: there is no such game.
    """
    played = None if game is None else load(game).name
    return {name: factory for name, factory in factories().items() if not games_of(factory) or played in games_of(factory)}


def games_of(player: Any) -> tuple[str, ...]:
    """The only games that an agent or its class plays; none for one that plays any."""
    played: str | tuple[str, ...] = getattr(player, "plays", ())
    return (played,) if isinstance(played, str) else played


def make(spec: str) -> Agent:
    """An agent from its spec: `NAME`, `NAME:VALUE` (its first parameter), or `NAME:KEY=VALUE,KEY=VALUE`.

    A value without a key is the first parameter, so `mcts:1000,select=regret` and `ppo:PATH` work too. Values are
    written as in `dice_envs.game.parse_options`; a parameter that is text keeps its value as written, whatever it looks like.
    A comma always separates two parameters, so no value can be a list, and no path can contain a comma.

    Raises:
        ValueError: unknown name or parameter, or a value that the agent refuses; the message says what is allowed.
    """
    factory, parameters = parse(spec)
    try:
        agent: Agent = factory(**parameters)
    except TypeError as problem:
        name, fields = spec.partition(":")[0], ", ".join(_fields(factory))
        raise ValueError(f"{shown(spec)}: {problem}; {name} takes: {fields or 'no parameters'}") from None
    return agent


def parse(spec: str) -> tuple[Any, dict[str, Any]]:
    """The class and the parameters that a spec names; none is tried. ValueError as `make`, for unknown names."""
    name, _, rest = spec.partition(":")
    if name not in factories():
        raise ValueError(f"unknown agent {shown(name)}; known: {', '.join(factories())}")
    factory = factories()[name]
    fields = _fields(factory)
    pairs = [part for part in rest.split(",") if part]
    if pairs and "=" not in pairs[0]:
        if not fields:
            raise ValueError(f"{name} takes no parameters, not {shown(rest)}")
        pairs[0] = f"{fields[0]}={pairs[0]}"
    texts = [field.name for field in dataclasses.fields(factory) if field.type in ("str", str)]
    parameters = parse_options(pairs, texts)
    for key in parameters:
        if key not in fields:
            raise ValueError(f"{name} has no parameter {shown(key)}; it has: {', '.join(fields) or 'none'}")
    return factory, parameters


def _fields(factory: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(factory) if field.init and not field.name.startswith("_")]
