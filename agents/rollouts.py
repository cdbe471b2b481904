"""How search plays on from a new node: kernels `(params, state, mask) → a legal action` for one game or for all.

A rollout sees the whole state of a simulation, hidden dice included; it should look at the mover's own alone.
"""

from __future__ import annotations

import functools
from typing import Any

from dice_envs.dice import below, choose_from_mask, uniform
from dice_envs.game import Game, shown
from dice_envs.games import fatestones, liars_dice
from dice_envs.kernel import kernel

__all__ = ["RANDOM", "ROLLOUTS", "rollout_of"]

RANDOM = "random"


@kernel
def _numbers(params, state, mask):
    """Liar's Dice: call with the chance that the bid fails, else the least raise on a random face."""
    raises = liars_dice.count_raises(params, state)
    bid = state["bid"]
    if raises == 0 or (
        bid != liars_dice.NO_BID and uniform(state) >= liars_dice.chance_bid_holds(params, state, state["seat"])
    ):
        return params.call
    least = 1  # the least raises, up to where a face comes again
    first = liars_dice.face_of(params, liars_dice.nth_raise(params, state, 0))
    while least < raises and liars_dice.face_of(params, liars_dice.nth_raise(params, state, least)) != first:
        least += 1
    return liars_dice.nth_raise(params, state, below(state, least))


@kernel
def _strongest(params, state, mask):
    """FateStones: the own die that wins most, less what it loses, against the opponent's dice."""
    seat = state["seat"]
    own, other = state["hands"][seat], state["hands"][1 - seat]
    best = 0
    best_margin = -1_000_000
    for i in range(state["left"]):
        margin = 0
        for j in range(state["left"]):
            wins, ties = fatestones.duel(own[i], other[j])
            margin += 2 * wins + ties
        if margin > best_margin:
            best = i
            best_margin = margin
    return best


ROLLOUTS: dict[str, tuple[str, Any]] = {  # name → (game, kernel)
    "numbers": ("liars_dice", _numbers),
    "strongest": ("fatestones", _strongest),
}


def rollout_of(game: Game, name: str) -> Any:
    """The rollout kernel of that name. ValueError where the game has none of that name."""
    known = [RANDOM, *(known for known, (plays, _) in ROLLOUTS.items() if plays == game.name)]
    if name not in known:
        raise ValueError(f"rollout must be one of {', '.join(map(repr, known))} for {game.name}, not {shown(name)}")
    return _random(game) if name == RANDOM else ROLLOUTS[name][1]


@functools.cache
def _random(game: Game) -> Any:
    compiled = functools.partial(kernel, tag=f"{game.deal.__module__}.{game.name}")
    legal, direct_action = game.legal, game.random_action
    if direct_action is not None:

        @compiled
        def random_action(params, state, mask):
            return direct_action(params, state)

    else:

        @compiled
        def random_action(params, state, mask):
            mask[:] = 0
            legal(params, state, mask)
            return choose_from_mask(state, mask)

    return random_action
