"""`measure` of score dice, as `dice_envs.exact` asks for it."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np

from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Variant
from dice_envs.exact import REPEATS, Effort, Measurement
from dice_envs.exact.agents import is_random
from dice_envs.exact.intervals import half_width
from dice_envs.exact.score_dice.policy import (
    best_response,
    count_paths,
    count_sets,
    in_games,
    policy,
    rolls,
    shown_by_any,
    shown_by_highest,
)
from dice_envs.exact.score_dice.response import check_response, response_to_highest

__all__ = ["measure"]

MOST_SETS = 4_000_000  # information sets of one seat against sorted play, at all of which an agent is asked
FEW_SETS = 50_000  # the same for an agent with random answers; and for the exploitability of any agent
MOST_LISTED = 50_000_000  # ways to play a roll, all hands and orders, for which a best response to an agent is computed
SAMPLE = 20_000  # games played where there are too many information sets
GAMES_AT_ONCE = 2_000


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure reward against `highest`, which shows its highest die, and exploitability. See `dice_envs.exact.GameMeasure`.

    Playing at random is an equilibrium with any pools, so its exploitability is 0. The headline is therefore the reward
    won from sorted play, mean of both seats, compared with the best response to it. A random player wins 0 by this mean,
    and so does `highest` itself.

    An agent's reward is that of the best response, minus what each of its choices loses against the best choice, given
    best play afterwards. With at most MOST_SETS information sets all choices are evaluated (unless a smaller sample is
    asked for). With more, and where tied dice are rolled again, the choices in random games are evaluated; the best
    response loses exactly 0 there, too. 4d6 against 4d6 has 3.5 million information sets, ten seconds for a fast agent; 5d6
    are sampled.

    Exploitability is measured up to FEW_SETS information sets, about those of 3d8 against 3d8, and if tied dice are not
    rolled again. For random answers it lies between two bounds. On average a best response to one sample of the answers wins
    more from that sample than can be won from the agent, and less from another sample. The middle is reported.

    Raises:
        ValueError: the best response to sorted play takes too long to compute; or the sample is too small.
    """
    options = variant.options
    check_response(options)
    if effort.sample == 1:
        raise ValueError("sample must be at least 2 games, not 1: a single game has no error")
    optimum = sum(response_to_highest(options, seat).game_value() for seat in range(2)) / 2
    asked_for = effort.sample or math.inf
    sets = _count_sets(variant, to_highest=True)
    if sets <= min(FEW_SETS if is_random(agent) else MOST_SETS, asked_for):
        lost, error = _loss_in_all(variant, agent, effort), 0.0
        note = f"all {sets:,} information sets of each seat"
    else:
        lost, error, games = _loss_in_games(variant, agent, effort)
        note = f"a random sample of {games:,} games from each seat, whose choices are compared with exact values"
    steps = variant.facts.max_steps if options.ties == "reroll" else 2 * (options.num_columns - 1)
    span = steps / 2 * (variant.facts.max_return - variant.facts.min_return)
    headline = Measurement("reward against highest", optimum - lost, optimum, lost, error, "return", note, span)
    all_sets = _count_sets(variant, to_highest=False)
    small = all_sets <= FEW_SETS and count_paths(variant) <= MOST_LISTED
    if not small or all_sets > asked_for:
        reason = "a smaller sample is asked for" if small else "the pools are too large"
        reason = "tied dice are rolled again" if options.ties == "reroll" else reason
        return [dataclasses.replace(headline, note=f"{note}; exploitability is not measured, since {reason}")]
    won, won_error = _exploitability(variant, agent, effort.seed)
    note = f"all {all_sets:,} information sets of each seat"
    return [headline, Measurement("exploitability", won, 0.0, max(0.0, won), won_error, "return", note, span)]


def _count_sets(variant: Variant, to_highest: bool) -> float:
    """Return the larger `count_sets` of both seats; infinite if tied dice are rolled again, as later rolls are not listed."""
    if variant.options.ties == "reroll":
        return math.inf
    return max(count_sets(variant, seat, to_highest) for seat in range(2))


def _losses(variant: Variant, states: np.ndarray, seat: int, chances: np.ndarray) -> np.ndarray:
    """Return what choices with these probabilities (n, actions) lose against `highest`, (n,) float64.

    They are compared with the best choice, given best play afterwards.
    """
    values = response_to_highest(variant.options, seat).action_values(variant, states)
    behind = np.where(chances > 0, values.max(axis=1, keepdims=True) - values, 0.0)
    return (chances * behind).sum(axis=1)


def _loss_in_all(variant: Variant, agent: Any, effort: Effort) -> float:
    """Return how much less than the best response the agent earns from `highest`, mean of both seats."""
    total = sum(int(count_sets(variant, seat, to_highest=True)) for seat in range(2))
    lost = 0.0

    def look(seat: int, chance: float, states: np.ndarray, chances: np.ndarray, weights: np.ndarray) -> None:
        nonlocal lost
        lost += chance * float(weights @ _losses(variant, states, seat, chances))
        effort.done(len(states), total)

    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_highest(roll.hands[1 - seat], variant.options.open_hands)
        policy(variant, agent, seat, roll, shown, effort.seed, functools.partial(look, seat, roll.chance))
    return lost / 2


def _loss_in_games(variant: Variant, agent: Any, effort: Effort) -> tuple[float, float, int]:
    """Return the same from random games, its 95 % half-width, and the number of games.

    An agent with random answers gets a tenth of the games and no error: it is measured ten times, and the error comes from
    these repeats.
    """
    games = planned = effort.sample or SAMPLE
    at_once = min(GAMES_AT_ONCE, max(2, games // REPEATS))
    lost = np.zeros(0)
    while len(lost) < planned:
        count = min(at_once, planned - len(lost))
        seed = effort.seed, len(lost)
        by_seat = [in_games(variant, agent, seat, count, seed, functools.partial(_losses, variant)) for seat in range(2)]
        lost = np.append(lost, (by_seat[0] + by_seat[1]) / 2)
        varies = is_random(agent)
        planned = max(at_once, games // REPEATS) if varies else games
        effort.done(count, planned)
    error = 0.0 if varies else half_width(lost, 0.0, 2.0)
    return float(lost.mean()), error, len(lost)


def _exploitability(variant: Variant, agent: Any, seed: int) -> tuple[float, float]:
    """Return what best responses win from the agent, mean of both seats, and the half-width of its interval.

    The game's values to the two seats cancel out, so this is also the gain above the value.
    """
    most = least = 0.0
    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_any(roll.hands[1 - seat], variant.options.open_hands)
        policies = [policy(variant, agent, seat, roll, shown, seed)]
        if is_random(agent):
            policies.append(policy(variant, agent, seat, roll, shown, derived_seeds(seed, "again")[0]))
        won = best_response(variant, seat, roll, shown, policies)
        most += roll.chance * float(won[0]) / 2
        least += roll.chance * float(won[-1]) / 2
    return (most + least) / 2, (most - least) / 2
