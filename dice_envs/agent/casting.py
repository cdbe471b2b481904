"""Casting: the variant of a command, the agents that its specs name, and the opponents of a learner."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from dice_envs.agent import Agent, check_plays, promises_of
from dice_envs.agent.mixture import Mixture
from dice_envs.agent.specs import NotHarmless, aliases, check_harmless, factories, for_game, resolve
from dice_envs.core.game import Variant, configure
from dice_envs.core.options import did_you_mean, shown
from dice_envs.core.own import FORMS, split_own


class Cast(NamedTuple):
    """The variant and the players of a command."""

    variant: Variant  # the game with its options
    players: list[Agent]  # the agents, all of which play the variant
    # The spec of the trained policy whose options were taken, where these are not the command's usual ones; otherwise empty.
    policy: str


def cast(game: str, options: Mapping[str, Any], specs: Sequence[str], usual: Callable[..., Variant] = configure) -> Cast:
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
    return Cast(variant, players, policy)


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
        ValueError: the agent is unknown, does not play the variant, or names what `check_harmless` of `dice_envs.agents`
            refuses. The message reveals nothing about files.
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


# --- a learner's opponents --------------------------------------------------------------------------------------------


Opponents: TypeAlias = str | Agent | Sequence[str | Agent] | Mixture  # see `dice_envs.envs.learner.SeatGames`


def resolve_opponents(opponents: Opponents, variant: Variant) -> list[Agent]:
    """Return the agents, all of which play the variant; for a Mixture its own list. ValueError for a wrong number of agents, an
    unknown spec, a Mixture among several agents, or an agent that does not play the variant."""
    others = variant.facts.num_seats - 1
    agents: list[Agent]
    if isinstance(opponents, Mixture):
        agents = opponents.agents
    else:
        listed = opponents if isinstance(opponents, Sequence) and not isinstance(opponents, str) else [opponents]
        if listed is opponents and len(listed) != others:
            raise ValueError(
                f"opponents must be one agent, a Mixture, or {others} agents, one for each other seat, not {len(listed)}"
            )
        agents = [resolve(agent, variant.game.name) for agent in listed]
        if any(isinstance(agent, Mixture) for agent in agents):
            raise ValueError("opponents must be one Mixture alone, from which each seat draws, or agents without any")
    for agent in agents:
        check_plays(agent, variant)
    return agents
