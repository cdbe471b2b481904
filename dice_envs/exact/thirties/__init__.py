"""The game of 30s solved: any strategy's score distribution, the best strategy for a goal, the second stage, in integers.

`strategies` holds strategies and the distributions of their scores; `solution` the second stage, the best strategy for a
goal, and how much of the game is skill; `measures` evaluates agents, `values` the choices in a position.

A throw of k dice has faces**k equally likely cases, and each later throw has fewer dice. So with k dice on the table
every probability is a whole multiple of faces ** -(1 + 2 + ... + k), and nothing is rounded before it is printed.
Python's integers are unbounded: eight dice of eight faces (8**36 cases) are as exact as one. Agents may choose at
random, so they are evaluated in float64 (`policy_of`, `score_chances`, `measure`).

Source: M. Veeningen, "The game of 30s: an analysis" (2008), sections 2, 3 and 6.
"""

from dice_envs.exact.thirties.measures import measure, optima, policy_of, score_chances, strategy_of
from dice_envs.exact.thirties.solution import (
    Analysis,
    Goal,
    analyse,
    expected_given,
    foreknowledge,
    forget_solutions,
    name_of_goal,
    relative_skill,
    second_stage,
    second_stage_points,
    solve,
    values_before,
    worths,
)
from dice_envs.exact.thirties.strategies import Dice, Distribution, Player, Rules, Strategy, asides, differences, throws
from dice_envs.exact.thirties.values import action_values, response_values, situations

__all__ = [
    "Analysis",
    "Dice",
    "Distribution",
    "Goal",
    "Player",
    "Rules",
    "Strategy",
    "action_values",
    "analyse",
    "asides",
    "differences",
    "expected_given",
    "foreknowledge",
    "forget_solutions",
    "measure",
    "name_of_goal",
    "optima",
    "policy_of",
    "relative_skill",
    "response_values",
    "score_chances",
    "second_stage",
    "second_stage_points",
    "situations",
    "solve",
    "strategy_of",
    "throws",
    "values_before",
    "worths",
]
