"""Exact play of FateStones: values, Nash strategies and best responses, by recursion over the dice in hand.

`positions` holds the recursion's steps and how dice compare; `draws` solves draws; `measures` evaluates agents, `values` the
choices in a position.

All dice are open, so a position is two hands. The players choose at the same time, so it is a zero-sum matrix game.
Its entry (i, j) is P(die i beats die j) − P(it loses) + P(tie) times the value of the position without the two dice.
Values are wins minus losses of seat 0 in one draw. A scratch counts 0: this is also the value of the redraw that follows
under `scratch="redraw"`, because the game is fair before the dice are drawn.
"""

from dice_envs.exact.fatestones.draws import (
    MOST_DRAWS,
    Draws,
    add_up,
    draw_hands,
    edges,
    mean_of,
    parts_of_all,
    solve_all,
    solve_draws,
    solve_each,
    solve_part,
)
from dice_envs.exact.fatestones.measures import Evaluation, evaluate, first_choices, measure, ratio, replies
from dice_envs.exact.fatestones.positions import Circle, circles, margins, nash_strategies
from dice_envs.exact.fatestones.values import action_values, response_values, situations

__all__ = [
    "MOST_DRAWS",
    "Circle",
    "Draws",
    "Evaluation",
    "action_values",
    "add_up",
    "circles",
    "draw_hands",
    "edges",
    "evaluate",
    "first_choices",
    "margins",
    "mean_of",
    "measure",
    "nash_strategies",
    "parts_of_all",
    "ratio",
    "replies",
    "response_values",
    "situations",
    "solve_all",
    "solve_draws",
    "solve_each",
    "solve_part",
]
