"""Single figures of agents of Liar's Dice for two players, by the project's own walk."""

import numpy as np

from dice_envs.exact import Effort
from dice_envs.games.liars_dice.exact import measure, winning_shares
from dice_envs.games.liars_dice.exact.walk import Coalition, Walk


def exploitability(variant, agent):
    """What best responses win from an agent that states its probabilities."""
    return measure(variant, agent, Effort())[0].value


def winning_probability(variant, agent, other):
    """How often an agent wins from another."""
    return winning_shares(variant, [agent, other])[0]


def respond(round_, player, source):
    """How often the best response to a player wins a round of two."""
    return Walk(round_, [source, source], [Coalition((1 - player,), np.eye(2)[player])]).values()[0]
