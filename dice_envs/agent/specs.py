"""Specs: how agents are named, made and found, which specs of strangers are harmless, and who plays: the variant of a command
with its agents, and the opponents of a learner.

The modules of `dice_envs.agents` offer the players; only here they are imported, by name, when one is first asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dice_envs.agent import Agent, Uniform, as_agent, check_plays, promises_of
from dice_envs.core.game import Variant, configure, load
from dice_envs.core.options import did_you_mean, parse_options, shown
from dice_envs.core.own import FORMS, load_own, split_own


def players(module: str = "") -> ModuleType:
    """Return the package of agents, or a module of it."""
    return importlib.import_module(f"dice_envs.agents{module and '.'}{module}")


@functools.cache
def by_module(name: str) -> dict[str, dict[str, Any]]:
    """Return the dictionaries of this name, such as `AGENTS`, by the module that has them; empty where a module has none."""
    modules = [each.name for each in pkgutil.iter_modules(players().__path__)]
    return {module: vars(players(module)).get(name, {}) for module in modules}


@functools.cache
def factories() -> dict[str, Any]:
    """Return every agent that a spec can name: name → class."""
    found: dict[str, Any] = {}
    for agents in by_module("AGENTS").values():
        for name in agents.keys() & found.keys():
            raise TypeError(f"two modules of agents offer {name!r}")
        found |= agents
    return dict(sorted(found.items()))


def aliases(game: str) -> dict[str, str]:
    """Return other names of agents in a game: name → spec, such as "heuristic" → "strongest"."""
    return dict(by_module("ALIASES").get(game, {}))


def for_game(game: str | None) -> dict[str, Any]:
    """Return the agents that play a game, or any game if it is None: name → class. ValueError if there is no such game."""
    played = None if game is None else load(game).name
    return {name: factory for name, factory in factories().items() if not games_of(factory) or played in games_of(factory)}


def required(factory: Any) -> list[str]:
    """Return the parameters of an agent's class that have no default, such as the model of `chat`."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, each in parameters_of(factory).items() if each.default is each.empty and each.kind in named]


def levels(variant: Variant) -> dict[str, str]:
    """Return opponents from the weakest to the strongest for people to choose from: in words → spec.

    A game's module lists them as LEVELS; those that do not play the variant are left out.
    """
    return {words: spec for words, spec in by_module("LEVELS").get(variant.game.name, {}).items() if _plays(spec, variant)}


def _plays(spec: str, variant: Variant) -> bool:
    try:
        check_plays(make_agent(spec), variant)
    except (ValueError, OSError, ImportError):
        return False
    return True


def in_words(variant: Variant, spec: str) -> str:
    """Return a player as people call it: its level, such as "optimal player"; else its name, or its spec with parameters."""
    name = spec if ":" in spec else spec.replace("_", " ")  # a file keeps its name
    return next((words for words, known in levels(variant).items() if known == spec), name)


def usual(variant: Variant) -> str:
    """Return the spec of a sensible opponent: the second of the levels; `random` where there are fewer than two."""
    return [*levels(variant).values(), "random", "random"][1]


def games_of(player: Any) -> tuple[str, ...]:
    """Return the games that an agent or its class plays; none if it plays any game."""
    played: str | tuple[str, ...] = getattr(player, "plays", ())
    return (played,) if isinstance(played, str) else played


def make_agent(spec: str, game: str = "") -> Agent:
    """Make an agent from its spec: `NAME`, `NAME:VALUE` (its first parameter), or `NAME:KEY=VALUE,KEY=VALUE`.

    Args:
        spec: such as "numbers:bluff=0.25" or "mcts:1000,select=regret". NAME is one that `dice-envs agents` lists, or a class
            of your own, "my_players.py:Bold" or "my_package.module:Bold", whose parameters follow after another colon. Such a
            spec runs that code: never use one from a source that you do not trust. Values are written as game options are,
            except that text is taken as it is. A comma always separates parameters, so no value can be a list, and no path
            can contain a comma.
        game: whose other names of agents may be used, too.

    Raises:
        ValueError: unknown name or parameter, or a value that the agent refuses; the message says what is allowed.
    """
    spec = _meant(spec, game)
    factory, parameters = parse(spec)
    for name in required(factory):
        if name not in parameters:
            raise ValueError(f"{shown(spec)} needs {name}; it is written {_split(spec)[0]}:{name}=…")
    try:
        agent: Agent = as_agent(factory(**parameters))
    except TypeError as problem:
        name, fields = _split(spec)[0], ", ".join(parameters_of(factory))
        raise ValueError(f"{shown(spec)}: {problem}; {name} takes: {fields or 'no parameters'}") from None
    except Exception as problem:
        if split_own(spec) is None or isinstance(problem, ValueError | OSError | ImportError):
            raise
        raise ValueError(f"{shown(spec)} has failed: {type(problem).__name__}: {problem}") from problem
    if not isinstance(agent, Agent):
        raise ValueError(f"{shown(spec)} is not an agent: it has no method act")
    return agent


def _meant(spec: str, game: str) -> str:
    """Return the spec that one of a game's aliases stands for; other specs as they are."""
    name, rest = _split(spec)
    meant = aliases(game).get(name)
    if meant is None:
        return spec
    return f"{meant}{',' if ':' in meant else ':'}{rest}" if rest else meant


def parse(spec: str) -> tuple[Any, dict[str, Any]]:
    """Return the class and the parameters that a spec names, unchecked. ValueError for unknown names, as in `make_agent`."""
    name, rest = _split(spec)
    own = split_own(name)
    if own is None and name not in factories():
        known, near = ", ".join(factories()), did_you_mean(name, factories())
        raise ValueError(f"unknown agent {shown(name)}; known: {known}, or one of your own as {FORMS}{near}")
    factory = factories()[name] if own is None else load_own(*own[:2], "agent")
    parameters = parameters_of(factory)
    whole = getattr(factory, "takes_text", False)
    pairs = [part for part in ([rest] if whole else rest.split(",")) if part]
    if pairs and (whole or "=" not in pairs[0]):
        if not parameters:
            raise ValueError(f"{name} takes no parameters, not {shown(rest)}")
        pairs[0] = f"{next(iter(parameters))}={pairs[0]}"
    given = parse_options(pairs, [key for key, each in parameters.items() if each.annotation in ("str", str)])
    for key in given:
        if key not in parameters:
            known, near = ", ".join(parameters) or "none", did_you_mean(key, parameters)
            raise ValueError(f"{name} has no parameter {shown(key)}; it has: {known}{near}")
    return factory, given


class NotHarmless(ValueError):
    """A spec that others have written names what it may not, or what does not exist: the message does not tell which."""

    def __init__(self, where: str = "") -> None:
        super().__init__(
            f"{where}here an agent may name a policy of the package or one below runs/, but no other file and no module or "
            "server; this is not such a policy, or it does not play the game"
        )


MOST_CHARACTERS = 1000  # of a spec that others have written
_WORD = re.compile(r"[A-Za-z0-9_-]*")


def check_harmless(spec: str, game: str) -> bool:
    """Check a spec that others have written: in a file, on a page, or in an assistant's words. Return whether it names a file.

    It may be one of the game's aliases. See `files` and `reaches_out` of `dice_envs.Agent`.

    Raises:
        NotHarmless: it names code, an agent that reaches out, or a file that is no policy of the package and none below runs/.
        ValueError: an unknown parameter.
    """
    if split_own(spec) is not None or len(spec) > MOST_CHARACTERS:
        raise NotHarmless
    spec = _meant(spec, game)
    if spec.partition(":")[0] not in factories():
        return False  # nothing can be made of it
    factory, given = parse(spec)
    if getattr(factory, "reaches_out", False):
        raise NotHarmless
    named = False
    for name, value in given.items():
        inner = _meant(str(value), game)
        if name in getattr(factory, "files", ()):
            if value and not _is_policy(str(value)):
                raise NotHarmless
            named |= bool(value)
        # thirties:heuristic is what the alias heuristic stands for: its value is then a plain word, no spec inside the spec.
        elif inner != spec and inner.partition(":")[0] in factories():
            named |= check_harmless(inner, game)
        elif isinstance(value, str) and not _WORD.fullmatch(value):
            raise NotHarmless  # such as a module
    return named


def _is_policy(path: str) -> bool:
    """Return whether a path, with links resolved, leads below `runs` or to a policy of the package."""
    given = Path(path)
    if given.is_absolute() or given.drive or ".." in given.parts:
        return False
    try:
        roots = [Path("runs").resolve(), players().POLICIES.resolve()]
        ends = [given.resolve(), (given / "policy.npz").resolve()]  # a folder means the policy in it
        return any(all(end.is_relative_to(root) for end in ends) for root in roots)
    except (OSError, ValueError, RuntimeError):  # a loop of links, an invalid name
        return False


def _split(spec: str) -> tuple[str, str]:
    """Return the name in a spec, and the text of its parameters."""
    own = split_own(spec)
    if own is not None:
        return f"{own[0]}:{own[1]}", own[2]
    name, _, rest = spec.partition(":")
    return name, rest


def parameters_of(factory: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of an agent's class by name: of a dataclass or an `__init__`. ValueError if it is no class."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        raise ValueError(f"{shown(getattr(factory, '__name__', factory))} is not a class of agents") from None
    return {name: each for name, each in signature.parameters.items() if not name.startswith("_")}


def resolve(agent: str | Agent, game: str = "") -> Agent:
    """Return the agent itself, or make it from its spec (see `make_agent`); in a game also from another name of an agent.

    Raises:
        ValueError: the spec names no known agent.
        TypeError: neither a spec nor an object with `act` nor one that `as_agent` makes an agent of.
    """
    if agent == "random":  # the default of every environment: no need to load all agents for it
        return Uniform()
    if isinstance(agent, str):
        return make_agent(agent, game)
    if not isinstance(player := as_agent(agent), Agent):
        raise TypeError(f"an agent is a spec, an object with act, a function or a model like MaskablePPO, not {shown(agent)}")
    return player


# --- who plays ----------------------------------------------------------------------------------------------------------


class Lineup(NamedTuple):
    """The variant and the players of a command."""

    variant: Variant  # the game with its options
    players: list[Agent]  # the agents, all of which play the variant
    # The spec of the trained policy whose options were taken, where these are not the command's usual ones; otherwise empty.
    policy: str


def lineup(game: str, options: Mapping[str, Any], specs: Sequence[str], usual: Callable[..., Variant] = configure) -> Lineup:
    """Return the variant of the options, and the agents of the specs.

    A trained policy plays only its own variant: if a spec names one, options that are not given are taken from it. Where there
    is no policy, `usual` makes the variant: `configure` or `single_seat`.

    Raises:
        ValueError: unknown names, policies of different variants, or an agent that does not play the variant.
    """
    plain = usual(game)
    players = [make_player(plain, spec) for spec in specs]
    trained_on = [(spec, promises_of(player).variant) for spec, player in zip(specs, players, strict=True)]
    trained = [(spec, own) for spec, own in trained_on if own and own.game is plain.game]
    policy, its_variant = trained[0] if trained else ("", plain)
    if not trained:
        variant = usual(game, **options)
    else:
        for spec, another in trained[1:]:
            first, second = its_variant.differences(another)
            if first:
                raise ValueError(
                    f"{policy} was trained on {plain.game.name} with {first}, {spec} with {second}; they cannot meet"
                )
        variant = plain.game.configure(**{**its_variant.changed_options(), **options})
        own, usually = (dataclasses.asdict(each.options) for each in (its_variant, plain))
        if all(own[name] == usually[name] for name in own if name not in options):
            policy = ""  # nothing was taken from it
    for spec, player in zip(specs, players, strict=True):
        try:
            check_plays(player, variant)
        except ValueError as problem:
            if policy and spec != policy:
                raise ValueError(f"{problem}; {policy} was trained on {its_variant} and plays nothing else") from None
            raise
    return Lineup(variant, players, policy)


def make_players(variant: Variant, specs: Sequence[str]) -> list[Agent]:
    """Return the agents that the specs name. ValueError for one that names no agent, or one that does not play the variant."""
    players = [make_player(variant, spec) for spec in specs]
    for player in players:
        check_plays(player, variant)
    return players


def make_player(variant: Variant, spec: str) -> Agent:
    """Return the agent that a spec names, even if it does not play the variant. ValueError if it names none; for an unknown
    name the message lists agents that play the game."""
    name, game = spec.partition(":")[0], variant.game.name
    names = [*factories(), *aliases(game)]
    if name not in names and split_own(spec) is None:
        options = "game options are typed as -o KEY=VALUE, an agent's as NAME:KEY=VALUE"
        hint = options if "=" in name else f"one of your own is written {FORMS}"
        known = ", ".join(for_game(game))
        raise ValueError(f"unknown agent {shown(name)}; agents for {game} are: {known}; {hint}{did_you_mean(name, names)}")
    return resolve(spec, game)


def make_harmless(
    variant: Variant, spec: str, check: Callable[[Agent, Variant], object] = lambda player, variant: None
) -> Agent:
    """Return the agent of a spec that others have written; it runs no code of theirs, and sends nothing anywhere.

    `check` is called with the agent and the variant before the agent may do any work; it raises ValueError to refuse it.

    Raises:
        ValueError: the agent is unknown, does not play the variant, or names what `check_harmless` refuses. The message
            reveals nothing about files.
    """
    named = check_harmless(spec, variant.game.name)
    try:
        player = make_player(variant, spec)
        check(player, variant)
        check_plays(player, variant)
        return player
    except (ValueError, OSError):
        if named:
            raise NotHarmless from None
        raise
