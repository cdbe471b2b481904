"""The game of 30s solved: agents measured and choices valued, and what `solve thirties` prints.

`strategies` has the best strategy for a goal, and others; `figures` the exact distribution of any one's scores, in integers.
Agents may choose at random, so they are evaluated in float64 (`policy_of`, `score_chances`, `measure`).

Source: M. Veeningen, "The game of 30s: an analysis" (2008), sections 2, 3 and 6.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Annotated, Any

import numpy as np

from dice_envs.agent import Agent, Turn, ask, ask_probabilities
from dice_envs.agent.specs import make_agent
from dice_envs.core.batch import dealt
from dice_envs.core.dice import faces_of, new_streams
from dice_envs.core.game import Variant, configure
from dice_envs.core.own import load_own, split_own
from dice_envs.core.work import advance
from dice_envs.exact.contract import ActionValues, Effort, Measurement, ResponseValues, Shown, Solved, SolvedTable, Unit, Whole
from dice_envs.games.thirties import GAME, GOALS, MAX_FACES, Options
from dice_envs.games.thirties.exact.figures import analyse
from dice_envs.games.thirties.exact.strategies import Dice as Dice
from dice_envs.games.thirties.exact.strategies import (
    Goal,
    Rules,
    Strategy,
    asides,
    dice_shown,
    expected_given,
    function_in,
    most_lost,
    named,
    solve,
    throws,
    values_before,
    worths,
)
from dice_envs.games.thirties.exact.strategies import name_of_goal as name_of_goal
from dice_envs.games.thirties.exact.strategies import second_stage as second_stage

ROWS_AT_ONCE = 16_384  # positions that an agent is asked about in one call


def check_alone(variant: Variant, wanted: str) -> None:
    """Raise ValueError for the table game, naming what is wanted."""
    players = variant.options.num_players
    if players != 1:
        raise ValueError(f"num_players must be 1 for {wanted}, not {players}: optimal play of the table game is unknown")


# --- agents -----------------------------------------------------------------------------------------------------------------


def _variant_of(options: Options) -> Variant:
    return GAME.configure(**{**dataclasses.asdict(options), "num_players": 1})


def _counts(num_dice: int, num_faces: int) -> np.ndarray:
    """Count the dice that show each face, (throws, MAX_FACES), for every throw in the order of `throws`."""
    return (dice_shown(num_dice, num_faces)[:, :, None] == np.arange(1, MAX_FACES + 1)).sum(axis=1)


def _positions(variant: Variant) -> np.ndarray:
    """Return a state for every position: for all dice aside in the order of `asides`, all throws in the order of `throws`."""
    rules = Rules.of(variant.options)
    start = dealt(variant, 1)
    parts = []
    for aside in range(rules.num_dice):
        kept, thrown = _counts(aside, rules.num_faces), _counts(rules.num_dice - aside, rules.num_faces)
        states = np.repeat(start, len(kept) * len(thrown))
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


def policy_of(agent: Any, options: Options, seed: int = 0) -> np.ndarray:
    """Return an agent's probabilities in the one-player game; it is asked once in every position.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        options: of the game.
        seed: of the agent's own random stream.

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
        advance(len(index), len(states))
    return policy


def score_chances(rules: Rules, policy: np.ndarray) -> np.ndarray:
    """Return P(score = s) for s = 0, 1, … most, (most + 1,) float64, of a policy as `policy_of` gives it.

    Probabilities flow forwards from one set of dice aside to the next. A set of dice has a code, the sum of its dice's
    entries in `places`. Codes rise in the order of `throws`.
    """
    n, faces = rules.num_dice, rules.num_faces
    places = -((n + 1) ** np.arange(faces, -1, -1, dtype=np.int64))  # by face value
    shown = [dice_shown(dice, faces) for dice in range(n + 1)]
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
    """Measure the expected value of the goal, and the quantities of the other goals. See `dice_envs.exact.GameExact.measure`.

    All are exact. The agent is asked once in every position: 11,914 of them with six dice of six faces, 483,879 with
    eight of eight. Each quantity is compared with the best strategy for it alone, so in general no strategy reaches all
    the optima.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "an exact measure")
    options = variant.options
    rules = Rules.of(options)
    chances = score_chances(rules, policy_of(agent, options, effort.seed))

    def measurement(goal: str, name: str, unit: str, sign: int, note: str = "") -> Measurement:
        worth = np.array(worths(rules, goal), np.float64)
        value, best = float(chances @ worth), float(solve(rules, goal)[1])
        span = rules.num_dice * float(np.ptp(worth[rules.num_dice :]))
        return Measurement(name, sign * value, sign * best, max(0.0, best - value), unit=unit, note=note, span=span)

    unit = "points" if options.goal == "optimal" else _QUANTITIES[options.goal][1]
    others = [measurement(goal, *quantity) for goal, quantity in _QUANTITIES.items() if goal != options.goal]
    return [measurement(options.goal, "value", unit, 1, f"goal {options.goal}"), *others]


# --- values of choices ----------------------------------------------------------------------------------------------------

_COUNTED = {
    "maximize": Unit("pips"),
    "minimize_loss": Unit("points"),
    "thirty_or_over": Unit("turns at the target or over", is_share=True),
}


def _values(before: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the value of throwing 0, 1, … of the lowest dice again, (n, num_dice) float64; NaN for illegal actions."""
    again, faces = np.arange(len(before) - 1), np.arange(1, MAX_FACES + 1)
    counts = states["counts"].astype(np.int64)
    lower = counts.cumsum(axis=1) - counts  # dice that show less than each face
    thrown = np.clip(again[:, None] - lower[:, None], 0, counts[:, None]) @ faces  # pips thrown again
    kept = (states["score"] + counts @ faces)[:, None] - thrown
    return np.where(again < states["thrown"][:, None], before[again, kept], np.nan)


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return the value of each choice for the goal of one player, or at a table for the points of the turn.

    See `dice_envs.exact.GameExact.action_values`.
    """
    options = variant.options
    goal = options.goal if options.num_players == 1 else "optimal"
    rules = Rules.of(options)
    (values,) = _values(values_before(rules, goal), np.array([state]))
    mix = np.zeros(variant.facts.num_actions)
    mix[solve(rules, goal)[0].given(faces_of(state["counts"]), int(state["score"]))] = 1.0
    note = f"with the best choices for the goal {goal} afterwards"
    if options.num_players > 1:
        note = "points given to the next player less those got, with the best choices afterwards; ignores the current score"
    return ActionValues(values, _COUNTED.get(goal, Unit("points")), note, mix)


def response_values(variant: Variant, opponent: Any) -> ResponseValues:
    """Return the values of choices for the goal of one player. See `dice_envs.exact.GameExact.response_values`.

    The reward of "optimal" is expected over the second stage, whose throws are therefore luck.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "the values of choices")
    goal = variant.options.goal
    note = f"with the best choices for the goal {goal} afterwards"
    unit = _COUNTED.get(goal, Unit("points given less points got"))
    rules = Rules.of(variant.options)
    before = values_before(rules, goal)
    start, values = float(before[-1, 0]), functools.partial(_values, before)
    return ResponseValues(unit, note, lambda seat: start, values, whole_team=True, most_lost=most_lost(rules, goal))


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: the dice on the table, and whether some are thrown again. See `GameExact.situations`."""
    dice = np.array(["", "1 die", *(f"{count} dice" for count in range(2, variant.options.num_dice + 1))])
    return {
        "dice on the table": dice[states["thrown"]],
        "choice": np.where(np.asarray(actions) == 0, "keep all", "throw some again"),
    }


# --- results to print ------------------------------------------------------------------------------------------------------


def solve_game(
    variant: Variant,
    goal: Annotated[
        str,
        "maximize, minimize_loss, thirty_or_over, optimal (points given less points got), or FILE.py:NAME or "
        "PACKAGE.MODULE:NAME, a function that gives the worth of a score.",
    ] = "maximize",
    strategy: Annotated[
        str | None,
        "Measure this instead of the best: sixes, fives_and_sixes, beginner, heuristic, another goal, FILE.py:NAME or "
        "PACKAGE.MODULE:NAME (a function or an agent), or an agent that does not play at random, say ppo:FILE,greedy=true.",
    ] = None,
) -> Solved:
    """The game of 30s: the best strategy for a goal, exactly.

    Prints its value, the figures of the paper's tables and the score's whole distribution in whole numbers of cases.

    JSON: {"value", "value_exact", "distribution", "scores", "cases", "figures", ...}, one whole number of
    `distribution` for each of `scores`, out of `cases`.

    Example: solve thirties --goal optimal -o num_dice=5 -o target=25
    """
    if variant.options.num_players != 1:
        raise ValueError("option num_players cannot be set with -o: the turn of one player is solved")
    valued: Goal = (None if goal in GOALS else function_in(goal, "goal")) or goal
    if valued == goal:  # a goal that the game does not have changes nothing in it
        variant = configure(variant, goal=goal)
    rules = Rules.of(variant.options)
    best_of_all, _ = solve(rules, valued)
    chosen = _found(variant, strategy) if strategy else best_of_all
    analysis = analyse(rules, chosen)
    value = analysis.value(valued)
    kind = "a simple strategy" if chosen.simple else "a full strategy"
    of_strategy = {  # the paper's columns; None is infinite
        "expected score": analysis.score,
        "P(target or more)": analysis.reached,
        "expected points below": analysis.below,
        "expected points above": analysis.above,
        "expected points for the next player": analysis.given,
    }
    rows = [(label, "infinite" if figure is None else f"{float(figure):.6f}") for label, figure in of_strategy.items()]
    shown: list[Shown] = [
        f"{chosen.name}, {kind}; {rules.num_dice} dice, {rules.num_faces} faces, target {rules.target}",
        SolvedTable("", (), rows, (0, 1)),
        f"{'value' if strategy else 'best value'} for {goal}: {float(value):.6f}",
    ]
    if strategy:
        most = analyse(rules, best_of_all).value(valued)
        shown.append(f"best value: {float(most):.6f}; short of it by {float(most - value):.6f}")
    found, given = analysis.distribution, expected_given(rules)
    exponent = round(math.log(found.total, rules.num_faces))  # of all cases; the line is as the paper's program writes it
    cases = " ".join(map(str, found.weights))
    shown.append(Whole(f"dist: [{exponent}] from {found.first}: {cases} {{{found.total}}}"))
    data = {
        "game": "thirties",
        "options": variant.changed_options(),
        "goal": goal,
        "strategy": chosen.name,
        "value": float(value),
        "value_exact": str(value),
        "distribution": list(found.weights),
        "scores": list(range(found.first, found.first + len(found.weights))),
        "cases": found.total,
        "figures": {label: None if figure is None else float(figure) for label, figure in of_strategy.items()},
        "expected_given": None if given is None else [float(points) for points in given],
    }
    return Solved(shown, data)


def _found(variant: Variant, name: str) -> Strategy:
    """Return the strategy of that name, or the one that the agent of that spec plays. ValueError if there is none."""
    own = split_own(name)
    found = None if own is None else load_own(*own[:2], "strategy")
    if isinstance(found, type) or (own is None and ":" in name):
        return strategy_of(make_agent(name), variant.options, name)
    return named(Rules.of(variant.options), name)
