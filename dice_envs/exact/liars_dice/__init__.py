"""Liar's Dice between two: optimal play, best responses to any agent, and how often one agent beats another.

`solution` solves whole games round by round, `round` one round by counterfactual regret minimisation, `programme` small ones
by linear programming; `tree` holds the bids of a round, `walk` follows an agent through them, `responses` keeps the best
responses found. `measures` fulfils the contract of `dice_envs.exact`.
"""

from dice_envs.exact.liars_dice.measures import (
    action_values,
    exploitability,
    measure,
    odds,
    response_values,
    winning_probability,
)

__all__ = ["action_values", "exploitability", "measure", "odds", "response_values", "winning_probability"]
