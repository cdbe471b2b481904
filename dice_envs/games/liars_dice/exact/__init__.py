"""Liar's Dice for two to six players: optimal play, best responses to any agent, and how often each agent wins.

`seating` has the rounds of a game and what follows each, `round` what may be bid in one, and all hands. Agents are followed
through a round in batches of nodes, at which `moves` asks `sources` for their probabilities; `walk` values the round for
players who respond as one or only look on. `shares` puts rounds together.
`measures` and `values` fulfil the contract of `dice_envs.exact`, with what an agent loses and what choices are worth; `report`
with what commands say of a solution.

`solver` solves whole games round by round, `store` keeps the rounds, `solution` plays them. A round is solved by counterfactual
regret minimisation, `cfr`, for any number of players, on a `tree` that merges what differs in nothing. For two players the tree
also leaves out what is never worth doing: five dice each have 21 million numbers instead of 66. `programme` solves their small
rounds by linear programming.

Words
    round       from the throw of all dice to the call; its starter is player 0, the others follow in the order of play
    table       who has how many dice at the beginning of a round, and which seat starts
    node        a sequence of bids; a slot is its last bid, with the mover where that matters
    hand        the dice of a player; a class holds hands that no later call tells apart
    kind        nodes of the tree with the same last bid and mover, which have the same classes and raises
    leaf        a raise that must be called; in `tree` also one that is never worth raising
    reach       how likely a player comes to a node with a hand; a tail adds it up over hands with k or more matches
    source      what gives a player's probabilities: numbers, a network, a solution, an agent that is asked
    coalition       players who respond as one to the policies of all others
    payoffs     shares of wins that the rest of the game brings, by who loses the round's die
"""

from dice_envs.games.liars_dice.exact.measures import (
    action_values,
    is_one_round,
    measure,
    measure_profile,
    measure_table,
    winning_shares,
)
from dice_envs.games.liars_dice.exact.report import equilibrium, solve_game
from dice_envs.games.liars_dice.exact.values import odds, response_values, situations, traits

__all__ = [
    "action_values",
    "equilibrium",
    "is_one_round",
    "measure",
    "measure_profile",
    "measure_table",
    "odds",
    "response_values",
    "situations",
    "solve_game",
    "traits",
    "winning_shares",
]
