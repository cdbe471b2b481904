"""Games of Liar's Dice at a table as rounds: which rounds there are, and which one follows when somebody loses a die."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dice_envs.core.game import Variant

__all__ = ["Dice", "Start", "Turned", "after", "first_rounds", "players_of", "rounds_of"]

Dice = tuple[int, ...]  # of each seat, counted from the round's starter; 0 for players who are out


class Start(NamedTuple):
    """One way in which a game may begin."""

    dice: Dice
    starter: int  # the seat that begins


class Turned(NamedTuple):
    """A table after a round."""

    dice: Dice  # of each seat, counted from the next starter; the winner's alone when the game is over
    shift: int  # how many seats the next starter sits after the former one

    @property
    def is_over(self) -> bool:
        """Whether one player alone has dice."""
        return len(players_of(self.dice)) == 1

    def place(self, place: int) -> int:
        """Return where a seat is now that was `place` seats after the former starter."""
        return (place - self.shift) % len(self.dice)


def players_of(dice: Dice) -> tuple[int, ...]:
    """Return the places of those who have dice, in the order of play."""
    return tuple(place for place, number in enumerate(dice) if number > 0)


def after(dice: Dice, loser: int) -> Turned:
    """Return the table after the player at a place has lost a die.

    The loser starts the next round; if it is out, the next player who has dice does.
    """
    left = [number - (place == loser) for place, number in enumerate(dice)]
    shift = next(place % len(dice) for place in range(loser, loser + len(dice)) if left[place % len(dice)] > 0)
    return Turned(tuple(left[shift:] + left[:shift]), shift)


def first_rounds(options: Any) -> list[Start]:
    """Return the ways in which a game may begin, which are equally likely."""
    dice = options.dice_per_seat
    starters = range(len(dice)) if options.starter == "random" else [0]
    return [Start(dice[starter:] + dice[:starter], starter) for starter in starters]


def rounds_of(variant: Variant) -> list[Dice]:
    """Return the rounds that a game can reach, those of few dice first."""
    waiting = {start.dice for start in first_rounds(variant.options)}
    found: set[Dice] = set()
    while waiting:
        dice = waiting.pop()
        found.add(dice)
        if variant.options.rounds == "elimination":
            waiting |= set(_following(dice)) - found
    return sorted(found, key=lambda dice: (sum(dice), dice))


def _following(dice: Dice) -> Iterable[Dice]:
    turned = (after(dice, loser) for loser in players_of(dice))
    return (each.dice for each in turned if not each.is_over)
