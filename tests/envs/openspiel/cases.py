"""Small variants, and ways through their games."""

from dice_envs.exact import measure
from tests.support.variants import SOLVABLE_PERUDO

QUANTITY = ("liars_dice", {"num_dice": 1, "num_faces": 3})
EITHER = ("liars_dice", {"rules": "openspiel", "num_dice": 1, "num_faces": 3})
ONE_ROUND = ("liars_dice", {**QUANTITY[1], "rounds": "single", "starter": "first"})
TWO_ROUNDS = ("liars_dice", {"num_dice": (2, 1), "num_faces": 2, "past_rounds": False})
PERUDO = ("liars_dice", {**TWO_ROUNDS[1], **SOLVABLE_PERUDO})  # the round of 1 die against 1 is of its own kind
STONES = ("fatestones", {"dice": (111444, 333333, 222266, 113456), "hand_size": 2, "scratch": "draw"})
POOLS = ("score_dice", {"pool_a": (3, 2), "pool_b": (2, 2)})
GAMES = {
    "quantity": QUANTITY,
    "one round": ONE_ROUND,
    "either": EITHER,
    "two rounds": TWO_ROUNDS,
    "perudo": PERUDO,
    "stones": STONES,
    "pools": POOLS,
}


def gap_of(name, agent, options):
    """The agent's exploitability by `measure`: the mean of both seats."""
    (found,) = [each for each in measure(name, agent, **options).measures if each.name == "exploitability"]
    return found.gap


def play_on(state, rng):
    """Play at random to the end."""
    while not state.is_terminal():
        state.apply_action(int(rng.choice(state.legal_actions())))
    return state


def play_until_decision(game):
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return state
