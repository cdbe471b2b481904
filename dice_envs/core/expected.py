"""Rewards without the luck of the dice, for training."""

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
    """The game with another `play`: what a step pays is the mean over the roll that decides it, not what the roll brings.

    What follows is still drawn, with the same odds. So the mean of a seat's return is the same with any way of playing, but
    much of its luck is gone, and a learner needs fewer games. The game has `play_expected` for that, or it is made of `expect`.

    Raises:
        ValueError: the game does not say what a roll brings in the mean.
    """
    if game.play_expected is not None:
        return dataclasses.replace(game, play=game.play_expected)
    expect = game.expect
    if expect is None:
        raise ValueError(
            f"expected_rewards must be false: {game.name} has no kernel `expect` or `play_expected` to say what a roll is worth"
        )

    @kernel(tag=f"{game.deal.__module__}.{game.name}", allocates=False)
    def play(params, state, action):
        goes_on = expect(params, state, action, state["rewards"])
        if goes_on < 1.0 and uniform(state) >= goes_on:
            end_game(state, MAX_SEATS)

    return dataclasses.replace(game, play=play)
