"""Expected rewards in place of drawn ones, for training with less noise."""

from __future__ import annotations

import dataclasses
import functools

from dice_envs.core.dice import uniform
from dice_envs.core.game import Game
from dice_envs.core.kernel import kernel
from dice_envs.core.state import MAX_SEATS, end_game

__all__ = ["with_expected_rewards"]


@functools.cache
def with_expected_rewards(game: Game) -> Game:
    """The game with another `play`, which pays the expected reward over the roll that decides a step.

    The next position is still drawn, with the same probabilities. So every policy has the same expected return, with less
    variance, and a learner needs fewer games. `play` is the game's `play_expected`, or is made from its `expect`.

    Raises:
        ValueError: the game has neither.
    """
    if game.play_expected is not None:
        return dataclasses.replace(game, play=game.play_expected)
    expect = game.expect
    if expect is None:
        raise ValueError(f"expected_rewards must be false: {game.name} has no kernel `expect` or `play_expected`")

    @kernel(allocates=False)
    def play(params, state, action):
        goes_on = expect(params, state, action, state["rewards"])
        if goes_on < 1.0 and uniform(state) >= goes_on:
            end_game(state, MAX_SEATS)

    return dataclasses.replace(game, play=play)
