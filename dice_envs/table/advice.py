"""Advice for the player to move: values of the choices, in one form for all front ends.

Where a game is won or lost, all figures are in percent of winning.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from dice_envs.agent import players
from dice_envs.agent.casting import make_player
from dice_envs.agent.compiled import team_of
from dice_envs.core.batch import checked_record
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.evaluation import GAMES_WON, scale_of
from dice_envs.exact import ActionValues, action_values
from dice_envs.exact.intervals import half_width
from dice_envs.exact.measuring import odds, play_out

MOST_MOVES = 5_000_000  # of the playouts of one position: a few seconds
ROUNDS = 3  # of playouts; after each one, choices that are clearly worse than the best are left out
LEAST, MOST = 100, 20_000  # playouts of a choice in a round
WON = f"% of {GAMES_WON}"
_MEANINGS = {WON: "chance to win", "% of rounds won": "chance to win", "% likely": "how likely"}


@dataclasses.dataclass(frozen=True)
class MoveWorth:
    """One choice and its value.

    Attributes:
        action, words: the choice.
        worth: its value, in the advice's unit.
        text: the value as people read it, with its unit and, if it is estimated, its 95 % interval.
        share: the solution's probability of this choice; None where there is no solution.
        close: whether it may be the best: always for the first one, for others where a sample cannot tell them from it.
    """

    action: int
    words: str
    worth: float
    text: str
    share: float | None
    close: bool


@dataclasses.dataclass(frozen=True)
class Advice:
    """Values of all legal choices of the seat to move.

    Attributes:
        title: the meaning of the list.
        meaning: that of the values, such as "chance to win".
        rows: the best first.
        note: what the values assume.
    """

    title: str
    meaning: str
    rows: tuple[MoveWorth, ...]
    note: str


def figure(value: float, values: ActionValues, error: float | None = None, sign: bool = False) -> str:
    """Return a value as people read it: `61.3 %` where `values` are shares, else with their unit, `0.124 ± 0.020 return`."""
    factor, digits, unit = (100, 1, "%") if values.are_shares else (1, 3, values.unit)
    text = f"{factor * value:{'+' if sign else ''}.{digits}f}"
    interval = "" if error is None or math.isnan(error) else f" ± {factor * error:.{digits}f}"
    return f"{text}{interval} {unit}"


def percent_of_winning(variant: Variant, values: ActionValues) -> ActionValues:
    """Return values in percent of winning, where a tie counts half, if they are returns of a game that is won or lost."""
    scale = scale_of(variant, values)
    if scale.unit != GAMES_WON or not values.unit.startswith(("return", "wins minus losses")):
        return values
    errors = None if values.errors is None else scale.factor * values.errors
    note = values.note.replace("counts 0", "counts one half")
    return values._replace(values=scale.of(values.values), unit=WON, errors=errors, note=note)


def values_of(
    variant: Variant, state: Any, seed: int, most: int | None = None, played: int | None = None
) -> ActionValues | None:
    """Return exact values; where these are unknown or too slow those of playouts; None if these do not tell choices apart.

    `errors` of playouts are half-widths of the 95 % intervals: of the best value, and of the distances of the others from it.

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        seed: fixes the playouts.
        most: limit on their moves, above which each choice has LEAST playouts in a round; None: MOST_MOVES.
        played: an action whose distance from the best matters; None: all matter.

    Raises:
        ValueError: `state` is no such record, or the game is over.
    """
    state = checked_record(variant, state)
    try:
        return percent_of_winning(variant, action_values(variant, state, in_passing=True))
    except ValueError:
        return _playouts(variant, state, seed, MOST_MOVES if most is None else most, played)


def _playouts(variant: Variant, state: Any, seed: int, most: int, played: int | None) -> ActionValues | None:
    """Return mean results of each choice if all then play as the game's usual opponent; see `values_of`.

    All that the seat cannot know is drawn anew for each playout, and all choices are tried in the same ones.
    """
    spec = players().usual(variant)
    team = team_of([make_player(variant, spec)], variant)
    if team is None or spec == "random":
        return None
    rest = np.array(variant.legal_actions(state))
    behind, errors = (np.full(variant.facts.num_actions, np.nan) for _ in range(2))
    spread = variant.facts.max_return - variant.facts.min_return
    level, games, moves, played_out, told = 0.0, LEAST, 0, 0, False
    for number in range(ROUNDS):
        if number:
            left = (most - moves) * played_out // moves  # playouts
            games = min(MOST, max(LEAST, left // (ROUNDS - number) // len(rest)))
        hidden, streams = (new_streams(np.random.SeedSequence(seed, spawn_key=(number, k)), games) for k in range(2))
        earned, more = play_out(variant, team, state, rest.tolist(), hidden, streams)
        moves += more
        played_out += earned.size
        best = int(earned.mean(axis=1).argmax())
        level = float(earned[best].mean())
        lost = earned[best] - earned
        behind[rest] = lost.mean(axis=1)
        errors[rest] = [half_width(each, -spread, spread) for each in lost]
        first = rest[best]
        errors[first] = half_width(earned[best], variant.facts.min_return, variant.facts.max_return)
        told |= bool((behind[rest] > errors[rest]).any())
        rest = rest[(behind[rest] <= errors[rest]) | (rest == played)]
        if played is not None and number == ROUNDS - 2:
            rest = np.unique([first, played])  # a fresh sample tells what the move cost
    if not told:
        return None
    words = players().in_words(variant, spec)
    note = f"estimated: the others hold any dice, and all play on as the {words} does; 95 % intervals, seed {seed}"
    found = ActionValues(level - behind, "return", note, errors=errors)
    return percent_of_winning(variant, found)


def _advice(variant: Variant, values: ActionValues, title: str) -> Advice:
    legal = np.flatnonzero(~np.isnan(values.values))
    best_first = legal[np.argsort(-values.values[legal], kind="stable")].tolist()
    rows: list[MoveWorth] = []
    for action in best_first:
        error = None if values.errors is None else float(values.errors[action])
        worth = float(values.values[action])
        share = None if values.mix is None else float(values.mix[action])
        close = not rows or (error is not None and rows[0].worth - worth <= error)
        rows.append(MoveWorth(action, variant.describe_action(action), worth, figure(worth, values, error), share, close))
    return Advice(title, _MEANINGS.get(values.unit, values.unit.removeprefix("% of ")), tuple(rows), values.note)


def give_hint(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the value of each choice with optimal play afterwards; where none is known by playouts, or else the odds.

    Only what the seat to move may know is used. Liar's Dice may have to be solved first, which can take a minute. A variant
    that would take longer is not solved for a hint (see `dice_envs.exact.action_values`).

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        seed: fixes the sample.

    Raises:
        ValueError: the game is over.
    """
    values = values_of(variant, state, seed)
    if values is None:
        advice = give_odds(variant, state, seed)
        return dataclasses.replace(advice, note=f"{advice.note}; nobody knows the best move here, and no sample tells it")
    return _advice(variant, values, "what each choice is worth" + (", estimated" if values.errors is not None else ""))


def give_odds(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the odds of each choice from what the seat to move may know: the game's own, or those of random play.

    Arguments and errors are those of `give_hint`.
    """
    return _advice(variant, percent_of_winning(variant, odds(variant, state, seed)), "the odds")
