"""Exact best responses in one-die Liar's Dice (OpenSpiel's rules): how far any policy is from equilibrium.

Two players, one die each, one round, the highest face wild, every higher bid a raise. A history is the set of bids
made, so with six faces there are 2^12 of them, and 24,576 information sets with the mover's die.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dice_envs.agent import Turn, ask_probabilities
from dice_envs.dice import new_streams
from dice_envs.game import Variant, configure
from dice_envs.games.liars_dice import matching

__all__ = ["exploitability", "one_die_game", "policy_of"]


def one_die_game(num_faces: int = 6) -> Variant:
    """The game: OpenSpiel's `liars_dice` with one die each."""
    return configure("liars_dice", rules="openspiel", num_dice=1, num_faces=num_faces)


@functools.cache
def _information_states(num_faces: int) -> np.ndarray:
    """A state for each information set, (histories * faces,): history h, a bit for each bid made, and the mover's die."""
    variant = one_die_game(num_faces)
    bids = 2 * num_faces
    histories = np.repeat(np.arange(1 << bids), num_faces)
    states = np.zeros(len(histories), variant.game.state)
    everything = np.arange(len(states))
    variant.kernels.deal(variant.params, states, everything)
    dice = np.tile(np.eye(num_faces, dtype=np.int8), (1 << bids, 1))
    states["counts"][:, :, :num_faces] = dice[:, None]  # both seats' die: the other's is drawn again for who looks
    for bid in range(bids):
        made = everything[histories >> bid & 1 == 1]
        variant.kernels.play(variant.params, states, made, np.full(len(made), bid))
    return states


def policy_of(agent: Any, seed: int, num_faces: int = 6, at_once: int = 4096) -> np.ndarray:
    """The agent's chances at every information set, (histories, faces, actions) float64."""
    variant = one_die_game(num_faces)
    states = _information_states(num_faces)
    streams = new_streams(seed, len(states))
    parts = []
    for first in range(0, len(states), at_once):
        index = np.arange(first, min(first + at_once, len(states)))
        own = streams[index]
        parts.append(ask_probabilities(agent, Turn(variant, states, index, own)))
    return np.concatenate(parts).reshape(-1, num_faces, variant.facts.num_actions)


def exploitability(policy: np.ndarray) -> tuple[float, tuple[float, float]]:
    """How much a policy (histories, faces, actions) leaves to be won.

    Returns:
        The exploitability: the mean over the seats of what the best response to it wins (0 in equilibrium, as
        OpenSpiel counts it); and what the best response wins in seat 0 and in seat 1.
    """
    faces = policy.shape[1]
    variant = one_die_game(faces)
    call = bids = 2 * faces
    counts = np.eye(8, dtype=np.int8)[:faces, :]
    # holds[bid, x, y]: the bid holds when the two dice show faces x and y.
    holds = np.array(
        [
            [
                [matching(variant.params, counts[x] + counts[y], bid % faces) >= bid // faces + 1 for y in range(faces)]
                for x in range(faces)
            ]
            for bid in range(bids)
        ]
    )
    wins = tuple(_best_response(policy, holds, responder, bids, call) for responder in range(2))
    return (wins[0] + wins[1]) / 2, (wins[0], wins[1])


def _best_response(policy: np.ndarray, holds: np.ndarray, responder: int, bids: int, call: int) -> float:
    """What the responder wins from the policy in the other seat."""
    faces = policy.shape[1]
    histories = 1 << bids
    # Chance that the opponent, holding each face, has bid as the history says; later histories are larger numbers.
    reach = np.zeros((histories, faces))
    reach[0] = 1.0
    last = np.zeros(histories, np.int64)
    for history in range(1, histories):
        last[history] = history.bit_length() - 1
        before = history ^ (1 << last[history])
        mover = bin(before).count("1") & 1
        reach[history] = reach[before] * (policy[before, :, last[history]] if mover != responder else 1.0)
    values = np.zeros((histories, faces))  # to the responder by its own face, weighted with the opponent's reach
    for history in range(histories - 1, -1, -1):
        mover = bin(history).count("1") & 1
        nexts = [history | 1 << bid for bid in range(last[history] + 1 if history else 0, bids)]
        options = [values[after] for after in nexts]
        if history:
            # The caller wins if the bid fails.
            margin = (
                np.where(holds[last[history]], -1.0, 1.0) if mover == responder else np.where(holds[last[history]], 1.0, -1.0)
            )
            weights = reach[history] * (policy[history, :, call] if mover != responder else 1.0)
            options.append(margin @ weights)
        values[history] = np.max(options, axis=0) if mover == responder else np.sum(options, axis=0)
    return float(values[0].sum() / faces**2)
