"""Advice for the player to move: values of the choices. Reviews of finished games: what each move cost, and how much was luck.

Both have one form for all front ends. Where a game is won or lost, all figures are in percent of winning.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from dice_envs.agent.specs import players
from dice_envs.core.game import Variant
from dice_envs.core.view import how_often
from dice_envs.core.work import advance, hinting, is_heard, say
from dice_envs.evaluation import NO_COST, Scale, percent_of_winning, scale_of
from dice_envs.exact import ActionValues, ResponseValues, action_values, response_values
from dice_envs.exact.contract import GAMES_WON, RETURN
from dice_envs.exact.measuring import odds
from dice_envs.table.sitting import Entry, Sitting

NOTHING = "gave nothing away"  # in the words of a review
MOST_ROWS = 5  # shown where not all choices have been tried


@dataclasses.dataclass(frozen=True)
class MoveValue:
    """One choice and its value."""

    action: int
    words: str  # the action in words
    value: float  # in the advice's unit
    text: str  # the value as people read it, with its unit and, if it is estimated, its 95 % interval
    share: float | None  # the solution's probability of this choice; None where there is no solution
    close: bool  # whether it may be the best: always for the first one, for others where a sample cannot tell them from it


@dataclasses.dataclass(frozen=True)
class Advice:
    """Values of all legal choices of the seat to move."""

    title: str  # the meaning of the list
    meaning: str  # that of the values, such as "chance to win"
    rows: tuple[MoveValue, ...]  # the best first
    note: str  # what the values assume
    sample: str  # what was drawn for them; "" if they are exact
    sentence: str  # the best choice and why, for a person; "" for odds


def figure(value: float, values: ActionValues, error: float | None = None, sign: bool = False) -> str:
    """Return a value as people read it: `61.3 %` where `values` are shares, else with their unit, `0.124 ± 0.020 return`."""
    unit, digits = values.unit, 1 if values.unit.is_share else 3
    if error is not None:
        error = None if math.isnan(error) else math.ceil(error * 1000 - 1e-6) / 1000  # up: none has width 0
    return unit.text(unit.figure(value, error, digits, sign))


def noted(found: Advice | Review | ActionValues) -> str:
    """Return what values assume, and what was drawn for them."""
    return "; ".join(filter(None, (found.note, found.sample)))


def _advice(variant: Variant, state: Any, values: ActionValues, title: str) -> Advice:
    rows: list[MoveValue] = []
    order, legal = values.best_first, len(variant.legal_actions(state))
    for action in order if len(order) == legal else order[:MOST_ROWS]:
        error = None if values.errors is None else float(values.errors[action])
        value = float(values.values[action])
        share = None if values.mix is None else float(values.mix[action])
        close = not rows or (error is not None and rows[0].value - value <= error)
        rows.append(MoveValue(action, variant.describe_action(action), value, figure(value, values, error), share, close))
    title += f"; {len(order)} of {legal} were tried" * (len(order) < legal)
    return Advice(
        title, values.unit.meaning, tuple(rows), values.note, values.sample, _sentence(variant, state, values, rows[0])
    )


def _sentence(variant: Variant, state: Any, values: ActionValues, best: MoveValue) -> str:
    """Return the advice for a person: the best choice and the reason, by what it claims or else by its value."""
    chance = math.nan if values.chances is None else float(values.chances[best.action])
    if variant.game.reason is not None and not math.isnan(chance):
        return variant.game.reason(variant.options, state, best.action, chance)
    sentence = best.words[:1].upper() + best.words[1:]
    if best.share is not None and best.share < 0.95:
        sentence += f", as optimal play {how_often('does', best.share)}"
    unit = values.unit
    reason = f"it wins {100 * best.value:.0f} {unit.of_100} in 100" if unit.of_100 else f"{best.value:.1f} {unit} on average"
    return f"{sentence}: {reason}."


def give_hint(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the value of each choice with optimal play afterwards; where none is known by playouts, or else the odds.

    Only what the seat to move may know is used. Liar's Dice may have to be solved first, which can take a minute. A variant
    that would take longer is not solved for a hint (see `dice_envs.exact.action_values`). `seed` fixes the sample.

    Raises:
        ValueError: the game is over.
    """
    values = players("hint").values_of(variant, state, seed)
    if values is None:
        advice = give_odds(variant, state, seed)
        note = f"{advice.note}; nobody knows the best move here, and no sample tells it"
        return dataclasses.replace(advice, note=note, sentence="No choice is clearly better than the others.")
    title = "what each choice is worth" + (", estimated" if values.errors is not None else "")
    return _advice(variant, state, values, title)


def give_odds(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the odds of each choice from what the seat to move may know: the game's own, or those of random play.

    Arguments and errors are those of `give_hint`.
    """
    advice = _advice(variant, state, percent_of_winning(variant, odds(variant, state, seed)), "the odds")
    return dataclasses.replace(advice, sentence="")


# --- reviews ---------------------------------------------------------------------------------------------------------

MOST_REVIEWED = 40_000_000  # limit on the moves of all playouts of a review together
NO_SPLIT = "luck and play are told apart only where optimal play of whole games is known"

# A move is "fine" below FINE, a "slip" below SLIP, else a "blunder". Both are shares of the distance between the best and the
# worst result: where a game is won or lost, 1 and 5 points of a hundred.
FINE, SLIP = 0.01, 0.05
Mark = Literal["best", "fine", "slip", "blunder"]


@dataclasses.dataclass(frozen=True)
class Judged:
    """One move of a review; the first four fields are as in `Entry`."""

    number: int
    seat: int
    action: int
    words: str
    cost: float  # value of the best action less that of the move, 0 or more; 0 where a sample cannot tell the two apart
    best: int  # the best action; `action` itself if the cost is 0
    verdict: str  # what it cost, in words
    before: float | None = None  # the result that the seat could expect before the move; None where it is not known
    after: float | None = None  # the same after the move
    mark: Mark = "best"  # how much it cost; see FINE and SLIP
    # False where optimal play of the others could not have led here: the cost weighs their dice by their bids; no sum has it.
    counted: bool = True

    @property
    def text(self) -> str:
        """The move and its verdict in one line."""
        return f"move {self.number}: {self.words}{' ' if self.cost else '; '}{self.verdict}"


class Point(NamedTuple):
    """What a seat could expect at one moment of a game."""

    number: int  # of the move before it; 0 at the start
    value: float  # the expected result
    # What has changed it since the point before: the seat's own "play", or "luck", which is all else.
    by: Literal["play", "luck"]


@dataclasses.dataclass(frozen=True)
class Split:
    """A seat's result, divided into play and luck: result = start + play + luck."""

    start: float  # the result that the best play could expect before the game
    result: float  # what the seat got: the share of a game won where two players win or lose it, else the return
    play: float  # what its own moves gave away, 0 or less
    luck: float  # what dice and the other players did
    points: tuple[Point, ...]  # how the expected result changed
    who: str  # the seat's name
    scale: Scale  # of all these

    @property
    def outcome(self) -> str:
        """The result in words: "won", "lost" or "tied" of a game with a winner, else its figure."""
        if self._is_won:
            return {0.0: "lost", 1.0: "won"}.get(self.result, "tied")
        return f"{self.result:g} {self.scale.unit}"

    @property
    def _is_won(self) -> bool:
        return self.scale.unit == GAMES_WON

    @property
    def text(self) -> str:
        """All this in one line."""
        got = "" if self._is_won else "got "
        return f"{self.who} {got}{self.outcome}: luck {amount(self.luck, self.scale)}, play {amount(self.play, self.scale)}"


@dataclasses.dataclass(frozen=True)
class Review:
    """Costs of the moves of a game."""

    moves: tuple[Judged, ...]  # every move of the reviewed seats at which there was a choice
    totals: dict[int, float]  # seat → cost of all its moves
    lost: dict[int, str]  # seat → the same as people read it; "" if it is nothing
    note: str  # what the values assume
    # Seat → its result, divided into play and luck; empty where that is not known.
    splits: dict[int, Split] = dataclasses.field(default_factory=dict)
    sample: str = ""  # what was drawn for the values; "" if they are exact

    @property
    def texts(self) -> dict[int, str]:
        """Seat → what all its moves gave away, in words."""
        return {seat: f"gave away {lost}" if lost else NOTHING for seat, lost in self.lost.items()}

    @functools.cached_property
    def by_number(self) -> dict[int, Judged]:
        """Number of a move → its cost."""
        return {move.number: move for move in self.moves}

    @functools.cached_property
    def worst(self) -> dict[int, Judged]:
        """Seat → its costliest move of those that count, the first of several; without seats that gave nothing away."""
        costly = [move for move in reversed(self.moves) if move.counted and move.cost]
        return {move.seat: move for move in sorted(costly, key=lambda move: move.cost)}

    @functools.cached_property
    def marks(self) -> Mapping[int, Counter[str]]:
        """Seat → mark → number of its moves that count."""
        found = defaultdict[int, Counter[str]](Counter)
        for move in self.moves:
            if move.counted:
                found[move.seat][move.mark] += 1
        return found


def review(sitting: Sitting, agents: bool = False) -> Review:
    """Compare every move of a person with the best one, and divide the results into play and luck.

    Values are those against optimal play where they are known exactly for many positions at once; else those that `give_hint`
    shows, without the division. A move is left out where no sample tells its choices apart. With `agents` their moves are
    reviewed too. Advances by moves (see `dice_envs.core.work`); a listener hears how many are reviewed.

    Raises:
        ValueError: the game is not over: a review shows what was hidden.
    """
    if not sitting.over:
        raise ValueError("a game is reviewed when it is over")
    variant = sitting.variant
    seats = [seat for seat in range(len(sitting.seats)) if agents or seat in sitting.people]
    entries = [
        entry
        for entry in sitting.history()
        if entry.seat in seats and len(variant.legal_actions(sitting.position(entry.number - 1).state)) > 1
    ]
    if not seats:
        return Review((), {}, {}, "")
    try:
        with hinting():  # else people would wait for too long
            action_values(variant, sitting.position(0).state)
        values = response_values(variant)
    except ValueError:
        return _by_single_values(sitting, seats, entries)
    return _by_response_values(sitting, seats, entries, values)


def _one_by_one(entries: Sequence[Entry], moves: int) -> Iterator[Entry]:
    """Yield moves to review, and tell how many of all `moves` are reviewed."""
    before = 0
    for entry in entries:
        advance(entry.number - before, moves)
        before = entry.number
        if is_heard():
            say(f"reviewed {entry.number} of {moves} moves")
        yield entry


def _by_single_values(sitting: Sitting, seats: Sequence[int], entries: Sequence[Entry]) -> Review:
    """Review by the values that `give_hint` shows."""
    each = {}
    most = MOST_REVIEWED // max(len(entries), 1)
    for entry in _one_by_one(entries, len(sitting)):
        state = sitting.position(entry.number - 1).state
        values = players("hint").values_of(sitting.variant, state, entry.number, most, entry.action)
        if values is not None:
            each[entry] = values
    spread = _spread(sitting.variant, list(each.values()))
    moves = [_judged(sitting.variant, entry, found, spread) for entry, found in each.items()]
    if not each:
        return Review((), {}, {}, "what these moves have cost is not known")
    found = next(iter(each.values()))
    reviewed = dataclasses.replace(_reviewed(moves, seats, found, f"{found.note}; {NO_SPLIT}"), sample=found.sample)
    if not found.unit.is_share:
        return reviewed
    # Each move keeps a share of the chance to win that it found. What all together have not kept is at most the whole game.
    kept = dict.fromkeys(seats, 1.0)
    for move, values in zip(moves, each.values(), strict=True):
        kept[move.seat] *= 1 - move.cost / max(float(np.nanmax(values.values)), NO_COST)
    lost = {seat: f"{figure(1 - share, found)} of the chances to win" if share < 1 else "" for seat, share in kept.items()}
    return dataclasses.replace(reviewed, totals={seat: 1 - share for seat, share in kept.items()}, lost=lost)


def _spread(variant: Variant, each: Sequence[ActionValues]) -> float:
    """Return what marks are shares of: the range of results, or of all values if these are no results, such as points."""
    if not each or each[0].unit.is_share:
        return 1.0
    if each[0].unit == RETURN:
        low, high = variant.facts.likely_returns
        return high - low
    return float(max(np.nanmax(found.values) for found in each) - min(np.nanmin(found.values) for found in each))


_NOT_COUNTED = "not counted: optimal play would not have led here"


def _by_response_values(sitting: Sitting, seats: Sequence[int], entries: Sequence[Entry], values: ResponseValues) -> Review:
    """Review by the values against optimal play, with results divided into play and luck."""
    positions = [sitting.position(entry.number - 1) for entry in entries]
    scale = scale_of(sitting.variant, values)
    moves, most = [], MOST_REVIEWED // max(len(entries), 1)
    found: ActionValues | None = None
    states = np.array([position.state for position in positions], sitting.variant.game.state)
    still = values.action_values(states) if positions else ()
    for entry, position, own in zip(_one_by_one(entries, len(sitting)), positions, still, strict=True):
        with hinting():
            single = action_values(sitting.variant, position.state)
        found = ActionValues(scale.of(position.returns[position.mover] + own), scale.unit, values.note, single.mix)
        move = _judged(sitting.variant, entry, found, scale.spread)
        best, after = float(np.nanmax(found.values)), float(found.values[move.action])
        if single.reached:
            moves.append(dataclasses.replace(move, before=best, after=after))
        else:
            weighed = players("hint").values_of(sitting.variant, position.state, entry.number, most, entry.action)
            move = _judged(sitting.variant, entry, weighed or percent_of_winning(sitting.variant, single), scale.spread)
            moves.append(dataclasses.replace(move, counted=False, verdict=f"{move.verdict} ({_NOT_COUNTED})"))
    others = ", and what the others did" if len(sitting.seats) > 1 else ""
    note = f"{values.note}; luck is all that was not the player's own choice: the dice{others}"
    splits = {seat: _split(sitting, seat, moves, values, scale) for seat in seats}
    return dataclasses.replace(_reviewed(moves, seats, found, note), splits=splits)


def _split(sitting: Sitting, seat: int, moves: Sequence[Judged], values: ResponseValues, scale: Scale) -> Split:
    start, result = float(scale.of(values.start(seat))), float(scale.of(sitting.returns[seat]))
    points = [Point(0, start, "luck")]
    for move in moves:
        if move.seat == seat and move.before is not None and move.after is not None:
            points += [Point(move.number - 1, move.before, "luck"), Point(move.number, move.after, "play")]
    points.append(Point(len(sitting), result, "luck"))
    play = sum(after.value - before.value for before, after in itertools.pairwise(points) if after.by == "play")
    who = sitting.variant.seat_name(seat, seat if sitting.people == (seat,) else None)
    return Split(start, result, play, result - start - play, tuple(points), who, scale)


def level(value: float, scale: Scale) -> str:
    """Return an expected result as people read it: `41 %` of winning, or a number in the game's unit."""
    if scale.unit.is_share:
        return f"{100 * value:.0f} %"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def amount(change: float, scale: Scale) -> str:
    """Return a change of the expected result as people read it: "−31 %" of winning, "−0.35 patients saved"."""
    digits = int(abs(change) < 0.01) if scale.unit.is_share else 2
    text = scale.unit.figure(change, digits=digits, sign=True)
    return scale.unit.text(text.replace("-", "−") if float(text) else "0")


def _judged(variant: Variant, entry: Entry, found: ActionValues, spread: float) -> Judged:
    """Judge a move by the values of the position before it."""
    number, action, words = entry.number, entry.action, entry.words
    assert action is not None  # the history of a game that is over hides nothing
    best = next((each for each in found.best_first[:1] if each != action), int(np.nanargmax(found.values)))
    cost = float(np.nanmax(found.values) - found.values[action])
    if cost <= (NO_COST if found.errors is None else found.errors[action]):
        clearly = "" if found.errors is None else "clearly "
        return Judged(number, entry.seat, action, words, 0.0, action, f"nothing was {clearly}better")
    better = f"{variant.describe_action(best)} had {figure(float(found.values[best]), found)}"
    verdict = f"cost {figure(cost, found)}; {better}"
    mark: Mark = "fine" if cost < FINE * spread else "slip" if cost < SLIP * spread else "blunder"
    return Judged(number, entry.seat, action, words, cost, best, verdict, mark=mark)


def _reviewed(moves: Sequence[Judged], seats: Sequence[int], found: ActionValues | None, note: str) -> Review:
    totals = {seat: sum(move.cost for move in moves if move.seat == seat and move.counted) for seat in seats}
    lost = {seat: f"{figure(total, found)} in all" if found and total else "" for seat, total in totals.items()}
    return Review(tuple(moves), totals, lost, note)
