"""The agent's memory of a match, and what rounds have shown: the opponent's decisions, and the rounds won."""

from __future__ import annotations

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


@kernel
def _is_new(state, memory):
    """Whether the round began after the last turn: then it has at most one bid, otherwise two or more."""
    return memory["open"] == 0 or state["num_bids"] <= 1


@kernel
def _replay(params, states, memories, positions, actions, rows):
    """Write the opponent's decisions in rounds that have ended since the last turn; return their number. In place.

    `positions` are the states before the decisions, with the opponent's dice as shown by the call; `rows` gives the game of
    each. A game's last round is unknown: its dice are no longer visible once the next game has been dealt.
    """
    found = 0
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        made = np.int64(memory["num_bids"])
        if memory["open"] == 0 or not _is_new(state, memory) or state["shown_bid"] == NO_BID or made == 0:
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


@kernel(allocates=False)
def _worth_of(worth, record, seat):
    """Return the value to the seat of the round in a state or a memory."""
    own = np.int64(record["dice"][seat])
    other = np.int64(record["dice"][1 - seat])
    return worth[own, other] if record["starter"] == seat else 1.0 - worth[other, own]


@kernel
def may_respond(states, memories, worth, out):
    """Write whether best responses may play the rounds that begin. In place."""
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        out[i] = memory["lost"] < MOST_LOST
        if state["dice"][0] == 1 and state["dice"][1] == 1:  # its end will be unseen and count as lost
            out[i] = out[i] and memory["credit"] >= _worth_of(worth, state, np.int64(state["seat"]))


@kernel
def settle(states, memories, worth):
    """Count the rounds played by best responses that have ended since the last turn. In place.

    `worth` (dice + 1, dice + 1) is the value of a round to its starter, by both players' dice, the starter's first.
    """
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        if memory["open"] == 0 or not _is_new(state, memory) or memory["response"] == 0:
            continue
        seat = np.int64(memory["seat"])
        own = np.int64(memory["dice"][seat])
        other = np.int64(memory["dice"][1 - seat])
        value = _worth_of(worth, memory, seat)
        if state["shown_bid"] == NO_BID and own == 1 and other == 1:  # its end is shown to nobody
            memory["credit"] -= value
            continue
        if state["shown_bid"] != NO_BID:
            won = 1.0 if state["loser"] != seat else 0.0
        else:  # the last round of a game
            won = 1.0 if other == 1 else 0.0
        memory["credit"] += won - value
        memory["lost"] = max(0.0, memory["lost"] + value - won)


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
    found = _replay(variant.params, states, memory, positions, actions, rows)
    return positions[:found], actions[:found], rows[:found]


@kernel
def open_rounds(params, states, memories, actions):
    """Record the rounds as they stand after the actions. In place."""
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        memory["open"] = 1
        memory["seat"] = state["seat"]
        memory["starter"] = state["starter"]
        made = np.int64(state["num_bids"])
        for seat in range(2):
            memory["dice"][seat] = state["dice"][seat]
            memory["bids_shown"][seat] = state["bids_shown"][seat]
            memory["bids_honest"][seat] = state["bids_honest"][seat]
        for k in range(made):  # with the next action at most one for each die, _MOST_BIDS
            memory["bids"][k] = state["bids"][k]
        if actions[i] != params.call:
            memory["bids"][made] = actions[i]
            made += 1
        memory["num_bids"] = made
