"""A player of Liar's Dice that learns in a match how its opponent bluffs and calls, and plays against that.

It begins with optimal play, from which nobody wins more than the game's value. When a round is over and its dice have been
shown, it asks how likely each kind of player would have decided as the opponent did with those dice. Bayes' rule adds
this up over the match. Once it is sure enough that the opponent plays the numbers in one of the ways it knows, it plays
the exact best response to that way, with the share of bluffs that it has learned.

A best response is chosen before a round and played to the round's end, because nothing is shown before that. An opponent
may be another than it seems. So the rounds that best responses win are compared with what optimal play would win at
least, and after too many lost ones it plays optimally for the rest of the match.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dice_envs.agent import Turn, ask_probabilities, draw_actions
from dice_envs.dice import STREAM
from dice_envs.exact.liars_dice import check_measurable
from dice_envs.exact.liars_dice_responses import NOWHERE, Responses, responses_to
from dice_envs.exact.liars_dice_solution import LEAST_PRECISION, Solution, check_two_players
from dice_envs.game import Variant, check_range
from dice_envs.games.liars_dice import MAX_DICE, MAX_FACES, NO_BID, count_raises
from dice_envs.kernel import kernel

from .base import OfOneGame
from .liars_dice import Nash, Numbers

__all__ = ["AGENTS", "KINDS", "LEVELS", "Adaptive", "decisions_of", "log_likelihoods", "posterior"]


class Style(NamedTuple):
    """A way of playing the numbers."""

    parameters: dict[str, Any]  # of the agent `numbers`, but for its share of bluffs
    answered: tuple[float, ...]  # shares of bluffs to which there are best responses; the nearest is played


# Where its calls give it away, as those of the article's program do, the share of bluffs hardly matters.
STYLES = (Style({}, (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)), Style({"preset": "article"}, (0.5,)))
LEVELS = np.linspace(0, 1, 11)  # shares of bluffs that it tells apart
KINDS = len(STYLES) * len(LEVELS) + 2  # of players: each style with each share of bluffs, optimal play, and unknown
OPTIMAL, UNKNOWN = KINDS - 2, KINDS - 1

# Each kind does something else now and then, anything legal with equal chances. So one odd decision rules nothing out, and
# a player who does otherwise than its kind in more than about one decision in five is taken for unknown.
SLIP, UNKNOWN_SLIP = 0.05, 0.5
UNKNOWN_LEVEL = 0.5  # bluffs of the unknown player, as far as it plays the numbers
FAR = 30.0  # log-likelihoods fall at most so far behind the greatest: whoever changes its ways is found out soon
MOST_LOST = 10.0  # rounds that best responses may win fewer than optimal play would: then it plays none any more
MOST_BIDS = 2 * MAX_DICE  # of a round by the article's rule
SAY_EVERY = 5.0  # seconds between two lines of progress

MEMORY = np.dtype(
    [
        ("likelihoods", np.float64, (KINDS,)),  # logarithms, less the greatest of them
        ("rounds", np.int32),  # rounds that it has learned from
        ("response", np.int16),  # played in this round, plus 1; 0 for optimal play
        ("lost", np.float64),  # rounds that best responses have won fewer than the value of the rounds, 0 or more
        ("open", np.int8),  # 1: it has acted in a round of which it has not seen the end
        ("seat", np.int8),  # its own in that round
        ("starter", np.int8),  # of that round
        ("dice", np.int8, (2,)),  # of each seat in that round
        ("num_bids", np.int8),  # up to its last turn, its own action there included
        ("bids", np.int16, (MOST_BIDS,)),  # entries from num_bids are undefined
    ]
)


# --- what a finished round has shown ----------------------------------------------------------------------------------


@kernel
def _is_new(state, memory):
    """Whether the round is another one than at the last turn. Then it has one bid at most; otherwise two or more."""
    return memory["open"] == 0 or state["num_bids"] <= 1


@kernel
def _replay(params, states, memories, positions, actions, rows):
    """Write the opponent's decisions in the rounds that have ended since the last turn; returns how many. In place.

    `positions` are the states before them, with the opponent's dice as the call has shown them, and `rows` says whose they
    are. Nothing is known of a game's last round: its dice are no longer seen when the next game has been dealt.
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
                for face in range(MAX_FACES):
                    position["counts"][other, face] = state["shown"][other, face]
                for before in range(k):
                    position["bids"][before] = memory["bids"][before]
                actions[found] = memory["bids"][k] if k < made else params.call
                rows[found] = i
                found += 1
            mover = 1 - mover
    return found


@kernel
def _settle(states, memories, worth):
    """Count the rounds that have been played by best responses and have ended since the last turn. In place.

    `worth` (dice + 1, dice + 1) is what a round is worth to its starter, by both players' dice, the starter's first.
    """
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        if memory["open"] == 0 or not _is_new(state, memory) or memory["response"] == 0:
            continue
        seat = np.int64(memory["seat"])
        own = np.int64(memory["dice"][seat])
        other = np.int64(memory["dice"][1 - seat])
        if state["shown_bid"] != NO_BID:
            won = 1.0 if state["loser"] != seat else 0.0
        elif own == 1 and other == 1:  # the last round of a game, which nobody tells the end of
            continue
        else:
            won = 1.0 if other == 1 else 0.0
        value = worth[own, other] if memory["starter"] == seat else 1.0 - worth[other, own]
        memory["lost"] = max(0.0, memory["lost"] + value - won)


def decisions_of(variant: Variant, states: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The opponent's decisions in rounds that have ended since the last turns.

    Args:
        variant: the game.
        states: (n,) at which the agent is to move.
        memory: (n,) of MEMORY.

    Returns:
        (decisions,) of the game's states, before each decision, with the opponent's dice; (decisions,) int64 actions; and
        (decisions,) int64, the row that each belongs to.
    """
    most = len(states) * (MOST_BIDS // 2 + 1)
    positions = np.zeros(most, variant.game.state)
    actions, rows = np.empty(most, np.int64), np.empty(most, np.int64)
    found = _replay(variant.params, states, memory, positions, actions, rows)
    return positions[:found], actions[:found], rows[:found]


def _chances(agent: Any, variant: Variant, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """How likely an agent takes the actions, (n,) float64."""
    everywhere = np.arange(len(positions))
    turn = Turn(variant, positions, everywhere, np.zeros(len(positions), STREAM))
    found: np.ndarray = ask_probabilities(agent, turn)[everywhere, actions]
    return found


@kernel
def _count_legal(params, states, out):
    for i in range(len(states)):
        out[i] = count_raises(params, states[i]) + (states[i]["bid"] != NO_BID)


def log_likelihoods(variant: Variant, solution: Solution, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The logarithm of how likely each kind of player takes each action, (n, KINDS) float64.

    A numbers agent's chances are linear in its share of bluffs, so two of them tell about all.
    """
    legal = np.empty(len(positions))
    _count_legal(variant.params, positions, legal)
    found = np.empty((len(positions), KINDS))
    for number, style in enumerate(STYLES):
        ends = [Numbers(bluff=level, **style.parameters) for level in (0.0, 1.0)]
        honest, bluffing = (_chances(agent, variant, positions, actions) for agent in ends)
        own = slice(number * len(LEVELS), (number + 1) * len(LEVELS))
        found[:, own] = honest[:, None] + (bluffing - honest)[:, None] * LEVELS
        if number == 0:
            found[:, UNKNOWN] = honest + (bluffing - honest) * UNKNOWN_LEVEL
    found[:, OPTIMAL] = solution.probabilities(positions)[np.arange(len(positions)), actions]
    slips = np.full(KINDS, SLIP)
    slips[UNKNOWN] = UNKNOWN_SLIP
    logs: np.ndarray = np.log(found * (1 - slips) + slips / legal[:, None])
    return logs


# --- what it believes and does ------------------------------------------------------------------------------------------


def posterior(likelihoods: np.ndarray) -> np.ndarray:
    """How likely the opponent is of each kind, (n, KINDS) float64.

    Before a match the numbers, optimal play and anything else are equally likely; so are all styles and shares of bluffs.
    """
    prior = np.full(KINDS, 1.0 / 3.0)
    prior[:OPTIMAL] /= OPTIMAL
    weights = prior * np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
    found: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return found


def _best_responses(memory: np.ndarray, caution: float) -> np.ndarray:
    """The number of the response to play plus 1, or 0 for optimal play, (n,) int64."""
    beliefs = posterior(memory["likelihoods"])
    known = beliefs[:, :OPTIMAL].reshape(len(beliefs), len(STYLES), len(LEVELS))
    by_style = known.sum(axis=2)
    style = by_style.argmax(axis=1)
    rows = np.arange(len(beliefs))
    level = known[rows, style] @ LEVELS / np.maximum(by_style[rows, style], 1e-300)
    sure = (by_style.sum(axis=1) >= caution) & (memory["lost"] < MOST_LOST)
    chosen = np.zeros(len(beliefs), np.int64)
    before = 1
    for number, each in enumerate(STYLES):
        nearest = np.abs(level[:, None] - np.array(each.answered)).argmin(axis=1)
        chosen = np.where(sure & (style == number), before + nearest, chosen)
        before += len(each.answered)
    return chosen


@kernel
def _open_rounds(params, states, memories, actions):
    """Note the rounds as they stand after the actions. In place."""
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        memory["open"] = 1
        memory["seat"] = state["seat"]
        memory["starter"] = state["starter"]
        made = np.int64(state["num_bids"])
        for seat in range(2):
            memory["dice"][seat] = state["dice"][seat]
        for k in range(made):
            memory["bids"][k] = state["bids"][k]
        if actions[i] != params.call:
            memory["bids"][made] = actions[i]
            made += 1
        memory["num_bids"] = made


@functools.lru_cache(maxsize=4)
def _responses(variant: Variant) -> Responses:
    """The best responses that are kept, or found first with lines of progress on standard error."""
    agents = [Numbers(bluff=level, **style.parameters) for style in STYLES for level in style.answered]
    told = time.monotonic()

    def say(number: int) -> None:
        nonlocal told
        if time.monotonic() - told >= SAY_EVERY:
            told = time.monotonic()
            print(f"adaptive: finding best response {number + 1} of {len(agents)}", file=sys.stderr, flush=True)

    return responses_to(variant, agents, done=say)


@functools.lru_cache(maxsize=4)
def _worth(variant: Variant, precision: float) -> np.ndarray:
    """What each round is worth to its starter under optimal play, by both players' dice, the starter's first."""
    most = max(variant.options.dice_per_seat) + 1
    worth = np.full((most, most), np.nan)
    for dice, solved in Nash(precision).solution(variant).rounds.items():
        worth[dice] = solved.value
    return worth


@dataclasses.dataclass(frozen=True)
class Adaptive(OfOneGame):
    """Begins with optimal play, learns in a match how its opponent bluffs and calls, and then punishes it.

    Whenever a call has shown the opponent's dice, Bayes' rule weighs the kinds of player that it knows: the numbers agent
    with any share of bluffs, by the article's text or its program, optimal play, and anything else. Once it is sure of the
    numbers it plays the exact best response; against all others it stays with optimal play, and it goes back to that for
    the rest of the match once best responses have lost ten rounds more than optimal play would have. It learns in matches
    only: `arena liars_dice adaptive numbers --match 200 --games 20000`. Two players, five dice at most, the article's rule.

    The first time it finds its best responses, which takes half a minute with five dice each, and keeps them. It keeps
    and solves optimal play as `nash` does.

    Attributes:
        precision: of the optimal play, as for `nash`.
        caution: how sure it must be before it leaves optimal play, 0 to 1.
    """

    plays = "liars_dice"
    remembers: ClassVar[np.dtype[Any]] = MEMORY

    precision: float = 1e-3
    caution: float = 0.9

    def __post_init__(self) -> None:
        check_range("precision", self.precision, LEAST_PRECISION, 1, whole=False)
        check_range("caution", self.caution, 0, 1, whole=False)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or a variant in which there is nothing to learn or that is too large."""
        super().check_variant(variant)
        options = variant.options
        check_two_players(options, "adaptive play")
        if options.rounds != "elimination":
            raise ValueError(
                f"rounds must be 'elimination' for adaptive play, not {options.rounds!r}: no dice are seen after its only call"
            )
        if options.raise_rule != "quantity":
            raise ValueError(f"raise_rule must be 'quantity' for adaptive play, not {options.raise_rule!r}")
        check_measurable(variant, "adaptive play")

    def _prepared(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """The memories with all that has been seen since, and for each game an action, or NOWHERE for optimal play."""
        self.check(turn)
        variant, states = turn.variant, turn.states
        memory = np.zeros(len(turn), MEMORY) if turn.memory is None else turn.memory.copy()
        new = (memory["open"] == 0) | (states["num_bids"] <= 1)
        _settle(states, memory, _worth(variant, self.precision))
        positions, actions, rows = decisions_of(variant, states, memory)
        if len(rows):
            logs = log_likelihoods(variant, self._solution(variant), positions, actions)
            added = memory["likelihoods"]
            np.add.at(added, rows, logs)
            learned = np.unique(rows)
            memory["rounds"][learned] += 1
            added[learned] -= added[learned].max(axis=1, keepdims=True)
            added[learned] = np.maximum(added[learned], -FAR)
        memory["response"][new] = _best_responses(memory[new], self.caution)
        chosen = np.full(len(turn), NOWHERE, np.int64)
        punished = np.flatnonzero(memory["response"] > 0)
        if len(punished):
            which = memory["response"][punished].astype(np.int64) - 1
            chosen[punished] = _responses(variant).actions(which, states[punished])
        return memory, chosen

    def _solution(self, variant: Variant) -> Solution:
        return Nash(self.precision).solution(variant)

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64. `turn.memory` is modified in place."""
        memory, chosen = self._prepared(turn)
        optimal = np.flatnonzero(chosen == NOWHERE)
        if len(optimal):
            streams = turn.streams[optimal]
            chosen[optimal] = draw_actions(streams, self._solution(turn.variant).probabilities(turn.states[optimal]))
            turn.streams[optimal] = streams
        _open_rounds(turn.params, turn.states, memory, chosen)
        if turn.memory is not None:
            turn.memory[:] = memory
        return chosen

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        chosen = self._prepared(turn)[1]
        chances = np.zeros((len(turn), turn.variant.facts.num_actions))
        fixed, optimal = np.flatnonzero(chosen != NOWHERE), np.flatnonzero(chosen == NOWHERE)
        chances[fixed, chosen[fixed]] = 1.0
        if len(optimal):
            chances[optimal] = self._solution(turn.variant).probabilities(turn.states[optimal])
        return chances


AGENTS = {"adaptive": Adaptive}
