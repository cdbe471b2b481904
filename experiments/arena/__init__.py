"""Agents against each other: every pair, or one table of N; win rates with intervals, and Elo.

`matches` plays games at one table, `tournaments` has agents meet and takes luck out of their results, `results` holds what
they won and earned. `dice_envs.experiments.ui.tournaments` shows it.
"""

from dice_envs.experiments.arena.matches import MOST_GAMES, check_match, parts_of, play_table
from dice_envs.experiments.arena.results import Copies, Meeting, Part, Result, Team
from dice_envs.experiments.arena.tournaments import (
    add_optimal,
    check_table,
    elo,
    exact_tournament,
    expanded,
    known_values,
    log_writer,
    num_meetings,
    tournament,
)

__all__ = [
    "MOST_GAMES",
    "Copies",
    "Meeting",
    "Part",
    "Result",
    "Team",
    "add_optimal",
    "check_match",
    "check_table",
    "elo",
    "exact_tournament",
    "expanded",
    "known_values",
    "log_writer",
    "num_meetings",
    "parts_of",
    "play_table",
    "tournament",
]
