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
from dice_envs.exact.liars_dice.multiplayer.seating import Dice, Table, first_tables, share_after, tables_of
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


PLAYS, RESPONDS, ALONE = range(3)  # parts of `Shares`


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
        players = range(len(round_.dice))
        sources = [seated(round_, player, table) for player in players]

        def worth(player: int, part: int, table: Table = table, places: tuple[int, ...] = round_.places) -> np.ndarray:
            """Return a player's share if each of the players loses the die, (players,) float64."""

            def share(follows: Table, place: int) -> float:
                return float(known[table_key(follows, merged)][part][place])

            return np.array([share_after(variant.options, table, loser, places[player], share) for loser in places])

        parties = [Party((), worth(player, PLAYS)) for player in players]
        if question.responds:
            parties += [Party((player,), worth(player, RESPONDS)) for player in players]
        if question.alone:
            parties += [
                Party(tuple(other for other in players if other != player), -worth(player, ALONE)) for player in players
            ]
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
    # The share of a place is that of the seat so many seats after the starter.
    by_seat = [[np.roll(part, table.starter) for part in known[table_key(table, merged)]] for table in starts]
    return Shares(*(np.mean([each[part] for each in by_seat], axis=0) for part in range(len(Shares._fields))))
