"""Matches: games that the same agents play one after another, an agent for each seat, in pieces with seeds of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import RESIGNS, Agent, ask, fault_of, forget_game, fresh_memory, promises_of
from dice_envs.agent.compiled import NO_FAULT, compile_games, context_of, team_of
from dice_envs.core.batch import forfeit
from dice_envs.core.dice import STREAM, new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.core.options import check_range
from dice_envs.core.work import advance

GAMES_AT_ONCE = 2048  # in a chunk, which has a seed of its own; their states fit the processor's cache
GAMES_ASKED = 256  # games at once where agents are asked: fewer are slow, more leave few parts of slow games to share out
MOST_GAMES = 10**7  # of one meeting: all returns are kept, 8 bytes a seat
MOST_IN_MATCH = 10**5


def check_match(games: int, match: int, least: int = 1, most: int = MOST_GAMES) -> None:
    """Raise ValueError unless `games`, from `least` to `most`, can be played in whole matches of `match` games."""
    check_range("match", match, 1, MOST_IN_MATCH)
    check_range("games", games, least, most)
    if games % match:
        raise ValueError(f"games must be a multiple of match={match}, so that all matches are whole, not {games}")


def remembering(agents: Sequence[Agent]) -> bool:
    """Return whether an agent remembers past games: then the games of a match depend on each other."""
    return any(promises_of(agent).remembers is not None for agent in agents)


class Watch(NamedTuple):
    """Callbacks of a game between agents. With any of them agents are asked for each move, even those that have kernels.

    Attributes:
        before_move: called as (agent, states, games, actions) with the number of the agent that moves, the states that it moves
            in (copies), the numbers of their games, and its legal actions.
        after_move: called as (states, games, shift) after each turn with the games that have moved, ended ones included:
            their states, their numbers, and the seat of agent 0.
    """

    before_move: Callable[[int, np.ndarray, np.ndarray, np.ndarray], Any] | None = None
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None = None


class Piece(NamedTuple):
    """Matches of one table that are played at once, all within one chunk of GAMES_AT_ONCE."""

    first: int  # number of the first match
    number: int  # of matches
    seeds: list[np.random.SeedSequence]  # of the chunk: of its games, then of each agent


def pieces_of(matches: int, seats: int, seed: np.random.SeedSequence, size: int) -> list[Piece]:
    """Divide matches into pieces of `size`, a divisor of GAMES_AT_ONCE. The games do not depend on the size."""
    seeds = [chunk.spawn(1 + seats) for chunk in seed.spawn(math.ceil(matches / GAMES_AT_ONCE))]
    firsts = range(0, matches, size)
    return [Piece(first, min(size, matches - first), seeds[first // GAMES_AT_ONCE]) for first in firsts]


def play_pieces(
    variant: Variant,
    agents: Sequence[Agent],
    match: int,
    pieces: Sequence[Piece],
    watch: Watch | None = None,
) -> np.ndarray:
    """Play pieces one after another, seats rotating: in game k of match m agent a sits at seat (a + m + k) mod seats.

    Advances by games that have ended. An agent that resigns loses its game, unless moves are watched before they are made.

    Returns:
        Returns of each agent, (matches, match, agents) float64.

    Raises:
        AgentError: an agent's action is malformed or not legal.
    """
    seats = variant.facts.num_seats
    team = team_of(agents, variant) if watch is None else None
    played = []
    for first, count, seeds in pieces:
        skipped = first % GAMES_AT_ONCE
        rng, *streams = (new_streams(seed, skipped + count)[skipped:] for seed in seeds)
        states = np.zeros(count, variant.game.state)
        states["rng"] = rng["rng"]
        shifts = (first + np.arange(count)) % seats
        if team is not None:
            context, returns = context_of(variant, team), np.empty((count, match, seats))
            compile_games(variant.game, team.choosers)(context, states, np.stack(streams).view(STREAM), shifts, returns)
            row, player, action = context.fault.tolist()
            if row != NO_FAULT:
                raise fault_of(agents[player], variant, states[row], row, action)
            played.append(returns)
            advance(count * match)
        else:
            memories = [fresh_memory(agent, count) for agent in agents]
            tables = _Matches(variant, agents, first, states, streams, shifts, memories)
            played.append(tables.play(match, watch or Watch()))
    return np.concatenate(played)


class _Matches(NamedTuple):
    """Matches that are played at once by asking the agents for each move."""

    variant: Variant
    agents: Sequence[Agent]
    first: int  # number of the first match
    states: np.ndarray
    streams: Sequence[np.ndarray]  # of each agent
    shifts: np.ndarray  # the first agent's seat in the first game
    memories: Sequence[np.ndarray | None]  # of each agent

    def play(self, match: int, watch: Watch) -> np.ndarray:
        """Play the matches; returns those of each agent, (matches, match, agents) float64."""
        count, seats = len(self.states), self.variant.facts.num_seats
        returns = np.zeros((count, match, seats))
        for place in range(match):  # the tables' random streams go on from game to game
            numbers = (self.first + np.arange(count)) * match + place
            shift = (self.shifts + place) % seats
            earned = self._play_game(numbers, shift, watch)
            # Column a: returns of agent a, whatever its seat.
            returns[:, place] = np.take_along_axis(earned, (np.arange(seats) + shift[:, None]) % seats, axis=1)
        return returns

    def _play_game(self, numbers: np.ndarray, shift: np.ndarray, watch: Watch) -> np.ndarray:
        """Play one game of each match; returns of each seat, (matches, seats) float64."""
        kernels, states = self.variant.kernels, self.states
        index = np.arange(len(states))
        kernels.deal(states, index)
        for memory in self.memories:
            forget_game(memory)
        earned = np.zeros((len(states), self.variant.facts.num_seats))
        while True:
            goes_on = states["seat"][index] != OVER
            advance(len(index) - int(goes_on.sum()))
            index = index[goes_on]
            if not len(index):
                return earned
            # Movers are decided once a round: a game in which one of these agents has just moved waits for the next round.
            who = (states["seat"][index] - shift[index]) % earned.shape[1]
            for agent in range(len(self.agents)):
                mine = index[who == agent]
                if len(mine):
                    self._move(agent, mine, numbers, earned, watch)
                    earned[mine] += states["rewards"][mine, : earned.shape[1]]
            if watch.after_move is not None:
                watch.after_move(states[index], numbers[index], shift[index])

    def _move(self, agent: int, mine: np.ndarray, numbers: np.ndarray, earned: np.ndarray, watch: Watch) -> None:
        states, variant = self.states, self.variant
        may_resign = watch.before_move is None
        actions = ask(self.agents[agent], variant, states, mine, self.streams[agent], self.memories[agent], may_resign)
        if watch.before_move is not None:
            watch.before_move(agent, states[mine], numbers[mine], actions)
        plays = actions != RESIGNS
        variant.kernels.play(states, mine[plays], actions[plays])
        for game in mine[~plays]:
            forfeit(variant, states[game], [states[game]["seat"]], earned[game])
