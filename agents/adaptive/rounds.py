"""The agent's memory of a match, and what rounds have shown: the opponent's decisions, and the rounds won."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import MAX_DICE
from dice_envs.games.liars_dice.raises import MAX_FACES, NO_BID

from .beliefs import KINDS, PARTS

MOST_LOST = 10.0  # best responses end once they have won this many rounds fewer than optimal play would
_MOST_BIDS = 2 * MAX_DICE  # of a round by the article's rule: every bid raises the quantity, up to all dice

MEMORY = np.dtype(
    [
        ("likelihoods", np.float32, (KINDS,)),  # log-likelihoods of the kinds; the greatest of each part is 0
        ("decisions", np.int32, (len(PARTS),)),  # learned from, in each part
        ("rounds", np.int32),  # learned from
        ("response", np.int32),  # number of the response played in this round, plus 1; 0 for optimal play
        ("lost", np.float64),  # rounds that best responses have won fewer than the rounds' value, 0 or more
        ("credit", np.float64),  # rounds that they have won above that value, if they lost every round that ended unseen
        ("open", np.int8),  # 1: it has acted in a round whose end it has not seen; the fields below describe that round
        ("seat", np.int8),  # its own
        ("starter", np.int8),
        ("dice", np.int8, (2,)),  # of each seat
        ("bids_shown", np.int16, (2,)),  # of each seat, by calls before the round
        ("bids_honest", np.int16, (2,)),  # of these, bids on a face that the bidder held most of
        ("num_bids", np.int8),  # up to its last action, this included
        ("bids", np.int16, (_MOST_BIDS,)),  # undefined from num_bids on
    ]
)


def began(states: np.ndarray, memories: np.ndarray) -> np.ndarray:
    """Return in which games the round began after the last turn, (n,) bool: then it has at most one bid, else two or more."""
    return (memories["open"] == 0) | (states["num_bids"] <= 1)


@kernel
def _replay(params, states, memories, ended, positions, actions, rows):
    """Write the opponent's decisions in the rounds that have `ended`; return their number. In place.

    `positions` are the states before the decisions, with the opponent's dice as shown by the call; `rows` gives the game of
    each. A game's last round is unknown: its dice are no longer visible once the next game has been dealt.
    """
    found = 0
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        made = np.int64(memory["num_bids"])
        if not ended[i] or state["shown_bid"] == NO_BID or made == 0:
            continue
        seat = np.int64(state["seat"])
        mover = np.int64(memory["starter"])
        caller = mover if made % 2 == 0 else 1 - mover
        if memory["bids"][made - 1] != state["shown_bid"] or caller != state["caller"]:
            continue
        other = 1 - seat
        for k in range(made + 1):
            if mover == other:
                position = positions[found]
                position["starter"] = memory["starter"]
                position["seat"] = other
                position["bid"] = memory["bids"][k - 1] if k > 0 else NO_BID
                position["num_bids"] = k
                position["in_play"] = np.int64(memory["dice"][0]) + np.int64(memory["dice"][1])
                for each in range(2):
                    position["dice"][each] = memory["dice"][each]
                    position["in_round"][each] = 1
                    position["bids_shown"][each] = memory["bids_shown"][each]
                    position["bids_honest"][each] = memory["bids_honest"][each]
                for face in range(MAX_FACES):
                    position["counts"][other, face] = state["shown"][other, face]
                for before in range(k):
                    position["bids"][before] = memory["bids"][before]
                actions[found] = memory["bids"][k] if k < made else params.call
                rows[found] = i
                found += 1
            mover = 1 - mover
    return found


def _worth_of(worth: np.ndarray, records: np.ndarray, seats: np.ndarray) -> np.ndarray:
    """Return the values to these seats of the rounds in states or memories, (n,) float64."""
    rows = np.arange(len(records))
    own, other = (records["dice"][rows, each].astype(np.int64) for each in (seats, 1 - seats))
    return np.where(records["starter"] == seats, worth[own, other], 1.0 - worth[other, own])


def may_respond(states: np.ndarray, memories: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """Return whether best responses may play the rounds that begin, (n,) bool."""
    unseen = (states["dice"][:, :2] == 1).all(axis=1)  # their ends will be unseen and count as lost
    paid_for = memories["credit"] >= _worth_of(worth, states, states["seat"].astype(np.int64))
    return (memories["lost"] < MOST_LOST) & (paid_for | ~unseen)


def settle(states: np.ndarray, memories: np.ndarray, worth: np.ndarray) -> None:
    """Count the rounds played by best responses that have ended since the last turn. In place.

    `worth` (dice + 1, dice + 1) is the value of a round to its starter, by both players' dice, the starter's first.
    """
    ended = np.flatnonzero(began(states, memories) & (memories["open"] != 0) & (memories["response"] != 0))
    state, memory, rows = states[ended], memories[ended], np.arange(len(ended))
    seat = memory["seat"].astype(np.int64)
    value = _worth_of(worth, memory, seat)
    shown = state["shown_bid"] != NO_BID
    own, other = memory["dice"][rows, seat], memory["dice"][rows, 1 - seat]
    won = np.where(shown, state["loser"] != seat, other == 1).astype(np.float64)  # where no call is shown, a game has ended
    unseen = ~shown & (own == 1) & (other == 1)  # rounds whose end is shown to nobody
    memories["credit"][ended] += np.where(unseen, 0.0, won) - value
    memories["lost"][ended] = np.where(unseen, memory["lost"], np.maximum(0.0, memory["lost"] + value - won))


def decisions_of(variant: Variant, states: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the opponent's decisions in rounds that have ended since the last turns.

    Args:
        variant: the game.
        states: (n,) in which the agent is to move.
        memory: (n,) of MEMORY.

    Returns:
        (decisions,) of the game's states, before each decision, with the opponent's dice; (decisions,) int64 actions; and
        (decisions,) int64, the row of each in `states`.
    """
    most = len(states) * (_MOST_BIDS // 2 + 1)  # of a round the opponent makes every other bid, and may call
    positions = np.zeros(most, variant.game.state)
    actions, rows = np.empty(most, np.int64), np.empty(most, np.int64)
    ended = began(states, memory) & (memory["open"] != 0)
    found = _replay(variant.params, states, memory, ended, positions, actions, rows)
    return positions[:found], actions[:found], rows[:found]


def open_rounds(params: Any, states: np.ndarray, memories: np.ndarray, actions: np.ndarray) -> None:
    """Record the rounds as they stand after the actions. In place."""
    memories["open"] = 1
    memories["seat"], memories["starter"] = states["seat"], states["starter"]
    for name in ("dice", "bids_shown", "bids_honest"):
        memories[name] = states[name][:, :2]
    made = states["num_bids"].astype(np.int64)
    bids = np.flatnonzero(actions != params.call)
    memories["bids"] = states["bids"][:, :_MOST_BIDS]
    memories["bids"][bids, made[bids]] = actions[bids]  # in range: a round has at most one bid for each die
    memories["num_bids"] = made + (actions != params.call)
