"""Right answers: optimal play, equilibria and best responses; `measure`, which compares any agent with them; and
`action_values`, which says what each choice at a position is worth.

A game gets them by a module or package `exact` in its folder in `dice_envs.games`. Of the functions that `GameExact` explains
it offers those that it can, found by their names. The rest is the game's own: its solvers and detailed figures.

`contract` holds these functions' types and results, `agents` the agent as a game's `measure` sees it and whether it answers
alike each time, `measuring` the same functions for callers and odds in any game, `intervals` confidence intervals,
`matrix_game` a solver of zero-sum games, `kept` a cache within a limit on its memory.
"""

from dice_envs.exact.agents import asked
from dice_envs.exact.contract import (
    BEST_RESPONSE_WINS,
    DEVIATION_GAIN,
    GAMES_WON,
    RETURN,
    ActionValues,
    Effort,
    GameExact,
    Measurement,
    Measures,
    ResponseValues,
    Unit,
    offered,
)
from dice_envs.exact.measuring import OPTIMAL, action_values, measure, optima, response_values

__all__ = [
    "BEST_RESPONSE_WINS",
    "DEVIATION_GAIN",
    "GAMES_WON",
    "OPTIMAL",
    "RETURN",
    "ActionValues",
    "Effort",
    "GameExact",
    "Measurement",
    "Measures",
    "ResponseValues",
    "Unit",
    "action_values",
    "asked",
    "measure",
    "offered",
    "optima",
    "response_values",
]
