"""Odds of a choice: chances that a game's module computes, or the mean returns of random play."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent.kernel import NO_OPTIONS, random_choice
from dice_envs.core.batch import check_record
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Game, Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range, check_seed
from dice_envs.exact.contract import ActionValues, GameOdds, offered
from dice_envs.exact.intervals import half_width

SAMPLE = 2_000  # states drawn by default
LEAST_SAMPLE = 100
_MOST_GAMES = 1_000_000  # of a sample
MOST_MOVES = 20_000_000  # that the default sample of one state may take


def odds(variant: Variant, state: Any, seed: int = 0, sample: int | None = None) -> ActionValues:
    """Return chances that inform the choice of each legal action: the game's own, or else those of `random_odds`.

    Liar's Dice has its own: how likely each bid holds.
    """
    own: GameOdds | None = offered(variant.game, "odds")
    if own is None:
        return random_odds(variant, state, seed, sample)
    check_record(variant, state)
    return own(variant, state)


def random_odds(
    variant: Variant, state: Any, seed: int = 0, sample: int | None = None, most_moves: int = MOST_MOVES
) -> ActionValues:
    """Return the mean return of the seat to move after each legal action if all then play at random, in any game.

    All that the seat cannot know is drawn anew for each game of the sample. Every action is tried in the same games.

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        seed: fixes all that is drawn.
        sample: games for each action; None: SAMPLE, fewer where games can be very long.
        most_moves: limit on the moves of the default sample, if all games have full length. It has LEAST_SAMPLE games anyway.

    Raises:
        ValueError: `state` is no such record, the game is over, or wrong arguments.
    """
    check_record(variant, state)
    seed = check_seed(seed)
    kernels, facts = variant.kernels, variant.facts
    mask = np.empty((1, facts.num_actions), np.int8)
    at = np.zeros(1, np.int64)
    states = np.array([state], variant.game.state)
    kernels.legal(variant.params, states, at, mask)
    legal = np.flatnonzero(mask[0])
    if sample is None:
        sample = min(SAMPLE, max(LEAST_SAMPLE, most_moves // (facts.max_steps * len(legal))))
    check_range("sample", sample, 2, _MOST_GAMES)
    index, seat = np.zeros(sample, np.int64), int(state["seat"])
    drawn = np.empty(sample, variant.game.state)
    kernels.reroll(variant.params, states, index, np.full(sample, seat), new_streams(seed, sample), drawn)
    streams = new_streams(np.random.SeedSequence(seed, spawn_key=(1,)), sample)
    finish = _compile_finish(variant.game)
    values, errors = np.full(facts.num_actions, np.nan), np.full(facts.num_actions, np.nan)
    for action in legal:
        earned = np.zeros(sample)
        finish(variant.params, drawn.copy(), action, seat, streams.copy(), earned)
        values[action] = earned.mean()
        errors[action] = half_width(earned, facts.min_return, facts.max_return)
    note = f"mean return if all play at random afterwards: {sample:,} games for each action, 95 % intervals, seed {seed}"
    return ActionValues(values, "return", note, errors=errors)


@functools.cache
def _compile_finish(game: Game) -> Callable[..., None]:
    """Compile `(params, states, action, seat, streams, earned)`: it plays the action in each state, then at random to the end.

    Writes what the seat earns. States and streams are overwritten.
    """
    play, choose = game.play, random_choice(game)
    none = np.atleast_1d(NO_OPTIONS)

    @kernel
    def finish(params, options, states, action, seat, streams, earned):
        for i in range(len(states)):
            state = states[i]
            play(params, state, action)
            earned[i] = state["rewards"][seat]
            while state["seat"] != OVER:
                play(params, state, choose(params, options[0], state, streams[i]))
                earned[i] += state["rewards"][seat]

    def run(params: Any, states: np.ndarray, action: int, seat: int, streams: np.ndarray, earned: np.ndarray) -> None:
        finish(params, none, states, action, seat, streams, earned)

    return run
