"""Games at one table: an agent for each seat, seats rotating, one game or a match at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, ask, fresh_memory
from dice_envs.agent.compiled import play_games, team_of
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.core.options import check_range
from dice_envs.experiments.jobs.workers import HERE, Workers

__all__ = ["GAMES_ASKED", "GAMES_AT_ONCE", "MOST_GAMES", "check_match", "parts_of", "play_table"]

GAMES_AT_ONCE = 2048  # in a chunk, which has a seed of its own; their states fit the processor's cache
GAMES_ASKED = 256  # games at once where agents are asked: fewer are slow, more leave few parts of slow games to share out
PIECES_IN_PART = 64  # so that a part of compiled games takes a tenth of a second or more
MOST_GAMES = 10**7  # of one meeting: all returns are kept, 8 bytes a seat
MOST_IN_MATCH = 10**5
PARTS_END = (10, 50)  # a match is shown in parts: its first 10 games, the next 40, the rest


def play_table(
    variant: Variant,
    agents: Sequence[Agent],
    games: int,
    seed: int | np.random.SeedSequence,
    done: Callable[[int], Any] = lambda amount: None,
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None = None,
    match: int = 1,
    workers: Workers = HERE,
) -> np.ndarray:
    """Play games with one agent a seat, seats rotating from game to game.

    Agents that all have kernels (see `dice_envs.Agent`) play in one compiled loop, with the same results.

    Args:
        variant: the game.
        agents: one for each seat; in game k of match m agent a sits at seat (a + m + k) mod seats.
        games: number of all games, 1 to MOST_GAMES.
        seed: fixes every game.
        done: progress callback, called with the number of games that have ended since the last call.
        after_move: called as (states, games, shift) after each turn with the games that have moved, ended ones
            included: their states, their numbers, and the seat of agent 0.
        match: number of games played one after another at the same table; agents with a memory (see
            `dice_envs.Agent`) keep it from game to game.
        workers: play parts of the games, to which agents are pickled; with `after_move` all are played in this process.

    Returns:
        Returns of each agent, (games, agents) float64: the games of a match one after another, match after match.

    Raises:
        ValueError: too few or too many games, or games that do not make whole matches.
        AgentError: an agent's action is malformed or not legal.
    """
    check_match(games, match)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    seats, matches = variant.facts.num_seats, games // match
    seeds = [chunk.spawn(1 + seats) for chunk in sequence.spawn(math.ceil(matches / GAMES_AT_ONCE))]
    compiled = after_move is None and team_of(agents, variant) is not None
    # A network's rounding depends on the batch size, so pieces are the same wherever they are played.
    size, in_part = (GAMES_AT_ONCE, PIECES_IN_PART) if compiled else (GAMES_ASKED, 1)
    pieces = [
        Piece(first, min(size, matches - first), seeds[first // GAMES_AT_ONCE]) for first in range(0, matches, size)
    ]  # fmt: skip
    parts = [pieces[first : first + in_part] for first in range(0, len(pieces), in_part)]
    if after_move is not None:
        played = [_play(variant, agents, match, part, done, after_move) for part in parts]
    else:
        sizes = [match * sum(piece.number for piece in part) for part in parts]
        played = workers.run(_play, (variant, agents, match), [(part,) for part in parts], sizes, done)
    return np.concatenate(played).reshape(games, seats)


class Piece(NamedTuple):
    """Matches of one table that are played at once, all within one chunk of GAMES_AT_ONCE.

    Attributes:
        first: number of the first match.
        number: of matches.
        seeds: of the chunk: of its games, then of each agent.
    """

    first: int
    number: int
    seeds: list[np.random.SeedSequence]


def _play(
    variant: Variant,
    agents: Sequence[Agent],
    match: int,
    pieces: Sequence[Piece],
    done: Callable[[int], Any],
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None = None,
) -> np.ndarray:
    """Play pieces one after another; returns those of each agent, (matches, match, agents) float64."""
    seats = variant.facts.num_seats
    team = team_of(agents, variant) if after_move is None else None
    played = []
    for first, count, seeds in pieces:
        skipped = first % GAMES_AT_ONCE
        rng, *streams = (new_streams(seed, skipped + count)[skipped:] for seed in seeds)
        states = np.zeros(count, variant.game.state)
        states["rng"] = rng["rng"]
        shifts = (first + np.arange(count)) % seats
        if team is not None:
            played.append(play_games(variant, agents, team, states, streams, shifts, match))
            done(count * match)
        else:
            played.append(_ask_through(variant, agents, match, first, states, streams, shifts, done, after_move))
    return np.concatenate(played)


def _ask_through(
    variant: Variant,
    agents: Sequence[Agent],
    match: int,
    first: int,
    states: np.ndarray,
    streams: Sequence[np.ndarray],
    shifts: np.ndarray,
    done: Callable[[int], Any],
    after_move: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] | None,
) -> np.ndarray:
    """Play matches by asking the agents for each move; returns those of each agent, (matches, match, agents) float64."""
    seats, kernels, params, count = variant.facts.num_seats, variant.kernels, variant.params, len(states)
    returns = np.zeros((count, match, seats))
    memories = [fresh_memory(agent, count) for agent in agents]
    for place in range(match):  # the tables' random streams go on from game to game
        index = np.arange(count)
        kernels.deal(params, states, index)
        earned = np.zeros((count, seats))
        shift = (shifts + place) % seats
        while True:
            goes_on = states["seat"][index] != OVER
            done(len(index) - int(goes_on.sum()))
            index = index[goes_on]
            if not len(index):
                break
            # Movers are decided once a round: a game in which one of these agents has just moved waits for the next round.
            who = (states["seat"][index] - shift[index]) % seats
            for number, agent in enumerate(agents):
                mine = index[who == number]
                if len(mine):
                    actions = ask(agent, variant, states, mine, streams[number], memories[number])
                    kernels.play(params, states, mine, actions)
                    earned[mine] += states["rewards"][mine, :seats]
            if after_move is not None:
                after_move(states[index], (first + index) * match + place, shift[index])
        # Column a: returns of agent a, whatever its seat.
        returns[:, place] = np.take_along_axis(earned, (np.arange(seats) + shift[:, None]) % seats, axis=1)
    return returns


def check_match(games: int, match: int) -> None:
    """Raise ValueError unless `games` can be played in whole matches of `match` games."""
    check_range("games", games, 1, MOST_GAMES)
    check_range("match", match, 1, MOST_IN_MATCH)
    if games % match:
        raise ValueError(f"games must be a multiple of match={match}, so that all matches are whole, not {games}")


def parts_of(match: int) -> list[tuple[int, int]]:
    """Return the first and last game, from 1, of each part of a match; no parts if it is no longer than the first."""
    starts = [1, *(end + 1 for end in PARTS_END if end < match)]
    ends = [*(end for end in PARTS_END if end < match), match]
    return list(zip(starts, ends, strict=True)) if len(starts) > 1 else []
