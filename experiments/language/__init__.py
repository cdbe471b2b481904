"""`benchmark language`: what players who speak in words give away, by the exact price of every move.

`positions` draws the fixed positions of a task and their values, `scores` asks the players there and in games. All players
move through words: language models, and scripted agents beside them (`dice_envs.envs.text.InWords`).
"""

from dice_envs.experiments.language.positions import Positions, positions_of
from dice_envs.experiments.language.scores import (
    DEFAULT_TASKS,
    Bluffs,
    Field,
    Kind,
    Score,
    field_of,
    named_players,
    players_of,
    score,
    task_of,
)

__all__ = [
    "DEFAULT_TASKS",
    "Bluffs",
    "Field",
    "Kind",
    "Positions",
    "Score",
    "field_of",
    "named_players",
    "players_of",
    "positions_of",
    "score",
    "task_of",
]
