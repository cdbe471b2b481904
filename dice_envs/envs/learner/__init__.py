"""Games of a learner against opponents, on which the environments of `gym`, `sb3` and `tensor` are built.

`games` holds SeatGames, `opponents` whom the learner plays against, `records` shared arrays, and `turn` a learner's turn as one
kernel.
"""

from dice_envs.envs.learner.games import SeatGames
from dice_envs.envs.learner.opponents import Opponents, Pool, seat_spaces, seat_variant
from dice_envs.envs.learner.records import LEARNER, Shown, Step

__all__ = ["LEARNER", "Opponents", "Pool", "SeatGames", "Shown", "Step", "seat_spaces", "seat_variant"]
