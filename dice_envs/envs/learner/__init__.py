"""Games of a learner against opponents, on which the environments of `gym`, `sb3` and `tensor` are built.

`games` holds SeatGames, `opponents` the agents that it takes, with the variant and the spaces of one seat, `records` shared
arrays, `turn` a learner's turn as one kernel, and `device` the turn on a GPU.
"""

from dice_envs.envs.learner.games import SeatGames
from dice_envs.envs.learner.opponents import Opponents, Pool, seat_spaces, seat_variant
from dice_envs.envs.learner.records import LEARNER, Shown, Step

__all__ = ["LEARNER", "Opponents", "Pool", "SeatGames", "Shown", "Step", "seat_spaces", "seat_variant"]
