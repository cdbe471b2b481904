"""Games at one table: an agent for each seat, seats rotating, one game or a match at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dice_envs.agent import Agent
from dice_envs.agent.compiled import team_of
from dice_envs.agent.matches import (
    GAMES_ASKED,
    GAMES_AT_ONCE,
    MOST_GAMES,
    Piece,
    Watch,
    check_match,
    pieces_of,
    play_pieces,
)
from dice_envs.core.game import Variant
from dice_envs.core.options import check_seed
from dice_envs.experiments.jobs.workers import HERE, Workers

__all__ = ["MOST_GAMES", "check_match", "parts_of", "play_table"]

PIECES_IN_PART = 64  # so that a part of compiled games takes a tenth of a second or more
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
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(check_seed(seed))
    seats = variant.facts.num_seats
    compiled = after_move is None and team_of(agents, variant) is not None
    # A network's rounding depends on the batch size, so pieces are the same wherever they are played.
    size, in_part = (GAMES_AT_ONCE, PIECES_IN_PART) if compiled else (GAMES_ASKED, 1)
    pieces = pieces_of(games // match, seats, sequence, size)
    if after_move is not None:
        played = [play_pieces(variant, agents, match, pieces, done, Watch(after_move=after_move))]
    else:
        parts = [pieces[first : first + in_part] for first in range(0, len(pieces), in_part)]
        sizes = [match * sum(piece.number for piece in part) for part in parts]
        played = workers.run(_play, (variant, agents, match), [(part,) for part in parts], sizes, done)
    return np.concatenate(played).reshape(games, seats)


def _play(
    variant: Variant, agents: Sequence[Agent], match: int, pieces: Sequence[Piece], done: Callable[[int], Any]
) -> np.ndarray:
    """Play a part of the games; see `play_pieces`."""
    return play_pieces(variant, agents, match, pieces, done)


def parts_of(match: int) -> list[tuple[int, int]]:
    """Return the first and last game, from 1, of each part of a match; no parts if it is no longer than the first."""
    starts = [1, *(end + 1 for end in PARTS_END if end < match)]
    ends = [*(end for end in PARTS_END if end < match), match]
    return list(zip(starts, ends, strict=True)) if len(starts) > 1 else []
