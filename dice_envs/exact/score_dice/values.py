"""Values of choices in score dice, for one state and for many: against play at random, and against sorted play."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import promises_of
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues
from dice_envs.exact.agents import is_uniform
from dice_envs.exact.score_dice.distribution import score_distribution
from dice_envs.exact.score_dice.response import check_response, response_to_highest
from dice_envs.games.score_dice import HELD, MAX_DICE, Options, lowest_face, pair_points

__all__ = ["action_values", "response_values", "situations"]

MOST_MATCHED = 12  # dice in hand for which all pairings with the other's are added up

# --- against play at random -----------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _meet(params, state, pairs):
    """Set `pairs[i, j]` to P(own die i scores −1, 0 or 1 against the other's die j); return the dice in hand. In place.

    Dice are numbered in the order of their places; a seat holds at most MAX_DICE, the size of `pairs`.
    """
    seat = np.int64(state["seat"])
    count = 0
    for place in range(params.num_actions):
        if state["status"][seat, place] != HELD:
            continue
        own = np.int64(state["faces"][seat, place])
        met = 0
        for die in range(params.num_actions):
            if state["status"][1 - seat, die] != HELD:
                continue
            low, high = np.int64(lowest_face(params, state, 1 - seat, die)), params.sizes[1 - seat][die]
            if params.open_hands:
                low = high = np.int64(state["faces"][1 - seat, die])
            for k in range(3):
                pairs[count, met, k] = 0.0
            for face in range(low, high + 1):
                points = pair_points(params, own, face) if seat == 0 else -pair_points(params, face, own)
                pairs[count, met, points + 1] += 1.0 / (high - low + 1)
            met += 1
        count += 1
    return count


@kernel(allocates=False)
def _pair_off(pairs, count, sums):
    """Write into the last row of sets, sums[2**count − 1], how the pairs score −count … count together, if each pairing has
    weight 1. In place.

    `sums` has a row for each set of the other's dice, as bits: sums over all ways in which the first own dice meet these.
    """
    sums[: 1 << count] = 0.0
    sums[0, count] = 1.0
    for met in range((1 << count) - 1):
        own = 0
        for j in range(count):
            own += met >> j & 1
        for j in range(count):
            if met >> j & 1:
                continue
            for score in range(count - own, count + own + 1):  # so score + k − 1 is from 0 to 2 count
                for k in range(3):
                    sums[met | 1 << j, score + k - 1] += sums[met, score] * pairs[own, j, k]


@kernel
def _against_random(params, states, sums, out):
    """Write the one value of all dice in hand, NaN for other dice. In place."""
    pairs = np.zeros((MAX_DICE, MAX_DICE, 3))
    out[:] = np.nan
    for n in range(len(states)):
        state = states[n]
        count = _meet(params, state, pairs)
        value = 0.0
        if params.pay_score:
            for i in range(count):
                for j in range(count):
                    value += (pairs[i, j, 2] - pairs[i, j, 0]) / count
        else:
            _pair_off(pairs, count, sums)
            ways = 1.0
            for i in range(count):
                ways *= i + 1
            before = np.int64(state["score"]) if state["seat"] == 0 else -np.int64(state["score"])
            for k in range(2 * count + 1):
                score = before + k - count
                value += (int(score > 0) - int(score < 0)) * sums[(1 << count) - 1, k] / ways
        for place in range(params.num_actions):
            if state["status"][state["seat"], place] == HELD:
                out[n, place] = value


def _values(variant: Variant, states: np.ndarray, most: int) -> np.ndarray:
    """Return the values of states in which no more than `most` dice are in hand, (n, num_actions) float64."""
    sums = np.zeros((1, 1) if variant.params.pay_score else (1 << most, 2 * most + 1))
    out = np.empty((len(states), variant.facts.num_actions))
    _against_random(variant.params, states, sums, out)
    return out


def _check_random(options: Options, dice: int) -> None:
    """Raise ValueError where values against play at random are not known, with this many dice in hand."""
    if options.ties == "reroll":
        raise ValueError("ties must be 'none' or 'a' for the value of a choice, not 'reroll'")
    if options.reward == "win" and dice > MOST_MATCHED:
        raise ValueError(f"action values need at most {MOST_MATCHED} dice in hand, not {dice}")


_NOTE = "against play at random, which is an equilibrium: every die is worth the same against it"


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return the value of each die in hand against play at random, which is an equilibrium: the same for all.

    Whatever the seat does, each of its dice meets a random one of the other's that are left. See
    `dice_envs.exact.GameActionValues`.
    """
    held = state["status"][int(state["seat"]), : variant.facts.num_actions] == HELD
    count = int(held.sum())
    _check_random(variant.options, count)
    (values,) = _values(variant, np.array([state]), count)
    unit = "wins minus losses" if variant.options.reward == "win" else "points to come"
    return ActionValues(values, unit, _NOTE, held / count)


# --- against a fixed opponent ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ValuesAgainstRandom:
    """Values of choices against play at random; see `dice_envs.exact.ResponseValues`."""

    variant: Variant
    unit: str
    value: float  # to A
    note: str = _NOTE
    whole_team = False

    def start(self, seat: int) -> float:
        """Return what both players win by any play of the seat."""
        return -self.value if seat else self.value

    def action_values(self, states: np.ndarray) -> np.ndarray:
        """Return the reward to come, the same for all dice in hand: (n, num_actions) float64, NaN for other dice."""
        return _values(self.variant, states, self.variant.options.num_columns)


@dataclasses.dataclass(frozen=True)
class ValuesAgainstHighest:
    """Values of choices against a player that always shows its highest die; see `dice_envs.exact.ResponseValues`."""

    variant: Variant
    unit: str
    note: str = "against sorted play, with the best response to it afterwards"
    whole_team = False

    def start(self, seat: int) -> float:
        """Return the expected reward of the best response."""
        return float(response_to_highest(self.variant.options, seat).game_value())

    def action_values(self, states: np.ndarray) -> np.ndarray:
        """Return the expected reward to come with each die, (n, num_actions) float64, NaN for dice that are not in hand."""
        out = np.empty((len(states), self.variant.facts.num_actions))
        for seat in range(2):
            mine = states["seat"] == seat
            if mine.any():
                out[mine] = response_to_highest(self.variant.options, seat).action_values(self.variant, states[mine])
        return np.where(np.isfinite(out), out, np.nan)


@functools.lru_cache(maxsize=64)
def _value_at_random(options: Options) -> float:
    """Return what A wins if both play at random."""
    scores = score_distribution(*options.pools, options.ties, "unsorted")
    if options.reward == "win":
        return float(scores.win_bias) / 100
    return float(sum(score * chance for score, chance in scores.chances.items()))


def response_values(
    variant: Variant, opponent: Any, /, done: Callable[[float, float], Any] = lambda amount, total: None
) -> ValuesAgainstRandom | ValuesAgainstHighest:
    """Return the values of choices against play at random (`nash`, `random`, `shuffled`) or `highest`.

    See `dice_envs.exact.GameResponseValues`.

    Raises:
        ValueError: another opponent; tied dice are rolled again or too many dice in hand, against play at random; or a best
            response to sorted play takes too long to compute.
    """
    options = variant.options
    unit = "return" if options.reward == "win" else "points"
    if promises_of(opponent).strategy == "highest":
        check_response(options)
        return ValuesAgainstHighest(variant, unit)
    if not is_uniform(opponent):
        raise ValueError(
            "opponent must be nash, random, shuffled or highest for the values of choices, "
            f"not {opponent.name}: no best response to others is known"
        )
    _check_random(options, options.num_columns)
    return ValuesAgainstRandom(variant, unit, _value_at_random(options))


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: dice in hand, and the place of the chosen one among them by its face.

    See `dice_envs.exact.GameSituations`.
    """
    index = np.arange(len(states))
    seats = states["seat"].astype(np.int64)
    faces = np.where(states["status"][index, seats] == HELD, states["faces"][index, seats], 0)
    chosen = faces[index, actions]
    lowest = np.where(faces > 0, faces, np.iinfo(faces.dtype).max).min(axis=1)
    dice = np.array([f"{count} {'die' if count == 1 else 'dice'}" for count in range(MAX_DICE + 1)])
    choice = np.select([chosen == faces.max(axis=1), chosen == lowest], ["the highest die", "the lowest die"], "another die")
    return {"dice in hand": dice[(faces > 0).sum(axis=1)], "choice": choice}
