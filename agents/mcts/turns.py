"""One turn of a simulation: kernels `(params, settings, scratch, weight, run, tree) → the simulation's new weight`.

A turn plays the game `scratch.worlds[0]` and adds each seat's rewards to `run["earned"]`, times the simulation's weight: the
probability that a simulation which takes expectations reaches this turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dice_envs.core.dice import choose_weighted
from dice_envs.core.game import Game

__all__ = ["Scratch", "Turns", "compile_turn"]

# "sampled": rolls are drawn. "expected": the game's `expect` takes the expectation over a roll. "averaged": the expectation is
# also taken over the simultaneous choice of a uniformly random opponent.
Turns: TypeAlias = Literal["sampled", "expected", "averaged"]


class Scratch(NamedTuple):
    """Work space of one thread."""

    worlds: np.ndarray  # (actions + 1,) of the game's states: the simulation's, and its copies in an averaged turn
    chances: np.ndarray  # (actions,) float64, of these copies
    totals: np.ndarray  # (actions,) float64, the searcher's returns by its first move


def compile_turn(game: Game, turns: Turns, decide: Callable[..., int], compiled: Callable[..., Any]) -> Callable[..., float]:
    """Return the kernel of one turn.

    Args:
        game: must have `expect`, unless turns are "sampled".
        turns: how a turn is played.
        decide: the kernel `(params, settings, state, weight, run, tree) → action` of the seat to move.
        compiled: the decorator for kernels of this search.
    """
    if turns == "sampled":
        return _compile_sampled(game, decide, compiled)
    if turns == "expected":
        return _compile_expected(game, decide, compiled)
    return _compile_averaged(game, decide, compiled)


def _compile_sampled(game: Game, decide: Callable[..., int], compiled: Callable[..., Any]) -> Callable[..., float]:
    play = game.play

    @compiled(inline=True)
    def sampled_turn(params, settings, scratch, weight, run, tree):
        """Play the chosen action. In place."""
        state = scratch.worlds[0]
        play(params, state, decide(params, settings, state, weight, run, tree))
        for seat in range(settings.seats):
            run["earned"][seat] += weight * state["rewards"][seat]
        return weight

    turn: Callable[..., float] = sampled_turn
    return turn


def _compile_advance(game: Game, compiled: Callable[..., Any]) -> Callable[..., float]:
    expect: Any = game.expect

    @compiled(inline=True)
    def advance(params, settings, state, action, share, run):
        """Play in expectation, and add each seat's rewards times `share`. Return the probability that the game continues, in
        the state that is left. In place."""
        goes_on = expect(params, state, action, run["rewards"])
        for seat in range(settings.seats):
            run["earned"][seat] += share * run["rewards"][seat]
        return goes_on

    kept: Callable[..., float] = advance
    return kept


def _compile_expected(game: Game, decide: Callable[..., int], compiled: Callable[..., Any]) -> Callable[..., float]:
    advance = _compile_advance(game, compiled)

    @compiled(inline=True)
    def expected_turn(params, settings, scratch, weight, run, tree):
        """Play the chosen action, taking the expectation over the roll. In place."""
        state = scratch.worlds[0]
        action = decide(params, settings, state, weight, run, tree)
        return weight * advance(params, settings, state, action, weight, run)

    turn: Callable[..., float] = expected_turn
    return turn


def _compile_averaged(game: Game, decide: Callable[..., int], compiled: Callable[..., Any]) -> Callable[..., float]:
    legal = game.legal
    advance = _compile_advance(game, compiled)

    @compiled
    def imagine(params, settings, scratch, weight, run, mask):
        """Make a world of each choice of the opponent, who moves in `worlds[1]`. Return their number. In place."""
        worlds, chances = scratch.worlds, scratch.chances
        worlds[0] = worlds[1]
        start = chances[0]
        mask[:] = 0
        legal(params, worlds[0], mask)
        count = 0
        for a in range(len(mask)):
            count += mask[a] != 0
        k = 0
        for a in range(len(mask)):
            if mask[a] != 0:
                worlds[1 + k] = worlds[0]
                share = start / count
                chances[k] = share * advance(params, settings, worlds[1 + k], a, weight * share, run)
                k += 1
        return count

    @compiled
    def averaged_turn(params, settings, scratch, weight, run, tree):
        """Play a turn in which two seats choose at once, in expectation over a uniformly random opponent and the roll.

        Each choice of the opponent makes a world. The searcher cannot tell them apart, so it chooses once for all. The
        state becomes one of the worlds, drawn in proportion to its probability of continuing. In place.
        """
        worlds, chances = scratch.worlds, scratch.chances
        worlds[1] = worlds[0]
        count = 1
        chances[0] = 1.0
        for _ in range(2):
            if worlds[1]["seat"] == run["searcher"]:
                action = decide(params, settings, worlds[1], weight, run, tree)
                for k in range(count):
                    chances[k] *= advance(params, settings, worlds[1 + k], action, weight * chances[k], run)
            else:
                count = imagine(params, settings, scratch, weight, run, tree.mask)
        total = 0.0
        for k in range(count):
            total += chances[k]
        worlds[0] = worlds[1 + max(0, choose_weighted(run, chances, count))]  # 0: all games are over, so any will do
        return weight * total

    turn: Callable[..., float] = averaged_turn
    return turn
