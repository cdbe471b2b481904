"""Score dice: score distributions as fractions, equilibria, and best responses.

`distribution` counts scores exactly, `hands` holds what players know of a hand, `equilibrium` solves small games, `response`
finds best responses to sorted play, `policy` asks any agent. `measures` fulfils the contract of `dice_envs.exact`.
"""

from dice_envs.exact.score_dice.measures import action_values, measure
from dice_envs.exact.score_dice.response import response_to_highest

__all__ = ["action_values", "measure", "response_to_highest"]
