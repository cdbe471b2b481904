"""What each player of a game of Liar's Dice wins at a table, what it could win by leaving its policy, and against coalitions.

A game divides into rounds. For players who look at the present round only, the rest of the game depends only on who has how
many dice and who begins. So `walk` values each round alone, those of few dice first, for what follows each loss of a die.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.exact.liars_dice.multiplayer.seating import Dice, Table, after, first_tables, tables_of
from dice_envs.exact.liars_dice.multiplayer.walk import Party, walk
from dice_envs.exact.liars_dice.round import Round
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Seats, Source, source_of

__all__ = ["Asked", "Question", "Seated", "Shares", "mean_shares", "round_at", "shares_of", "table_key"]


class Shares(NamedTuple):
    """Shares of wins from a table on, by place from the starter, each (seats,) float64. Parts not asked for are zeros.

    In a game of one round all who lose no die share the win equally.
    """

    plays: np.ndarray  # when all follow their policies
    responds: np.ndarray  # of a player who responds best to all others
    alone: np.ndarray  # of a player against whom all others respond as one, each knowing the dice of all of them


class Question(NamedTuple):
    """Which shares are asked for beside those of play."""

    responds: bool = False
    alone: bool = False


@functools.lru_cache(maxsize=256)
def round_at(variant: Variant, dice: Dice) -> Round:
    """Return the round with these dice of each seat, counted from the starter."""
    return Round(variant, dice)


# --- who sits where -----------------------------------------------------------------------------------------------------

Seated = Callable[[Round, int, Table], Source]  # a round, one of its players, the table → that player's probabilities


class Asked:
    """Agents at a table, asked at each information set.

    Args:
        variant: the game.
        agents: see `dice_envs.agent.ask_probabilities`: one for each seat, or one alone, which sits in all of them.
        seed: of the agents' own random streams.

    Attributes:
        seats: for each agent, whether it has played alike wherever it was asked at the same positions in other seats.
    """

    def __init__(self, variant: Variant, agents: Sequence[Any], seed: int = 0) -> None:
        self._agents = list(agents)
        self._streams = new_streams(seed, ROWS_AT_ONCE)[None]
        self.seats = [Seats() for _ in agents]

    def __call__(self, round_: Round, player: int, table: Table) -> Source:
        seat = table.seat(round_.places[player])
        number = seat % len(self._agents)
        return source_of(round_, player, self._agents[number], seat, self._streams, self.seats[number])

    @property
    def alike(self) -> bool:
        """Whether no agent was seen to play differently in another seat."""
        return all(seats.alike for seats in self.seats)


# --- shares -------------------------------------------------------------------------------------------------------------


class _Rest:
    """What the rest of a game is worth after a round at a table."""

    def __init__(self, variant: Variant, table: Table, known: dict[Table, Shares], merged: bool) -> None:
        self._single = variant.options.rounds == "single"
        self._table, self._known, self._merged = table, known, merged

    def worth(self, places: tuple[int, ...], place: int, part: str) -> np.ndarray:
        """Return the share of the player at `place` if each of the players at `places` loses the die, (players,) float64."""
        return np.array([self._share(loser, place, part) for loser in places])

    def _share(self, loser: int, place: int, part: str) -> float:
        if self._single:
            return (place != loser) / (len(self._table.dice) - 1)
        follows = after(self._table, loser)
        now = follows.place(self._table.seat(place))
        if follows.is_over or follows.dice[now] == 0:
            return float(now == 0)
        shares: np.ndarray = getattr(self._known[table_key(follows, self._merged)], part)
        return float(shares[now])


def table_key(table: Table, merged: bool) -> Table:
    """Return the table by which shares are known: with one agent in all seats it makes no difference which seat begins."""
    return Table(table.dice, 0) if merged else table


def shares_of(
    variant: Variant,
    seated: Seated,
    question: Question,
    merged: bool = True,
    done: Callable[[float], Any] = lambda amount: None,
) -> dict[Table, Shares]:
    """Return the shares of wins from each table on that a game can come to.

    Args:
        variant: the game.
        seated: the probabilities of whoever sits at the table.
        question: which shares are asked for.
        merged: whether play depends on the places from the starter alone; tables then have the starter 0.
        done: progress callback, called with the number of information sets that are done since the last call.
    """
    known: dict[Table, Shares] = {}
    for table in dict.fromkeys(table_key(table, merged) for table in tables_of(variant)):
        round_ = round_at(variant, table.dice)
        rest = _Rest(variant, table, known, merged)
        players = range(len(round_.dice))
        sources = [seated(round_, player, table) for player in players]
        parties = [Party((), rest.worth(round_.places, place, "plays")) for place in round_.places]
        if question.responds:
            parties += [Party((player,), rest.worth(round_.places, round_.places[player], "responds")) for player in players]
        if question.alone:
            for player in players:
                members = tuple(other for other in players if other != player)
                parties.append(Party(members, -rest.worth(round_.places, round_.places[player], "alone")))
        found = iter(walk(round_, sources, parties, done).reshape(-1, len(players)))
        known[table] = Shares(
            plays=_by_place(table, round_, next(found)),
            responds=_by_place(table, round_, next(found) if question.responds else None),
            alone=_by_place(table, round_, -next(found) if question.alone else None),
        )
    return known


def _by_place(table: Table, round_: Round, shares: np.ndarray | None) -> np.ndarray:
    """Return shares by place, 0 for those who are out."""
    found = np.zeros(len(table.dice))
    if shares is not None:
        found[list(round_.places)] = shares
    return found


def mean_shares(variant: Variant, known: dict[Table, Shares], merged: bool = True) -> Shares:
    """Return the shares at the beginning of a game, mean over those who may begin, by seat."""
    starts = first_tables(variant.options)
    by_seat = [
        [np.roll(part, table.starter) for part in known[table_key(table, merged)]] for table in starts
    ]  # the share of place p is that of seat (starter + p)
    return Shares(*(np.mean([each[part] for each in by_seat], axis=0) for part in range(len(Shares._fields))))
