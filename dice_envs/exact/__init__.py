"""Right answers: optimal play, equilibria and best responses; `measure`, which compares any agent with them; and
`action_values`, which says what each choice at a position is worth.

A game gets them by a module or package here of the game's name. It may offer these functions, found by their names:

`measure(variant, agent, effort)`
    how far the agent is from optimal play (`GameMeasure`): `dice_envs.measure`, and all commands that measure
`measure_table(variant, agents, effort)`
    how much each of different agents at one table could gain by leaving its policy (`GameTableMeasure`): `measure --against`
`action_values(variant, state, in_passing)`
    what each action is worth with optimal play afterwards (`GameActionValues`): hints and reviews
`optima(variant)`
    what optimal play reaches of each quantity (`GameOptima`): tournaments of teams
`response_values(variant, opponent, done)`
    what choices are worth against a fixed opponent, for many states at once (`GameResponseValues`): evaluation without luck
`situations(variant, states, actions)`
    headings by which an evaluation sorts decisions, such as dice left (`GameSituations`)
`bluffs(variant, states)`
    which actions are bluffs (`GameBluffs`): `benchmark language` compares how often one bluffs
`odds(variant, state)`
    chances that inform a choice without solving the game (`GameOdds`): odds at the table

No list names these modules. The rest of a module is the game's own: its solvers and detailed figures.

`contract` holds these functions' types and results, `agents` the agent as a game's `measure` sees it, `measuring` the same
functions for callers and odds in any game, `intervals` confidence intervals, `matrix_game` a solver of zero-sum games, `kept` a
cache within a limit on its memory, `progress` callbacks that report progress or stop what takes too long.
"""

from dice_envs.exact.agents import COMPARED, asked
from dice_envs.exact.contract import (
    BEST_RESPONSE_WINS,
    DEVIATION_GAIN,
    MOST_SAMPLE,
    REPEATS,
    ActionValues,
    Effort,
    GameActionValues,
    GameBluffs,
    GameMeasure,
    GameOdds,
    GameOptima,
    GameResponseValues,
    GameSituations,
    GameTableMeasure,
    Measurement,
    Measures,
    ResponseValues,
    offered,
)
from dice_envs.exact.measuring import OPTIMAL, action_values, measure, optima, response_values

__all__ = [
    "BEST_RESPONSE_WINS",
    "COMPARED",
    "DEVIATION_GAIN",
    "MOST_SAMPLE",
    "OPTIMAL",
    "REPEATS",
    "ActionValues",
    "Effort",
    "GameActionValues",
    "GameBluffs",
    "GameMeasure",
    "GameOdds",
    "GameOptima",
    "GameResponseValues",
    "GameSituations",
    "GameTableMeasure",
    "Measurement",
    "Measures",
    "ResponseValues",
    "action_values",
    "asked",
    "measure",
    "offered",
    "optima",
    "response_values",
]
