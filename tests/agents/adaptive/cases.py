"""Variants of Liar's Dice in which the agent is tested."""

from dice_envs import configure

TWO_DICE = configure("liars_dice", num_dice=2)
SMALL = [
    {"num_dice": 2},
    {"num_dice": (1, 2), "starter": "first"},
    {"num_dice": 2, "num_faces": 3, "wild": "ones"},
    {"num_dice": (3, 1), "num_faces": 4},
]
