"""Players of Liar's Dice: `players` play the odds, read bluffs or play a solution, `adaptive` exploits what it sees, `champion`
is a solution in one network. `likely` finds hints where no solution is known."""

from .adaptive import Adaptive
from .champion import Champion
from .likely import LikelyGames
from .players import LiarsDiceNash, Numbers, Reader, chance_most, roll_out_numbers

__all__ = ["Adaptive", "Champion", "LiarsDiceNash", "Numbers", "Reader", "chance_most"]

AGENTS = {"adaptive": Adaptive, "champion": Champion, "numbers": Numbers, "reader": Reader}
LEVELS = {
    "beginner": "random",
    "careful player": "numbers:bluff=0",
    "bluffer": "numbers:bluff=0.25,threshold=0.3",
    "mind reader": "reader",
    "optimal player": "nash",
}
ALIASES = {"binomial": "numbers", "heuristic": "numbers"}
ROLLOUTS = {"numbers": roll_out_numbers}
NASH = {"nash": LiarsDiceNash}
TRIALS = {"hint": LikelyGames}
