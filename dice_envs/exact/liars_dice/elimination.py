"""Games of Liar's Dice between two players as rounds: which rounds there are, and the game's value from theirs.

A round ends in one of two ways: its starter loses a die, or the other player does. As long as winning a round is worth
more than losing it, the best play of a round is the one that wins it most often, whatever comes after. So each round is
solved alone, and the game follows backward from the rounds of few dice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dice_envs.core.game import Variant

__all__ = [
    "Bounds",
    "Dice",
    "check_rounds",
    "check_two_players",
    "game_width",
    "is_palifico",
    "rounds_of",
    "starter_wins",
    "starts_of",
    "wins_game",
]

Dice = tuple[int, int]  # of a round's starter and of the other player


class Bounds(NamedTuple):
    """Bounds of the starter's chance to win, by best responses to the strategies held."""

    lower: float
    upper: float

    @classmethod
    def between(cls, one: float, other: float) -> Bounds:
        """Return bounds from two numbers, which rounding may have put in the wrong order."""
        return cls(min(one, other), max(one, other))

    @property
    def width(self) -> float:
        """How much more than the value the two best responses win together: the exploitability of a round for ±1."""
        return self.upper - self.lower


def check_two_players(options: Any, what: str = "optimal play") -> None:
    """Raise ValueError for a variant without a value: more than two players, or a reward that is not zero-sum.

    The message names `what` needs one.
    """
    if options.num_players != 2:
        raise ValueError(
            f"num_players must be 2 for {what}, not {options.num_players}: with more players, what one wins depends on what "
            "the others let it have"
        )
    check_rounds(options, what)


def check_rounds(options: Any, what: str = "optimal play") -> None:
    """Raise ValueError for rules by which rounds cannot be analysed backward from the last, and a reward that is not zero-sum.

    The message names `what` needs it.
    """
    if options.exact_call:
        raise ValueError(
            f"exact_call must be false for {what}: a right exact call gives a die back, so the same round can come again, and "
            "no round can be solved before those that follow it"
        )
    if options.next_starter != "loser" and options.rounds == "elimination":
        raise ValueError(
            f"next_starter must be 'loser' for {what}, not {options.next_starter!r}: otherwise what a lost round costs "
            "depends on who called"
        )
    if options.reward != "win":
        raise ValueError(f"reward must be 'win' for {what}, not {options.reward!r}, which is not zero-sum")


def is_palifico(options: Any, dice: Dice) -> bool:
    """Return whether a round between two players is a palifico round: its starter has just come down to one die.

    The starter of any round but the first has just lost a die. No dice that begin a game come again later in it.
    """
    return bool(options.palifico and options.rounds == "elimination" and dice[0] == 1 and dice not in starts_of(options))


def starts_of(options: Any) -> list[Dice]:
    """Return the dice of the starter and of the other player in the first round, for each seat that may start."""
    first, second = options.dice_per_seat
    return [(first, second), (second, first)] if options.starter == "random" else [(first, second)]


def rounds_of(options: Any) -> list[Dice]:
    """Return the rounds that a game of two players can reach, those of few dice first."""
    waiting = starts_of(options)
    found = set(waiting)
    while waiting and options.rounds == "elimination":
        own, others = waiting.pop()
        # The player who loses a die starts the next round, unless it has none left.
        following = [(own - 1, others)] if own > 1 else []
        following += [(others - 1, own)] if others > 1 else []
        waiting += [dice for dice in following if dice not in found]
        found.update(following)
    return sorted(found, key=lambda dice: (sum(dice), dice))


def wins_game(
    dice: Dice,
    starts: bool,
    chance: Callable[[int, int, bool], Any],
    value: Callable[[Dice, Any, Any, Any], Any] = lambda dice, won, lost, chance: lost + (won - lost) * chance,
) -> Any:
    """Return the chance that a player wins a game of elimination, from its chances to win the rounds.

    Args:
        dice: the player's and its opponent's.
        starts: whether the player starts the first round.
        chance: own dice, the opponent's, whether the player starts → the chance to win that round, a number or an array.
        value: the value of the game before a round, from the round's dice, the values of the game after it is won and
            after it is lost, and the chance to win it.
    """

    @functools.cache
    def wins(own: int, others: int, starts: bool) -> Any:
        if own == 0 or others == 0:
            return float(others == 0)
        # The player who has lost a die starts the next round.
        won, lost = wins(own, others - 1, False), wins(own - 1, others, True)
        return value((own, others), won, lost, chance(own, others, starts))

    return wins(*dice, starts)


def _or_lost(dice: Dice, won: float, lost: float, chance: float) -> float:
    """Return the most that a best response can win: where losing the round is worth more, it may lose on purpose."""
    return max(lost, lost + (won - lost) * chance)


def starter_wins(dice: Dice, chances: Mapping[Dice, Bounds]) -> Bounds:
    """Bound the starter's chance to win a game of elimination, from the bounds of each round.

    For a solution the lower bound is the chance of its strategies against the other player's best response, the upper bound
    the chance of the starter's best response to them.
    """

    def responds(own: int, others: int, starts: bool) -> float:
        return chances[own, others].upper if starts else 1 - chances[others, own].lower

    own, others = dice
    return Bounds.between(1 - wins_game((others, own), False, responds, _or_lost), wins_game(dice, True, responds, _or_lost))


def game_width(variant: Variant, chances: Mapping[Dice, Bounds]) -> float:
    """Return the exploitability of a game from the bounds of its rounds, for returns of ±1."""
    starts = starts_of(variant.options)
    if variant.options.rounds == "single":
        return sum(chances[dice].width for dice in starts) / len(starts)
    return sum(starter_wins(dice, chances).width for dice in starts) / len(starts)
