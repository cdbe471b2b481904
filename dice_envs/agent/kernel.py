"""Agents' choices as kernels, so that games run without returning to Python for each move."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import mix
from dice_envs.core.game import Game, compile_random_action
from dice_envs.core.kernel import is_kernel, kernel, makes_arrays
from dice_envs.core.options import shown

NO_OPTIONS = np.zeros((), [("none", np.int8)])  # the options of an agent that has none
_ASIDE = np.uint64(0x51DEC0DE5EED0A6E)  # separates the dice of sampled states from the agent's own stream


class AgentKernel(NamedTuple):
    """An agent's choice as a kernel; returned by `kernel` of a `dice_envs.Agent`.

    Attributes:
        choose: the kernel `(params, options, state, stream) → action`. `params` is the NamedTuple that the game's `params`
            returns, `options` the record below, `state` the game in which the agent is to move, and `stream` the
            agent's own random stream for that game. The kernel draws from this stream alone and changes nothing else.
        options: () of a structured NumPy data type: numbers and arrays of a fixed shape that the kernel reads, such as
            `options["bluff"]`. Agents with other values share the machine code.
        reads_hidden: True: `state` is a sample, in which everything hidden from the mover is drawn again. False promises that
            the kernel reads nothing hidden, nor the state's `rng`; it then receives the game itself, which is faster.
        always_legal: True promises that every action is legal. Environments then keep no copy of their games to undo a step
            with; an illegal action is an error all the same, but games have moved.
    """

    choose: Callable[..., int]
    options: np.ndarray = NO_OPTIONS
    reads_hidden: bool = True
    always_legal: bool = False


class Chooser(NamedTuple):
    """The part of an AgentKernel that is compiled into game loops."""

    choose: Callable[..., int]
    reads_hidden: bool


@functools.cache
def compile_chooser(game: Game, choosers: tuple[Chooser, ...]) -> tuple[Callable[..., int], Any]:
    """Combine choosers into one kernel `(number, row, params, options, state, stream, sample) → action`; also return the
    decorator for kernels that call it.

    `number` selects the chooser and `row` its options in the array `options[number]`; `sample` (1,) of the game's states is
    overwritten.

    Raises:
        TypeError: a chooser is no kernel.
    """
    for chooser in choosers:
        if not is_kernel(chooser.choose):
            raise TypeError(
                f"an agent's kernel must be a function decorated with dice_envs.core.kernel.kernel, not {shown(chooser.choose)}"
            )
    decorate = functools.partial(kernel, allocates=any(makes_arrays(chooser.choose) for chooser in choosers))
    reroll_hidden = game.reroll_hidden
    choose, reads_hidden = choosers[0]
    others = compile_chooser(game, choosers[1:])[0] if len(choosers) > 1 else None

    @decorate(merge=True)
    def choose_by(number, row, params, options, state, stream, sample):
        if others is not None and number > 0:
            return others(number - 1, row, params, options[1:], state, stream, sample)
        if reads_hidden:
            sample[0] = state
            seen = sample[0]
            seen["rng"] = mix(stream["rng"] ^ _ASIDE)
            reroll_hidden(params, seen, np.int64(state["seat"]))
            return choose(params, options[0][row], seen, stream)
        return choose(params, options[0][row], state, stream)

    return choose_by, decorate


@functools.cache
def compile_choices(game: Game, chooser: Chooser) -> Callable[..., None]:
    """Return the loop of `Turn.choose`: `(params, options, states, index, streams, sample, out)`."""
    one, decorate = compile_chooser(game, (chooser,))

    @decorate
    def choose_all(params, options, states, index, streams, sample, out):
        for k in range(len(index)):
            out[k] = one(0, 0, params, (options,), states[index[k]], streams[k], sample)

    return choose_all


@functools.cache
def random_choice(game: Game) -> Callable[..., int]:
    """Return the kernel that chooses a uniformly random legal action of a game."""
    direct_action, from_mask = game.random_action, compile_random_action(game)

    @kernel(allocates=direct_action is None)
    def choose_at_random(params, options, state, stream):
        kept = state["rng"]  # the draw must not change the game's own stream
        state["rng"] = stream["rng"]
        if direct_action is None:
            action = from_mask(params, state, np.zeros(params.num_actions, np.int8))
        else:
            action = direct_action(params, state)
        stream["rng"] = state["rng"]
        state["rng"] = kept
        return action

    return choose_at_random


# --- policy networks as numbers ------------------------------------------------------------------------------------------

HUGE = 1e30  # replaces infinite logits


class Network(NamedTuple):
    """Dense layers from an observation to a logit for each action, with tanh between them.

    The policy is a softmax over the legal actions, without those that `floor` cuts off.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]  # (weights (out, in), biases (out,)) float32, first layer first
    floor: float  # an action whose probability is below `floor` times that of the likeliest one is not taken


def bound(logits: np.ndarray) -> None:
    """Replace logits that are not finite, since sums of finite weights may overflow. In place."""
    if not np.isfinite(logits).all():
        np.nan_to_num(logits, copy=False, nan=-HUGE, posinf=HUGE, neginf=-HUGE)


@kernel(allocates=False)
def sample_softmax(logits, mask, floor, uniform):
    """Draw a legal action from the softmax of the logits.

    Actions less likely than `floor` times the likeliest one are left out. `uniform` is a random number from 0 to 1.
    """
    top = -np.inf
    for action in range(len(logits)):
        if mask[action] != 0:
            top = max(top, logits[action])
    total = 0.0
    for action in range(len(logits)):
        if mask[action] != 0:
            weight = math.exp(logits[action] - top)
            if weight >= floor:
                total += weight
    remaining = uniform * total
    chosen = -1
    for action in range(len(logits)):
        if mask[action] != 0:
            weight = math.exp(logits[action] - top)
            if weight >= floor:
                chosen = action
                remaining -= weight
                if remaining < 0:
                    break
    return chosen
