"""Games of Liar's Dice as rounds: which rounds there are, which one follows when somebody loses a die, and a game's value.

Between two players a round ends in one of two ways: its starter loses a die, or the other player does. As long as winning a
round is worth more than losing it, the best play of a round is the one that wins it most often, whatever comes after. So each
round is solved alone, and the game's value follows backward from the rounds of few dice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.games.liars_dice import kind_of_round
from dice_envs.games.liars_dice.raises import ROUND_KINDS, round_kinds

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
        """Return the seat `place` seats after the starter."""
        return (self.starter + place) % len(self.dice)

    def dice_of(self, seat: int) -> int:
        """Return how many dice a seat has."""
        return self.dice[self.place(seat)]


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
    for kind in round_kinds(options) if options.num_players > 2 else []:
        raise ValueError(
            f"{ROUND_KINDS[kind]} must be false for {what} with more than two players: whether a round is one depends on the "
            "last"
        )


# --- rounds ---------------------------------------------------------------------------------------------------------------


def players_of(dice: Dice) -> tuple[int, ...]:
    """Return the places of those who have dice, in the order of play."""
    return tuple(place for place, number in enumerate(dice) if number > 0)


def left_of(dice: Dice) -> Dice:
    """Return the dice of those who are left."""
    return tuple(number for number in dice if number > 0)


def after(table: Table, loser: int) -> Table:
    """Return the table after the player at a place has lost a die.

    The loser starts the next round; if it is out, the next player who has dice does. When the game is over, the winner is the
    starter, all alone.
    """
    count = len(table.dice)
    left = [number - (place == loser) for place, number in enumerate(table.dice)]
    shift = next(place % count for place in range(loser, loser + count) if left[place % count] > 0)
    return Table(tuple(left[shift:] + left[:shift]), table.seat(shift))


def share_after(options: Any, table: Table, loser: int, place: int, share: Callable[[Table, int], Any]) -> Any:
    """Return the share of wins of the player at a place after another, or itself, has lost the round's die.

    Who is out has none, and a winner has all. In a game of one round all who lose no die share the win equally. `share` maps
    the table of the next round and a place there to that player's share, a number or an array.
    """
    if options.rounds == "single":
        return (place != loser) / (len(table.dice) - 1)
    follows = after(table, loser)
    now = follows.place(table.seat(place))
    if follows.is_over or follows.dice[now] == 0:
        return float(now == 0)  # the winner is the starter
    return share(follows, now)


def payoffs_at(options: Any, table: Table, share: Callable[[Table, int], Any]) -> np.ndarray:
    """Return the shares of wins of each player who is left if each of them loses the die, (players, players) float64.

    The arguments are those of `share_after`.
    """
    places = players_of(table.dice)
    return np.array([[share_after(options, table, loser, place, share) for loser in places] for place in places], np.float64)


def first_tables(options: Any) -> list[Table]:
    """Return the ways in which a game may begin, which are equally likely."""
    dice = options.dice_per_seat
    starters = range(len(dice)) if options.starter == "random" else [0]
    return [Table(dice[starter:] + dice[:starter], starter) for starter in starters]


def tables_of(options: Any) -> list[Table]:
    """Return the tables at which a round of a game can begin, those of few dice first."""
    waiting = set(first_tables(options))
    found: set[Table] = set()
    while waiting:
        table = waiting.pop()
        found.add(table)
        if options.rounds == "elimination":
            following = {after(table, loser) for loser in players_of(table.dice)}
            waiting |= {each for each in following if not each.is_over} - found
    return sorted(found, key=lambda table: (sum(table.dice), table))


def rounds_of(options: Any) -> list[Dice]:
    """Return the dice with which a round of a game can begin, whoever sits where; few dice first."""
    return list(dict.fromkeys(table.dice for table in tables_of(options)))


def kind_of(options: Any, dice: Dice) -> int:
    """Return the kind of a round between two players; the starter's dice come first."""
    # No dice that begin a game come again later in it.
    return kind_of_round(options, dice, is_first=dice in [table.dice for table in first_tables(options)])


# --- certificates ---------------------------------------------------------------------------------------------------------


class Certificate(NamedTuple):
    """Shares of wins from a round on, each (players,) float64. In a game of one round all who lose no die share the win.

    `value`, `lower` and `upper` are of two players.
    """

    plays: np.ndarray  # when all follow the strategies
    responds: np.ndarray  # of a player who responds best to all others

    @property
    def gain(self) -> float:
        """What the players gain by leaving the strategies, each alone, in all; of two, the exploitability for ±1."""
        return float((self.responds - self.plays).sum())

    @property
    def value(self) -> float:
        """The starter's chance to win when both play the strategies."""
        return float(self.plays[0])

    @property
    def lower(self) -> float:
        """The starter's chance to win against a best response. Rounding may put it above `upper`."""
        return 1 - float(self.responds[1])

    @property
    def upper(self) -> float:
        """The starter's chance to win by a best response."""
        return float(self.responds[0])


def rest_of(options: Any, dice: Dice, known: Mapping[Dice, np.ndarray]) -> np.ndarray:
    """Return what the rest of a game is worth to each player if each of them loses a round's die, (players, players) float64.

    `known` has the shares of the players from each later round on, (players,) float64.
    """

    def share(follows: Table, place: int) -> float:
        return float(known[left_of(follows.dice)][players_of(follows.dice).index(place)])

    return payoffs_at(options, Table(dice, 0), share)


def wins_games(options: Any, rounds: Mapping[Dice, np.ndarray], best: bool = False) -> dict[Dice, np.ndarray]:
    """Return each player's chance to win a game of two from each round on, given those to win each round, (2,) float64, the
    starter's first. With `best` a player loses a round on purpose where losing it is worth more."""
    known: dict[Dice, np.ndarray] = {}
    for dice in sorted(rounds, key=sum):
        payoffs = rest_of(options, dice, known)
        lost, won = payoffs.diagonal(), payoffs[:, ::-1].diagonal()
        found = lost + (won - lost) * rounds[dice]
        known[dice] = np.maximum(lost, found) if best else found
    return known


def certify_games(options: Any, rounds: Mapping[Dice, Certificate]) -> dict[Dice, Certificate]:
    """Return the certificate of a game of two from each round on, from those of the rounds alone."""
    plays = wins_games(options, {dice: each.plays for dice, each in rounds.items()})
    responds = wins_games(options, {dice: each.responds for dice, each in rounds.items()}, best=True)
    return {dice: Certificate(plays[dice], responds[dice]) for dice in rounds}


def gain_of_game(options: Any, rounds: Mapping[Dice, Certificate]) -> float:
    """Return the exploitability of a game of two from the certificates of its rounds, for returns of ±1."""
    known = certify_games(options, rounds)
    return float(np.mean([known[table.dice].gain for table in first_tables(options)]))
