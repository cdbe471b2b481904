"""A game's kernels, compiled into loops over many states."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dice_envs.core.dice import choose_from_mask, next_u64, uniform
from dice_envs.core.kernel import kernel
from dice_envs.core.state import OVER

if TYPE_CHECKING:
    from dice_envs.core.game import Game

__all__ = ["Kernels", "compile_check", "compile_kernels", "compile_random_action", "compile_view"]


class Kernels(NamedTuple):
    """A game's compiled loops.

    `index` (m,) int64 lists the games of `states` to work on; row k of every other array belongs to game index[k].
    Outputs are written in place.
    """

    deal: Callable[..., None]  # (params, states, index)
    legal: Callable[..., None]  # (params, states, index, masks (m, actions) int8)
    play: Callable[..., None]  # (params, states, index, actions (m,)): the actions must be legal
    first_illegal: Callable[..., int]  # (params, states, index, actions (m,)): row of the first illegal action, or −1
    checked_play: Callable[..., int]  # as first_illegal; if all actions are legal, plays them
    observe: Callable[..., None]  # (params, states, index, seats (m,), out (m, size) float32)
    reroll: Callable[..., None]  # (params, states, index, seats, streams (m,), out (m,) states)
    view: Callable[..., None]  # (params, states, index, seats, out, masks): observe, and legal where the seat is to move
    # (params, states, index, mask (actions,) int8): 1, 2, 3 … random moves with probability 1/2, 1/4, 1/8 …
    wander: Callable[..., None]
    playouts: Callable[..., int]  # (params, states, steps): random play, dealing again after each end; returns games ended


@functools.cache
def compile_check(game: Game) -> Callable[..., bool]:
    """The kernel `(params, state, action, mask) → bool`: whether an integer is a legal action now.

    `mask` (actions,) int8 is overwritten.
    """
    legal, is_legal = game.legal, game.is_legal

    @kernel(allocates=False)
    def look_up(params, state, action, mask):
        if state["seat"] == OVER or action < 0 or action >= len(mask):
            return False
        for a in range(len(mask)):
            mask[a] = 0
        legal(params, state, mask)
        return mask[action] != 0

    @kernel(allocates=False)
    def check_directly(params, state, action, mask):
        return state["seat"] != OVER and action >= 0 and action < len(mask) and is_legal(params, state, action)

    chosen: Callable[..., bool] = look_up if is_legal is None else check_directly
    return chosen


@functools.cache
def compile_random_action(game: Game) -> Callable[..., int]:
    """The kernel `(params, state, mask) → a uniformly random legal action`, drawn from the state's own stream.

    `mask` (actions,) int8 is overwritten, unless the game has `random_action`.
    """
    legal, direct_action = game.legal, game.random_action

    @kernel(allocates=False)
    def draw_from_mask(params, state, mask):
        for a in range(len(mask)):
            mask[a] = 0
        legal(params, state, mask)
        return choose_from_mask(state, mask)

    @kernel(allocates=False)
    def draw_directly(params, state, mask):
        return direct_action(params, state)

    chosen: Callable[..., int] = draw_from_mask if direct_action is None else draw_directly
    return chosen


@functools.cache
def compile_view(game: Game) -> Callable[..., None]:
    """The kernel `(params, state, seat, observation, mask)`: writes what the seat sees, and its legal actions if it is to move.

    The kernel is compiled into the loop that calls it.
    """
    legal, observe = game.legal, game.observe

    @kernel(merge=True)
    def view(params, state, seat, observation, mask):
        for j in range(len(observation)):  # zero each row just before filling it, while it is in cache
            observation[j] = 0
        for a in range(len(mask)):
            mask[a] = 0
        observe(params, state, seat, observation)
        if state["seat"] == seat:
            legal(params, state, mask)

    compiled: Callable[..., None] = view
    return compiled


@functools.cache
def compile_kernels(game: Game) -> Kernels:
    """The loops over states for one game, compiled on first use and cached on disk."""
    deal, legal, play, observe, reroll_hidden = game.deal, game.legal, game.play, game.observe, game.reroll_hidden
    may_play, view = compile_check(game), compile_view(game)

    @kernel
    def deal_all(params, states, index):
        for i in index:
            deal(params, states[i])

    @kernel
    def legal_all(params, states, index, masks):
        for k in range(len(index)):
            for a in range(masks.shape[1]):
                masks[k, a] = 0
            state = states[index[k]]
            if state["seat"] != OVER:
                legal(params, state, masks[k])

    @kernel
    def first_illegal(params, states, index, actions):
        mask = np.zeros(params.num_actions, np.int8)
        for k in range(len(index)):
            if not may_play(params, states[index[k]], actions[k], mask):
                return k
        return -1

    @kernel
    def checked_play(params, states, index, actions):
        row = first_illegal(params, states, index, actions)
        if row < 0:
            for k in range(len(index)):
                play(params, states[index[k]], actions[k])
        return row

    @kernel
    def play_all(params, states, index, actions):
        for k in range(len(index)):
            play(params, states[index[k]], actions[k])

    @kernel
    def observe_all(params, states, index, seats, out):
        out[:] = 0
        for k in range(len(index)):
            observe(params, states[index[k]], np.int64(seats[k]), out[k])

    @kernel
    def reroll_all(params, states, index, seats, streams, out):
        for k in range(len(index)):
            out[k] = states[index[k]]
            out[k]["rng"] = next_u64(streams[k])
            reroll_hidden(params, out[k], np.int64(seats[k]))

    @kernel
    def view_all(params, states, index, seats, out, masks):
        for k in range(len(index)):
            view(params, states[index[k]], np.int64(seats[k]), out[k], masks[k])

    return Kernels(
        deal_all,
        legal_all,
        play_all,
        first_illegal,
        checked_play,
        observe_all,
        reroll_all,
        view_all,
        *_compile_random_play(game),
    )


def _compile_random_play(game: Game) -> tuple[Callable[..., None], Callable[..., int]]:
    """The loops that play at random: `wander` and `playouts` of `Kernels`."""
    deal, play, random_action = game.deal, game.play, compile_random_action(game)

    @kernel(allocates=False)
    def wander(params, states, index, mask):
        for i in index:
            state = states[i]
            while state["seat"] != OVER:
                play(params, state, random_action(params, state, mask))
                if uniform(state) < 0.5:
                    break

    @kernel
    def playouts(params, states, steps):
        finished = 0
        mask = np.zeros(params.num_actions, np.int8)
        for i in range(len(states)):
            state = states[i]
            for _ in range(steps):
                if state["seat"] == OVER:
                    finished += 1
                    deal(params, state)
                play(params, state, random_action(params, state, mask))
        return finished

    return wander, playouts
