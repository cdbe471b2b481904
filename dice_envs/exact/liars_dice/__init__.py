"""Liar's Dice for two to six players: optimal play, best responses to any agent, and how often each agent wins.

`seating` has the rounds of a game and what follows each, `round` what may be bid in one, `hands` all hands. Agents are followed
through a round in batches of nodes, at which `moves` asks `sources` for their probabilities: `parties` values the round for
players who respond as one or only look on, `walk` finds a best response of one of two players, by classes of hands. `shares`
puts rounds together, `probes` finds what an agent's play depends on, `responses` keeps the best responses found. `measures`
fulfils the contract of `dice_envs.exact`, as does `values` with the `table` of what choices are worth.

`solver` solves whole games round by round. Between two players `cfr` solves one by counterfactual regret minimisation on the
`nodes` of its `tree`, `programme` small ones by linear programming; `store` keeps them, `solution` plays from them.
`multiplayer` does so at tables of three and more.
"""

from dice_envs.exact.liars_dice.measures import (
    action_values,
    exploitability,
    measure,
    measure_table,
    odds,
    winning_probability,
    winning_shares,
)
from dice_envs.exact.liars_dice.values import bluffs, response_values, situations

__all__ = [
    "action_values",
    "bluffs",
    "exploitability",
    "measure",
    "measure_table",
    "odds",
    "response_values",
    "situations",
    "winning_probability",
    "winning_shares",
]
