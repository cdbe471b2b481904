"""Shares of wins in whole games of Liar's Dice: what each player wins, what it could win by leaving its policy, and against
coalitions; and how often a best response to one of two players wins.

A game divides into rounds. For players who look at the present round only, the rest of the game depends only on who has how
many dice and who begins. So each round is valued alone, those of few dice first, for what follows each loss of a die.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.work import counting
from dice_envs.games.liars_dice.exact.moves import Source
from dice_envs.games.liars_dice.exact.round import Round
from dice_envs.games.liars_dice.exact.seating import (
    Dice,
    Table,
    check_two_players,
    first_tables,
    payoffs_at,
    share_after,
    tables_of,
)
from dice_envs.games.liars_dice.exact.sources import ROWS_AT_ONCE, SeatComparison, source_of
from dice_envs.games.liars_dice.exact.walk import Coalition, Keep, Walk

# Of one round, both players together.
MOST_INFORMATION_SETS = 250_000_000  # where nodes are kept, or people wait; enough for five dice each by the article's rule
MOST_WALKED = 10_000_000_000  # where nodes are forgotten, in bounded memory; enough for six
_ROUNDING = 1e-9

Found = TypeVar("Found")


@functools.lru_cache(maxsize=256)
def round_at(variant: Variant, dice: Dice) -> Round:
    """Return the round with these dice of each seat, counted from the starter."""
    return Round(variant, dice)


def check_measurable(variant: Variant, what: str, most: int = MOST_INFORMATION_SETS) -> None:
    """Raise ValueError, naming `what` is not available, unless the game is small enough and between two players for a win.

    Small enough: each round has `most` information sets or fewer.
    """
    options = variant.options
    check_two_players(options, what)
    sets = sum(round_at(variant, options.dice_per_seat).information_sets(player) for player in range(2))
    if sets > most:
        raise ValueError(
            f"num_dice={options.num_dice!r} with num_faces={options.num_faces} and raise_rule={options.raise_rule!r} makes a "
            f"round of about {sets:,.0f} information sets; {most:,} at most are allowed for {what}"
        )


def has_equal_seats(variant: Variant) -> bool:
    """Return whether all seats have the same number of dice and begin equally often, which makes them symmetric."""
    return bool(len(set(variant.options.dice_per_seat)) == 1 and variant.options.starter == "random")


def information_sets(variant: Variant, seats: Collection[int] | None = None, dice: Iterable[Dice] | None = None) -> float:
    """Return the number of information sets at which seats (None: all) have a choice, over all rounds.

    Rounds are those of `dice`, whoever sits where, for all seats; None: those of each table that a game can come to.
    """
    tables = tables_of(variant.options) if dice is None else [Table(each, 0) for each in dice]
    return sum(
        round_.information_sets(player)
        for table, round_ in ((table, round_at(variant, table.dice)) for table in tables)
        for player, place in enumerate(round_.places)
        if seats is None or table.seat(place) in seats
    )


# --- a best response to one of two players --------------------------------------------------------------------------------


def response_wins(
    variant: Variant,
    agent: Any,
    seat: int,
    seats: SeatComparison | None = None,
    seed: int = 0,
    copies: int = 1,
    keep: Callable[[Table], Keep | None] = lambda table: None,
) -> dict[Table, np.ndarray]:
    """Return how often a best response wins the game from an agent that states its probabilities, from each table on.

    Args:
        variant: the game, between two players for a win.
        agent: see `dice_envs.agent.ask_probabilities`; it is taken to look at the present round only.
        seat: the agent's.
        seats: compares the agent's answers in the other seat.
        seed: of the agent's own random streams.
        copies: 2: the agent is asked twice everywhere, and the best response to its first answers is valued against the
            second ones too.
        keep: makes, for a round, the callback for the values and the response at its nodes (see `walk.Walk`).

    Returns:
        (copies,) float64 for each table.

    Raises:
        ValueError: a best response would rather lose a round than win it.
    """
    streams = np.array([new_streams(each, ROWS_AT_ONCE) for each in np.random.SeedSequence(seed).spawn(copies)])
    known: dict[Table, np.ndarray] = {}
    # The order fixes which of the agent's random numbers each round takes.
    for table in sorted(
        tables_of(variant.options), key=lambda table: (sum(table.dice), table.dice_of(seat), table.starter == seat)
    ):
        round_, player = round_at(variant, table.dice), table.place(seat)
        source = source_of(round_, player, agent, seat, streams, seats)
        coalition = Coalition((1 - player,), np.eye(2)[player])  # it wins where the agent loses the die
        (chance,) = Walk(round_, [source, source], [coalition], copies, keep(table)).values()
        lost, won = win_chances_after(variant, table, 1 - seat, known)
        after_loss, after_win = np.ravel(lost)[0], np.ravel(won)[0]
        if after_win < after_loss - _ROUNDING:
            raise ValueError(
                f"no best response is known: with {table.dice_of(1 - seat)} dice against the agent's {table.dice_of(seat)} one "
                f"would rather lose the round than win it ({after_loss:.6f} of the games are won after it is lost, "
                f"{after_win:.6f} after it is won)"
            )
        known[table] = lost + (won - lost) * chance
    return known


def in_both_seats(
    variant: Variant,
    find: Callable[[int, SeatComparison | None], Found],
) -> list[Found]:
    """Return what is found with the agent in each of two seats, or in the first one only if it plays alike in both.

    `find` maps the agent's seat, and what compares its answers in the other seat, to the result.
    """
    seats = SeatComparison() if has_equal_seats(variant) else None
    with counting(information_sets(variant, None if seats is None else [0])):
        found = [find(0, seats)]
    if seats is None or not seats.alike:
        with counting(information_sets(variant)):
            found.append(find(1, None))
    return found


def win_chances_after(variant: Variant, table: Table, seat: int, known: dict[Table, np.ndarray]) -> tuple[Any, Any]:
    """Return the chance of the player in a seat, one of two, to win the game after it loses a round, and after it wins it."""
    own = table.place(seat)
    lost, won = (
        share_after(variant.options, table, loser, own, lambda follows, place: known[follows]) for loser in (own, 1 - own)
    )
    return lost, won


# --- who sits where -------------------------------------------------------------------------------------------------------


class Shares(NamedTuple):
    """Shares of wins from a table on, by place from the starter, each (seats,) float64. Parts not asked for are zeros.

    In a game of one round all who lose no die share the win equally.
    """

    plays: np.ndarray  # when all follow their policies
    responds: np.ndarray  # of a player who responds best to all others
    alone: np.ndarray  # of a player against whom all others respond as one, each knowing the dice of all of them


PLAYS, RESPONDS, ALONE = range(3)  # parts of `Shares`


class SeatedAgents:
    """Agents at a table, asked at each information set.

    Args:
        agents: see `dice_envs.agent.ask_probabilities`: one for each seat, or one alone, which sits in all of them.
        seed: of the agents' own random streams.

    Attributes:
        seats: whether all have played alike wherever they were asked at the same positions in other seats.
    """

    def __init__(self, agents: Sequence[Any], seed: int = 0) -> None:
        self._agents = list(agents)
        self._streams = new_streams(seed, ROWS_AT_ONCE)[None]
        self.seats = SeatComparison()

    def __call__(self, round_: Round, player: int, table: Table) -> Source:
        """Return the probabilities of one of the round's players."""
        seat = table.seat(round_.places[player])
        return source_of(round_, player, self._agents[seat % len(self._agents)], seat, self._streams, self.seats)

    def key(self, table: Table) -> Table:
        """Return the table by which shares are known: with one agent in all seats it makes no difference which seat begins."""
        return Table(table.dice, 0) if len(self._agents) == 1 else table


# --- shares -------------------------------------------------------------------------------------------------------------


def shares_of(variant: Variant, seated: SeatedAgents, parts: Sequence[int]) -> dict[Table, Shares]:
    """Return the shares of wins from each table on that a game can come to, with the `parts` of `Shares` that are asked for.

    Tables are those of `SeatedAgents.key`.
    """
    known: dict[Table, Shares] = {}
    for table in dict.fromkeys(seated.key(table) for table in tables_of(variant.options)):
        round_ = round_at(variant, table.dice)
        players = range(len(round_.dice))
        sources = [seated(round_, player, table) for player in players]
        coalitions = []
        for part in parts:

            def share(follows: Table, place: int, part: int = part) -> float:
                return float(known[seated.key(follows)][part][place])

            coalitions += _coalitions(part, payoffs_at(variant.options, table, share))
        found = Walk(round_, sources, coalitions).values().reshape(len(parts), len(players))
        shares = np.zeros((len(Shares._fields), len(table.dice)))  # 0 for those who are out
        shares[np.ix_(parts, round_.places)] = found
        shares[ALONE] *= -1
        known[table] = Shares(*shares)
    return known


def _coalitions(part: int, payoffs: np.ndarray) -> list[Coalition]:
    """Return the coalitions whose values are a part of `Shares`; `payoffs` are those of each player, by who loses the die."""
    if part == PLAYS:
        return [Coalition((), row) for row in payoffs]
    if part == RESPONDS:
        return [Coalition((player,), row) for player, row in enumerate(payoffs)]
    everybody = range(len(payoffs))
    return [Coalition(tuple(other for other in everybody if other != player), -row) for player, row in enumerate(payoffs)]


def mean_shares(variant: Variant, seated: SeatedAgents, known: dict[Table, Shares]) -> Shares:
    """Return the shares at the beginning of a game, mean over those who may begin, by seat."""
    # The share of a place is that of the seat so many seats after the starter.
    by_seat = [np.roll(known[seated.key(table)], table.starter, axis=1) for table in first_tables(variant.options)]
    return Shares(*np.mean(by_seat, axis=0))
