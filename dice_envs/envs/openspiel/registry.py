"""Games by name: `openspiel_game`, and the names under which `pyspiel.load_game` finds every game."""

from __future__ import annotations

from typing import Any

import pyspiel

from dice_envs.core.chance import can_be_enumerated
from dice_envs.core.game import MAX_SEATS, Game, Variant, configure, load, names
from dice_envs.envs.openspiel.games import CHANCE_MODES, DiceGame, game_type
from dice_envs.envs.openspiel.parameters import options_of

__all__ = ["openspiel_game", "register_all"]


def openspiel_game(
    game: str | Game | Variant,
    /,
    *,
    chance: str | None = None,
    perfect_recall: bool = True,
    rng_seed: int = -1,
    **options: Any,
) -> DiceGame:
    """Make an OpenSpiel game.

    Args:
        game: name, Game or Variant.
        chance: "explicit": every draw is a chance node with all its outcomes; "sampled": a chance node has one outcome, and
            applying it draws. None: explicit where possible.
        perfect_recall: False: a player's information state is its current observation, as our agents see it.
        rng_seed: seeds sampled chance; −1 for fresh entropy.
        options: the game's options.

    Raises:
        ValueError: an option or setting is not allowed; the message names it, its value and what is allowed.
    """
    return DiceGame(configure(game, **options), chance, perfect_recall, rng_seed)


def register_all() -> None:
    """Register every game with OpenSpiel."""
    for name in names():
        game = load(name)
        mode = CHANCE_MODES[not can_be_enumerated(game)]
        kind = game_type(game.configure(), mode, has_tensor=True, seats=(1, MAX_SEATS))
        pyspiel.register_game(kind, _creator(name))


def _creator(name: str) -> type:
    """Return what OpenSpiel calls, with all parameters, to make a game.

    A class, because OpenSpiel drops its creators after the interpreter has ended, when freeing a function aborts the process.
    """
    return type(name, (), {"__new__": lambda cls, given: _load(name, given)})


def _load(name: str, given: dict[str, Any]) -> DiceGame:
    """Make a game from a complete dict of OpenSpiel's parameters."""
    game = load(name)
    return openspiel_game(
        game,
        chance=given["chance"] or None,
        perfect_recall=given["perfect_recall"],
        rng_seed=given["rng_seed"],
        **options_of(game, given),
    )
