"""Liar's Dice between two: optimal play, best responses to any agent, and how often one agent beats another; `multiplayer` has
tables of three and more.

`solver` solves whole games round by round: `elimination` has their rounds, `cfr` solves one by counterfactual regret
minimisation on the `nodes` of its `tree`, `programme` small ones by linear programming; `store` keeps them, `solution`
plays from them. `hands` numbers all hands. `walk` follows agents through a `round` in batches of nodes, at which `moves` asks
`sources` for their probabilities; `stages` does so for all rounds of a game, `probes` finds what an agent's play depends on;
`responses` keeps the best responses found. `measures` fulfils the contract of `dice_envs.exact`, as does `values` with the
`table` of what choices are worth.
"""

from dice_envs.exact.liars_dice.measures import (
    action_values,
    exploitability,
    measure,
    odds,
    winning_probability,
)
from dice_envs.exact.liars_dice.multiplayer.measures import measure_table, winning_shares
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
