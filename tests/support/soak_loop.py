"""A compiled loop that plays most of the moves and checks the promises of a game's contract."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.batch import Batch
from dice_envs.core.dice import below, choose_from_mask, new_streams, next_u64
from dice_envs.core.game import OVER, Game, Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.loops import compile_check

__all__ = ["FAULTS", "ROUNDING", "Fault", "ensure", "play_compiled"]

LOOK = 8  # one move in LOOK is checked more closely
ROUNDING = 1e-4  # relative, in sums of rewards


class Fault(AssertionError):
    """A promise was broken."""


def ensure(holds: Any, what: str) -> None:
    """Raise Fault with the message `what` unless `holds`."""
    if not holds:
        raise Fault(what)


class _Promised(NamedTuple):
    """The facts that the loop checks, as numbers for a kernel."""

    num_seats: int
    max_steps: int
    min_return: float
    max_return: float
    zero_sum: bool


FAULTS = (
    "",
    "the seat to move does not exist",
    "a mask has entries other than 0 and 1, or none is legal",
    "an observation is not from 0 to 1",
    "what is hidden from a seat, drawn again, changes what it sees or may do",
    "an action is taken for legal and is not, or the other way round",
    "a game outlasts Facts.max_steps",
    "a return is not from Facts.min_return to Facts.max_return",
    "returns do not sum to 0",
)
NO_FAULT, NO_SEAT, NO_MASK, NOT_IN_RANGE, NOT_HIDDEN, NOT_TOLD, TOO_LONG, NO_RETURN, NO_SUM = range(len(FAULTS))


class _Space(NamedTuple):
    """The game in progress and scratch arrays, written by the loop."""

    states: np.ndarray  # (2,): the game, and a copy whose hidden parts are drawn again
    stream: np.ndarray  # (1,): random numbers of the checks and of the moves
    mask: np.ndarray  # (actions,) int8
    other_mask: np.ndarray  # (actions,) int8
    seen: np.ndarray  # (observation size,) float32
    seen_again: np.ndarray  # (observation size,) float32
    returns: np.ndarray  # (seats,) float64
    counts: np.ndarray  # (2,) int64: actions in this game, games that ended


@functools.cache
def compile_loop(game: Game) -> Callable[..., int]:
    """Compile `(params, promised, space, moves) → index in FAULTS`, which continues the game in `space`."""
    deal, legal, play, observe, reroll_hidden = game.deal, game.legal, game.play, game.observe, game.reroll_hidden
    may_play = compile_check(game)

    @kernel
    def look(params, promised, space):
        state, copy, stream = space.states[0], space.states[1], space.stream[0]
        who = np.int64(below(stream, promised.num_seats))
        space.seen[:] = 0
        observe(params, state, who, space.seen)
        for value in space.seen:
            if not 0.0 <= value <= 1.0:
                return NOT_IN_RANGE
        space.states[1] = space.states[0]
        copy["rng"] = next_u64(stream)
        reroll_hidden(params, copy, who)
        space.seen_again[:] = 0
        observe(params, copy, who, space.seen_again)
        for k in range(len(space.seen)):
            if space.seen[k] != space.seen_again[k]:
                return NOT_HIDDEN
        if copy["seat"] != state["seat"]:
            return NOT_HIDDEN
        if who == state["seat"]:
            space.other_mask[:] = 0
            legal(params, copy, space.other_mask)
            for a in range(len(space.mask)):
                if space.mask[a] != space.other_mask[a]:
                    return NOT_HIDDEN
        action = np.int64(below(stream, len(space.mask) + 4)) - 2
        is_legal = 0 <= action < len(space.mask) and space.mask[action] != 0
        if may_play(params, state, action, space.other_mask) != is_legal:
            return NOT_TOLD
        return NO_FAULT

    @kernel
    def loop(params, promised, space, moves):
        state = space.states[0]
        for _ in range(moves):
            if state["seat"] == OVER:
                deal(params, state)
                space.returns[:] = 0.0
                space.counts[0] = 0
            if not 0 <= state["seat"] < promised.num_seats:
                return NO_SEAT
            space.mask[:] = 0
            legal(params, state, space.mask)
            some = False
            for value in space.mask:
                if value != 0 and value != 1:
                    return NO_MASK
                some |= value == 1
            if not some:
                return NO_MASK
            if below(space.stream[0], LOOK) == 0:
                fault = look(params, promised, space)
                if fault != NO_FAULT:
                    return fault
            play(params, state, choose_from_mask(space.stream[0], space.mask))
            space.counts[0] += 1
            if space.counts[0] > promised.max_steps:
                return TOO_LONG
            total = 0.0
            for seat in range(promised.num_seats):
                space.returns[seat] += state["rewards"][seat]
                total += space.returns[seat]
            if state["seat"] == OVER:
                space.counts[1] += 1
                for seat in range(promised.num_seats):
                    low = promised.min_return - ROUNDING * (1.0 + abs(promised.min_return))
                    high = promised.max_return + ROUNDING * (1.0 + abs(promised.max_return))
                    if not low <= space.returns[seat] <= high:
                        return NO_RETURN
                if promised.zero_sum and abs(total) > ROUNDING * (1.0 + promised.max_return):
                    return NO_SUM
        return NO_FAULT

    compiled: Callable[..., int] = loop
    return compiled


def play_compiled(variant: Variant, moves: int, rng: np.random.Generator) -> int:
    """Play in the compiled loop; return the number of games that ended."""
    facts, size = variant.facts, variant.facts.observation_size
    space = _Space(
        states=Batch(variant, 2, int(rng.integers(2**32))).states,
        stream=new_streams(int(rng.integers(2**32)), 1),
        mask=np.zeros(facts.num_actions, np.int8),
        other_mask=np.zeros(facts.num_actions, np.int8),
        seen=np.zeros(size, np.float32),
        seen_again=np.zeros(size, np.float32),
        returns=np.zeros(facts.num_seats),
        counts=np.zeros(2, np.int64),
    )
    promised = _Promised(facts.num_seats, facts.max_steps, facts.min_return, facts.max_return, facts.zero_sum)
    fault = compile_loop(variant.game)(variant.params, promised, space, moves)
    ensure(fault == NO_FAULT, f"{FAULTS[fault]} (after {int(space.counts[0])} actions of game {int(space.counts[1]) + 1})")
    return int(space.counts[1])
