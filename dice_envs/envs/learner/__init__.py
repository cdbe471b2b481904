"""Games of a learner against opponents, on which the environments of `gym` and `sb3` are built.

`games` holds SeatGames, `opponents` the agents that play against the learner, `records` shared arrays, and `compiled` a
learner's turn as one compiled loop.
"""

from dice_envs.envs.learner.games import SeatGames, check_arrays, seat_spaces, seat_variant
from dice_envs.envs.learner.opponents import Opponents, Pool
from dice_envs.envs.learner.records import LEARNER, Shown, Step

__all__ = ["LEARNER", "Opponents", "Pool", "SeatGames", "Shown", "Step", "check_arrays", "seat_spaces", "seat_variant"]
