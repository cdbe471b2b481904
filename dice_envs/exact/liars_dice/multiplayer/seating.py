"""Games of Liar's Dice at a table as rounds: which rounds there are, and which one follows when somebody loses a die."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dice_envs.core.game import Variant
from dice_envs.exact.liars_dice.elimination import check_rounds

__all__ = ["Dice", "Table", "after", "check_table", "first_tables", "players_of", "rounds_of", "share_after", "tables_of"]

Dice = tuple[int, ...]  # of each seat, counted from the round's starter; 0 for players who are out


class Table(NamedTuple):
    """A table at the beginning of a round."""

    dice: Dice
    starter: int  # the seat that begins; 0 where it makes no difference

    @property
    def is_over(self) -> bool:
        """Whether one player alone has dice."""
        return len(players_of(self.dice)) == 1

    def place(self, seat: int) -> int:
        """Return how many seats after the starter a seat is."""
        return (seat - self.starter) % len(self.dice)

    def seat(self, place: int) -> int:
        """Return the seat that is so many seats after the starter."""
        return (self.starter + place) % len(self.dice)


def check_table(options: Any, what: str = "optimal play") -> None:
    """Raise ValueError for rules by which rounds at a table are not analysed, and for a reward that is not zero-sum.

    The message names `what` needs it.
    """
    check_rounds(options, what)
    if options.palifico:
        raise ValueError(
            f"palifico must be false for {what} with more than two players: whether a round is one depends on the last"
        )


def players_of(dice: Dice) -> tuple[int, ...]:
    """Return the places of those who have dice, in the order of play."""
    return tuple(place for place, number in enumerate(dice) if number > 0)


def after(table: Table, loser: int) -> Table:
    """Return the table after the player at a place has lost a die.

    The loser starts the next round; if it is out, the next player who has dice does. When the game is over, the winner is the
    starter, all alone.
    """
    count = len(table.dice)
    left = [number - (place == loser) for place, number in enumerate(table.dice)]
    shift = next(place % count for place in range(loser, loser + count) if left[place % count] > 0)
    return Table(tuple(left[shift:] + left[:shift]), table.seat(shift))


def share_after(options: Any, table: Table, loser: int, place: int, share: Callable[[Table, int], float]) -> float:
    """Return the share of wins of the player at a place after another, or itself, has lost the round's die.

    Who is out has none, and a winner has all. In a game of one round all who lose no die share the win equally.

    Args:
        options: the game's.
        table: at the beginning of the round.
        loser, place: places at the table.
        share: the table of the next round, a place there → that player's share.
    """
    if options.rounds == "single":
        return (place != loser) / (len(table.dice) - 1)
    follows = after(table, loser)
    now = follows.place(table.seat(place))
    if follows.is_over or follows.dice[now] == 0:
        return float(now == 0)  # the winner is the starter
    return share(follows, now)


def first_tables(options: Any) -> list[Table]:
    """Return the ways in which a game may begin, which are equally likely."""
    dice = options.dice_per_seat
    starters = range(len(dice)) if options.starter == "random" else [0]
    return [Table(dice[starter:] + dice[:starter], starter) for starter in starters]


def tables_of(variant: Variant) -> list[Table]:
    """Return the tables at which a round of a game can begin, those of few dice first."""
    waiting = set(first_tables(variant.options))
    found: set[Table] = set()
    while waiting:
        table = waiting.pop()
        found.add(table)
        if variant.options.rounds == "elimination":
            following = {after(table, loser) for loser in players_of(table.dice)}
            waiting |= {each for each in following if not each.is_over} - found
    return sorted(found, key=lambda table: (sum(table.dice), table))


def rounds_of(variant: Variant) -> list[Dice]:
    """Return the dice with which a round of a game can begin, whoever sits where; few dice first."""
    return list(dict.fromkeys(table.dice for table in tables_of(variant)))
