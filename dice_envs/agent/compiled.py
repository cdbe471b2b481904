"""Games between agents that choose by kernels (`dice_envs.agent.kernel`): each loop over them is compiled as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dice_envs.agent import Agent, AgentError, KernelAgent, check_plays, promises_of
from dice_envs.agent.kernel import Chooser, compile_chooser, random_choice
from dice_envs.core.game import OVER, Game, Variant, compile_check
from dice_envs.core.kernel import identity, kernel
from dice_envs.core.options import shown
from dice_envs.core.state import relative_seat

NO_ACTION = -1
ASKED = -2  # in place of the action of an agent that has no kernel: Python asks it
NO_FAULT = -1  # in the first entry of `Context.fault`


class Team(NamedTuple):
    """Agents that choose by kernels in one variant."""

    choosers: tuple[Chooser, ...]  # their kernels, each once
    # (agents, 2) int64, each agent's kernel among `choosers`, and the row of its options; ASKED without a kernel.
    numbers: np.ndarray
    options: tuple[np.ndarray, ...]  # for each kernel, the options of the agents that share it, an array of records
    may_fail: bool  # whether an action may be illegal; not if all are chosen by kernels that promise legal ones


def team_of(agents: Sequence[Agent], variant: Variant) -> Team | None:
    """Return the agents as a team; None if one of them has no kernel, or has a memory.

    Raises:
        ValueError: an agent does not play the variant.
        AgentError: a kernel's options are not one record.
    """
    for agent in agents:
        check_plays(agent, variant)
    team = mixed_team(agents, variant)
    return None if (team.numbers[:, 0] == ASKED).any() else team


def mixed_team(agents: Sequence[Agent], variant: Variant) -> Team:
    """Return the agents, all of which play the variant, as a team in which those without a kernel, or with a memory, are asked.

    Raises:
        AgentError: a kernel's options are not one record.
    """
    offers: list[_Offer | None] = []
    for agent in agents:
        offered = agent.kernel(variant) if isinstance(agent, KernelAgent) and promises_of(agent).remembers is None else None
        if offered is None:
            offers.append(None)
            continue
        options = offered.options
        if not isinstance(options, (np.ndarray, np.void)) or options.shape != () or options.dtype.fields is None:
            raise AgentError(
                f"{type(agent).__name__}: the options of its kernel must be one NumPy record, not {shown(options)}"
            )
        kind = Chooser(offered.choose, bool(offered.reads_hidden)), options.dtype
        offers.append((kind, options.tobytes(), bool(offered.always_legal)))
    return _team(tuple(offers))


# An agent's kernel with the type of its options, the bytes of these, and its promise.
_Offer: TypeAlias = tuple[tuple[Chooser, np.dtype[Any]], bytes, bool]


@functools.lru_cache(maxsize=256)  # environments ask at every step, in case an agent has changed
def _team(offers: tuple[_Offer | None, ...]) -> Team:
    """Return the team, given what each agent offers; None: it is asked."""
    kinds: dict[tuple[Chooser, np.dtype[Any]], list[bytes]] = {}
    places: list[tuple[Any, int]] = []
    for offer in offers:
        rows = kinds.setdefault(offer[0], []) if offer else []
        places.append((offer and offer[0], len(rows)))
        if offer:
            rows.append(offer[1])
    # Sorted, so that the same agents at other seats share one loop.
    kinds = dict(sorted(kinds.items(), key=lambda entry: _name_of_kind(*entry[0])))
    order: dict[Any, int] = {None: ASKED, **{kind: number for number, kind in enumerate(kinds)}}
    return Team(
        choosers=tuple(chooser for chooser, _ in kinds),
        numbers=np.array([(order[kind], row) for kind, row in places], np.int64).reshape(len(places), 2),
        options=tuple(np.frombuffer(b"".join(rows), dtype).copy() for (_, dtype), rows in kinds.items()),
        may_fail=not all(offer is not None and offer[2] for offer in offers),
    )


def _name_of_kind(chooser: Chooser, options: np.dtype[Any]) -> str:
    choose: Any = chooser.choose
    return f"{choose.__module__}.{choose.__qualname__} {identity(choose)} {chooser.reads_hidden} {options}"


# --- loops ------------------------------------------------------------------------------------------------------------


class Context(NamedTuple):
    """Arguments of every loop over games between agents.

    Attributes:
        params: the game's, as its kernels receive them.
        numbers, options: the team's.
        sample: (1,) of the game's states, work space.
        mask: (actions,) int8, work space.
        fault: (3,) int64, the first illegal action: row, player and action. The row is NO_FAULT if there is none.
    """

    params: Any
    numbers: np.ndarray
    options: tuple[np.ndarray, ...]
    sample: np.ndarray
    mask: np.ndarray
    fault: np.ndarray


def context_of(variant: Variant, team: Team) -> Context:
    """Return a fresh context for a team that plays the variant."""
    return Context(
        params=variant.params,
        numbers=team.numbers,
        options=team.options,
        sample=np.empty(1, variant.game.state),
        mask=np.empty(variant.facts.num_actions, np.int8),
        fault=np.full(3, NO_FAULT, np.int64),
    )


@kernel(allocates=False)
def _ask(context, agent, state, stream):
    return ASKED


@functools.cache
def compile_legal_chooser(game: Game, choosers: tuple[Chooser, ...]) -> tuple[Callable[..., int], Any]:
    """Return the kernel `(context, agent, state, stream) → action`, and the decorator for kernels that call it.

    The kernel returns the action of the agent with this number, ASKED if that has no kernel. If the action is illegal, it
    returns NO_ACTION and writes the last two entries of `context.fault`.
    """
    if not choosers:
        return _ask, functools.partial(kernel, allocates=False)
    choose, decorate = compile_chooser(game, choosers)
    may_play = compile_check(game)
    careful = any(chooser.choose is not random_choice(game) for chooser in choosers)

    @decorate(merge=True)
    def choose_legal(context, agent, state, stream):
        number, row = context.numbers[agent, 0], context.numbers[agent, 1]
        if number < 0:
            return ASKED
        action = np.int64(choose(number, row, context.params, context.options, state, stream, context.sample))
        if careful and not may_play(context.params, state, action, context.mask):
            context.fault[1] = agent
            context.fault[2] = action
            return NO_ACTION
        return action

    return choose_legal, decorate


@functools.cache
def compile_games(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., None]:
    """Return the loop `(context, states, streams, shifts, returns)`, which plays matches of some tables to their ends.

    `states` (tables,) have their random streams; `streams` (agents, tables) of STREAM are the agents'. `shifts` (tables,) int64
    are the first agent's seats in the first games; in each later game all agents move on by one seat. `returns` (tables, games,
    agents) float64 is written, `states` is modified in place. After an illegal action it ends, with `context.fault`.
    """
    choose_legal, decorate = compile_legal_chooser(game, choosers)
    deal, play = game.deal, game.play

    @decorate(merge=True)
    def play_one(context, state, streams, shift, returns):
        """Play a dealt game to its end; False if an agent's action is illegal."""
        seats = len(returns)
        for agent in range(seats):
            returns[agent] = 0.0
        while state["seat"] != OVER:
            agent = relative_seat(np.int64(state["seat"]), shift, seats)
            action = choose_legal(context, agent, state, streams[agent])
            if action == NO_ACTION:
                return False
            play(context.params, state, action)
            for each in range(seats):
                returns[relative_seat(each, shift, seats)] += state["rewards"][each]
        return True

    @decorate
    def play_all(context, states, streams, shifts, returns):
        for i in range(len(states)):
            for place in range(returns.shape[1]):
                deal(context.params, states[i])
                shift = (shifts[i] + place) % returns.shape[2]
                if not play_one(context, states[i], streams[:, i], shift, returns[i, place]):
                    context.fault[0] = i
                    return

    return play_all
