"""Agents of the game of 30s measured exactly; `measure` and `optima`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import Agent, Turn, ask, ask_probabilities
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.exact import Effort, Measurement
from dice_envs.exact.thirties.solution import solve, worths
from dice_envs.exact.thirties.strategies import Rules, Strategy, asides, check_alone, throws
from dice_envs.games.thirties import GAME, MAX_FACES, Options

__all__ = ["measure", "optima", "policy_of", "score_chances", "strategy_of"]

ROWS_AT_ONCE = 16_384  # positions that an agent is asked about in one call

# --- agents -----------------------------------------------------------------------------------------------------------------


def _variant_of(options: Options) -> Variant:
    return GAME.configure(**{**dataclasses.asdict(options), "num_players": 1})


def _shown(num_dice: int, num_faces: int) -> np.ndarray:
    """Return every throw in the order of `throws`, (throws, num_dice) face values."""
    found = throws(num_dice, num_faces)
    return np.array([throw for throw, _ in found], np.int64).reshape(len(found), num_dice)


def _counts(num_dice: int, num_faces: int) -> np.ndarray:
    """Count the dice that show each face, (throws, MAX_FACES), for every throw in the order of `throws`."""
    return (_shown(num_dice, num_faces)[:, :, None] == np.arange(1, MAX_FACES + 1)).sum(axis=1)


def _positions(variant: Variant) -> np.ndarray:
    """Return a state for every position: for all dice aside in the order of `asides`, all throws in the order of `throws`."""
    rules = Rules.of(variant.options)
    dealt = np.zeros(1, GAME.state)
    variant.kernels.deal(variant.params, dealt, np.zeros(1, np.int64))
    parts = []
    for aside in range(rules.num_dice):
        kept, thrown = _counts(aside, rules.num_faces), _counts(rules.num_dice - aside, rules.num_faces)
        states = np.repeat(dealt, len(kept) * len(thrown))
        states["aside"] = np.repeat(kept, len(thrown), axis=0)
        states["counts"] = np.tile(thrown, (len(kept), 1))
        parts.append(states)
    states = np.concatenate(parts)
    states["thrown"] = states["counts"].sum(axis=1)
    states["score"] = states["aside"] @ np.arange(1, MAX_FACES + 1)
    return states


def strategy_of(agent: Agent, options: Options, name: str = "agent") -> Strategy:
    """Return the strategy of a deterministic agent in the one-player game, which is asked in every position.

    `policy_of` is for agents that choose at random.

    Raises:
        ValueError: the agent's choices are random: asked twice, it gave different answers.
    """
    variant = _variant_of(options)
    rules, states = Rules.of(options), _positions(variant)
    index = np.arange(len(states))
    answers = [ask(agent, variant, states, index, new_streams(seed, len(states))) for seed in (0, 1)]
    if (answers[0] != answers[1]).any():
        raise ValueError(f"{name} plays at random: exact figures need one choice for each position")
    positions = [(throw, aside) for aside in asides(rules) for throw, _ in throws(rules.num_dice - len(aside), rules.num_faces)]
    choices = dict(zip(positions, answers[0].tolist(), strict=True))
    return Strategy(name, lambda throw, aside: choices[throw, aside], "aside")


def policy_of(
    agent: Any, options: Options, seed: int = 0, done: Callable[[int, int], Any] = lambda amount, total: None
) -> np.ndarray:
    """Return an agent's probabilities in the one-player game; it is asked once in every position.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        options: of the game.
        seed: of the agent's own random stream.
        done: called with progress, as (positions asked about since the last call, positions in all).

    Returns:
        (positions, num_dice) float64, the probability of throwing 0, 1, … dice again: for all dice aside in the order of
        `asides`, all throws in the order of `throws`.

    Raises:
        AgentError: the agent's probabilities are not a distribution over the legal actions.
    """
    variant = _variant_of(options)
    states = _positions(variant)
    streams = new_streams(seed, len(states))
    policy = np.empty((len(states), options.num_dice))
    for first in range(0, len(states), ROWS_AT_ONCE):
        index = np.arange(first, min(first + ROWS_AT_ONCE, len(states)))
        policy[index] = ask_probabilities(agent, Turn(variant, states, index, streams[index]))
        done(len(index), len(states))
    return policy


def score_chances(rules: Rules, policy: np.ndarray) -> np.ndarray:
    """Return P(score = s) for s = 0, 1, … most, (most + 1,) float64, of a policy as `policy_of` gives it.

    Probabilities flow forwards from one set of dice aside to the next. A set of dice has a code, the sum of its dice's
    entries in `places`. Codes rise in the order of `throws`.
    """
    n, faces = rules.num_dice, rules.num_faces
    places = -((n + 1) ** np.arange(faces, -1, -1, dtype=np.int64))  # by face value
    shown = [_shown(dice, faces) for dice in range(n + 1)]
    codes = [places[dice].sum(axis=1) for dice in shown]
    reached = [np.zeros(len(found)) for found in codes]  # by number of dice aside: P(these lie aside before a throw)
    reached[0][0] = 1.0
    chances = np.zeros(rules.most + 1)
    start = 0
    for aside in range(n):
        dice = n - aside
        ways = np.array([count for _, count in throws(dice, faces)]) / faces**dice
        size = len(codes[aside]) * len(ways)
        flow = policy[start : start + size].reshape(len(codes[aside]), len(ways), n) * ways[None, :, None]
        flow *= reached[aside][:, None, None]
        start += size
        kept = places[shown[dice]][:, ::-1].cumsum(axis=1)[:, ::-1]  # (throws, dice): code of the dice kept
        score = shown[aside].sum(axis=1)[:, None] + shown[dice].sum(axis=1)
        chances += np.bincount(score.ravel(), flow[:, :, 0].ravel(), rules.most + 1)
        for again in range(1, dice):
            after = np.searchsorted(codes[n - again], codes[aside][:, None] + kept[:, again])
            reached[n - again] += np.bincount(after.ravel(), flow[:, :, again].ravel(), len(codes[n - again]))
    return chances


# --- the measure ----------------------------------------------------------------------------------------------------------

_QUANTITIES = {  # by the goal that optimises it: name, unit, and −1 where low values are good
    "maximize": ("expected score", "pips", 1),
    "thirty_or_over": ("P(target or more)", "probability", 1),
    "minimize_loss": ("points below the target", "points", -1),
}


def optima(variant: Variant) -> dict[str, float]:
    """Return the best expected value of the goal. See `dice_envs.exact.optima`.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "an exact measure")
    return {"value": float(solve(Rules.of(variant.options), variant.options.goal)[1])}


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure the expected value of the goal, and the quantities of the other goals. See `dice_envs.exact.GameMeasure`.

    All are exact. The agent is asked once in every position: 11,914 of them with six dice of six faces, 483,879 with
    eight of eight. Each quantity is compared with the best strategy for it alone, so in general no strategy reaches all
    the optima.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "an exact measure")
    options = variant.options
    rules = Rules.of(options)
    chances = score_chances(rules, policy_of(agent, options, effort.seed, effort.done))

    def measurement(goal: str, name: str, unit: str, sign: int, note: str = "") -> Measurement:
        worth = np.array(worths(rules, goal), np.float64)
        value, best, span = (
            float(chances @ worth),
            float(solve(rules, goal)[1]),
            rules.num_dice * float(np.ptp(worth[rules.num_dice :])),
        )
        return Measurement(name, sign * value, sign * best, max(0.0, best - value), unit=unit, note=note, span=span)

    unit = "points" if options.goal == "optimal" else _QUANTITIES[options.goal][1]
    others = [measurement(goal, *quantity) for goal, quantity in _QUANTITIES.items() if goal != options.goal]
    return [measurement(options.goal, "value", unit, 1, f"goal {options.goal}"), *others]
