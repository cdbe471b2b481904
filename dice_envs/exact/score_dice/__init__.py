"""Score dice: score distributions as fractions, equilibria, and best responses.

`distribution` counts scores exactly, `hands` holds what players know of a hand, `equilibrium` solves small games, `response`
finds best responses to sorted play, `policy` asks any agent; `measures` evaluates agents, `values` the choices in a position.
"""

from dice_envs.exact.score_dice.measures import measure
from dice_envs.exact.score_dice.response import response_to_highest
from dice_envs.exact.score_dice.values import action_values, response_values, situations

__all__ = ["action_values", "measure", "response_to_highest", "response_values", "situations"]
