"""Values of choices in Liar's Dice between two players against a fixed opponent, for many states at once.

The values of a round's nodes are those that the walk for a best response finds; `table` keeps them. What a round is worth
in the game follows from the best responses in the rounds after it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact.kept import kept
from dice_envs.exact.liars_dice.cfr import dtype_of
from dice_envs.exact.liars_dice.hands import numbered_hands
from dice_envs.exact.liars_dice.probes import check_fixed, check_steady
from dice_envs.exact.liars_dice.seating import Table, first_tables, tables_of
from dice_envs.exact.liars_dice.shares import (
    check_measurable,
    has_equal_seats,
    information_sets,
    response_wins,
    round_at,
    worth_after,
)
from dice_envs.exact.liars_dice.sources import Seats
from dice_envs.exact.liars_dice.table import NONE, RoundValues, ValueLayout, ValueTable, table_of, value_all
from dice_envs.games.liars_dice import MAX_DICE, matching, wild_face
from dice_envs.games.liars_dice.raises import NO_BID, face_of

__all__ = ["MOST_BYTES", "Values", "bluffs", "forget_values", "response_values", "situations"]

MOST_BYTES = 2 << 30  # of one opponent's values
MOST_KEPT = 1 << 30  # bytes of the values of all opponents that are kept in memory
_WHAT = "the value of a choice"


class Values:
    """Values of choices against one opponent. See `dice_envs.exact.ResponseValues`."""

    unit = "return"
    whole_team = False

    def __init__(self, variant: Variant, note: str, table: ValueTable, starts: tuple[float, float]) -> None:
        self.note = note
        self._variant, self._table, self._starts = variant, table, starts

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return int(self._table.values.nbytes)

    def start(self, seat: int) -> float:
        """Return the expected return of a best response in the seat, before anything is dealt."""
        return self._starts[seat]

    def action_values(self, states: np.ndarray) -> np.ndarray:
        """Return the return to expect after each action if a best response follows, (n, num_actions) float64.

        At positions that the opponent never reaches, its dice are taken for fair, and raises as if they were called.
        """
        out = np.full((len(states), self._variant.facts.num_actions), np.nan)
        value_all(self._variant.params, self._table, states, out)
        return out


def response_values(
    variant: Variant, opponent: Any, /, done: Callable[[float, float], Any] = lambda amount, total: None
) -> Values:
    """Return the values of choices against an opponent. See `dice_envs.exact.GameResponseValues`.

    Results for opponents without a state of their own, whose parameters are plain values, are kept in memory.

    Raises:
        ValueError: the game is not between two players for a win, or too large; the opponent's answers are random, or past
            rounds matter to it; or a best response would rather lose a round than win it.
    """
    check_measurable(variant, _WHAT)
    check_fixed(variant, opponent, _WHAT)
    question = _Question(variant, opponent.agent, opponent, done)
    return _kept_values(question) if _is_plain(opponent.agent) else _find_values(question)


def _is_plain(agent: Any) -> bool:
    """Return whether equal agents play alike, because their parameters are plain values and name no file."""
    if not dataclasses.is_dataclass(agent) or isinstance(agent, type):
        return False
    files = getattr(agent, "files", ())
    parameters = {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent) if field.compare}
    return all(isinstance(value, bool | int | float | str | None) for value in parameters.values()) and not any(
        parameters.get(name) for name in files
    )


@dataclasses.dataclass(frozen=True)
class _Question:
    """The arguments of `response_values`; equal for equal games and opponents."""

    variant: Variant
    agent: Any
    opponent: Any = dataclasses.field(compare=False)
    done: Callable[[float, float], Any] = dataclasses.field(compare=False)


class _Seat:
    """The best response to an opponent in one seat: its values in all rounds, and how often it wins them."""

    def __init__(
        self, variant: Variant, opponent: Any, seat: int, done: Callable[[float], Any], seats: Seats | None = None
    ) -> None:
        self._variant, self._seat = variant, seat
        self.layouts = {
            table: ValueLayout(round_at(variant, table.dice), table.place(seat)) for table in tables_of(variant.options)
        }
        size = sum(each.size for each in self.layouts.values())
        dtype = dtype_of(size)
        if size * np.dtype(dtype).itemsize > MOST_BYTES:
            most = MOST_BYTES // np.dtype(dtype).itemsize
            raise ValueError(
                f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} needs {size:,} numbers "
                f"for {_WHAT}; {most:,} at most are allowed"
            )
        self.values = np.zeros(size, dtype)
        ends = np.cumsum([each.size for each in self.layouts.values()])
        parts = dict(zip(self.layouts, np.split(self.values, ends[:-1]), strict=True))

        def keep(table: Table) -> RoundValues:
            return RoundValues(self.layouts[table], parts[table])

        self._known = response_wins(variant, opponent, seat, done=done, keep=keep, seats=seats)

    @property
    def start(self) -> float:
        """The expected return of the best response, before anything is dealt."""
        return float(np.mean([2 * self._known[table][0] - 1 for table in first_tables(self._variant.options)]))

    @property
    def ends(self) -> np.ndarray:
        """The best response's return after each round is lost, and after it is won, (rounds, 2) float64."""
        worth = [worth_after(self._variant, table, 1 - self._seat, self._known) for table in self.layouts]
        return np.array([[2 * np.ravel(after)[0] - 1 for after in both] for both in worth])


def _find_values(question: _Question) -> Values:
    variant, opponent = question.variant, question.opponent
    seats = Seats() if has_equal_seats(variant) else None
    asked_in = [0] if seats is not None else [0, 1]

    def report(amount: float) -> None:
        question.done(amount, information_sets(variant, asked_in))

    found = [_Seat(variant, opponent, 0, report, seats)]
    if seats is None or not seats.alike:
        asked_in[:] = 0, 1
        found.append(_Seat(variant, opponent, 1, report))
    check_steady(variant, opponent, _WHAT)
    number = np.full((2, MAX_DICE + 1, MAX_DICE + 1, 2), NONE, np.int64)
    count = 0
    for seat, each in enumerate(found):
        for played in each.layouts:
            responders = [1 - seat] if len(found) == 2 else [0, 1]
            number[responders, played.dice_of(1 - seat), played.dice_of(seat), int(played.starter != seat)] = count
            count += 1
    table = table_of(
        number,
        numbered_hands(variant, max(variant.options.dice_per_seat)),
        [layout for each in found for layout in each.layouts.values()],
        np.concatenate([each.values for each in found]) if len(found) == 2 else found[0].values,
        np.concatenate([each.ends for each in found]),
    )
    # The responder sits opposite the opponent.
    return Values(variant, f"if a best response to {opponent.name} follows", table, (found[-1].start, found[0].start))


_kept_values = kept(MOST_KEPT, lambda values: values.bytes)(_find_values)


def forget_values() -> None:
    """Drop the values that are kept in memory."""
    _kept_values.cache_clear()


# --- headings -----------------------------------------------------------------------------------------------------


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return the headings by which decisions are sorted. See `dice_envs.exact.GameSituations`.

    They are the round, counted by the dice lost; the own dice and each other player's in order of play; and the kind of
    decision.
    """
    players = variant.options.num_players
    rows, seats = np.arange(len(states)), states["seat"].astype(np.int64)
    left = [states["dice"][rows, (seats + k) % players].astype(str) for k in range(players)]
    dice = [" v ".join(each) for each in zip(*left, strict=True)]
    opens = states["bid"] == NO_BID
    kinds = np.where(actions == variant.params.call, "call", np.where(opens, "first bid", "raise"))
    found = {"dice left": np.array(dice, np.str_), "decision": kinds}
    if variant.options.rounds == "single":
        return found
    lost = sum(variant.options.dice_per_seat) - states["in_play"].astype(np.int64)
    return {"round": (lost + 1).astype(str), **found}


def bluffs(variant: Variant, states: np.ndarray) -> np.ndarray:
    """Return which actions are bluffs. See `dice_envs.exact.GameBluffs`.

    They are the bids on a face of which the bidder holds no die; wild dice count.
    """
    params = variant.params
    face_of_bid = [int(face_of(params, np.int64(bid))) for bid in range(params.call)]
    found = np.zeros((len(states), variant.facts.num_actions), np.bool_)
    for row, state in enumerate(states):
        own, wild = state["counts"][state["seat"]], wild_face(params, state)
        lacks = np.array([matching(wild, own, face) == 0 for face in range(params.num_faces)])
        found[row, : params.call] = lacks[face_of_bid]
    return found
