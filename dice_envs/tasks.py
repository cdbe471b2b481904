"""Named tasks: a game with options, and the one quantity by which agents are compared on it.

`python -m experiments leaderboard` measures agents on `TASKS`. The values of random and optimal play are not written here:
`dice_envs.measure` computes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dice_envs.core.game import Variant, configure

SHARE_OF_WINS = "share of wins"  # the headline of tasks that are played against a field


@dataclasses.dataclass(frozen=True)
class Task:
    """A game with its options, and the quantity that counts.

    Attributes:
        name: the task's name in commands.
        game: the game's name.
        options: the game's options.
        headline: the name of the quantity that counts: the first that `dice_envs.measure` gives or, with a field, the share of
            games won.
        asks: the task in a line.
        field: specs of the agents at the other seats, where nothing exact is known; else empty.
    """

    name: str
    game: str
    options: Mapping[str, Any]
    headline: str
    asks: str
    field: tuple[str, ...] = ()

    @property
    def variant(self) -> Variant:
        """The game with its options."""
        return configure(self.game, **self.options)


def _named(*tasks: Task) -> dict[str, Task]:
    return {task.name: task for task in tasks}


_LOSE = "lose as little as possible to a best response"

TASKS: Mapping[str, Task] = _named(
    Task(
        "liars_dice_openspiel_1",
        "liars_dice",
        {"rules": "openspiel", "num_dice": 1},
        "exploitability",
        f"OpenSpiel's rules, one die each: {_LOSE}",
    ),
    Task(
        "liars_dice_openspiel_2x3",
        "liars_dice",
        {"rules": "openspiel", "num_dice": 2, "num_faces": 3},
        "exploitability",
        f"OpenSpiel's rules, two dice of three faces each: {_LOSE}",
    ),
    Task(
        "liars_dice_3",
        "liars_dice",
        {"num_dice": 3},
        "exploitability",
        f"the article's rule, whole games with three dice each: {_LOSE}",
    ),
    Task(
        "liars_dice_5",
        "liars_dice",
        {"num_dice": 5},
        "exploitability",
        f"the article's rule, whole games with five dice each: {_LOSE}",
    ),
    Task(
        "liars_dice_4_players",
        "liars_dice",
        {"num_players": 4},
        SHARE_OF_WINS,
        "four players, five dice each: win against three numbers agents that bluff never, half the time and always",
        ("numbers:bluff=0", "numbers:bluff=0.5", "numbers:bluff=1"),
    ),
    Task("fatestones", "fatestones", {"dice": "fair"}, "exploitability", f"fair dice, three in hand: {_LOSE}"),
    Task(
        "thirties_maximize",
        "thirties",
        {"num_players": 1, "goal": "maximize"},
        "value",
        "one turn: as many pips as possible",
    ),
    Task(
        "thirties_minimize_loss",
        "thirties",
        {"num_players": 1, "goal": "minimize_loss"},
        "value",
        "one turn: as few points below 30 as possible",
    ),
    Task(
        "thirties_thirty_or_over",
        "thirties",
        {"num_players": 1, "goal": "thirty_or_over"},
        "value",
        "one turn: reach 30 as often as possible",
    ),
    Task(
        "thirties_optimal",
        "thirties",
        {"num_players": 1, "goal": "optimal"},
        "value",
        "one turn: points for the next player, less one's own",
    ),
    Task(
        "shakes_3",
        "shakes",
        {"mode": "physician", "num_players": 3},
        "patients saved",
        "a physician with three treatments: save as many of 12 patients as possible",
    ),
    Task(
        "shakes_6",
        "shakes",
        {"mode": "physician", "num_players": 6},
        "patients saved",
        "a physician with six treatments: save as many of 18 patients as possible",
    ),
    Task(
        "score_dice_3d6",
        "score_dice",
        {"pool_a": (6, 6, 6), "pool_b": (6, 6, 6)},
        "reward against highest",
        "3d6 against 3d6: win from a player who always shows the highest die",
    ),
    Task(
        "score_dice_5d6_mixed",
        "score_dice",
        {"pool_a": (6, 6, 6, 6, 6), "pool_b": (8, 6, 6, 6, 4)},
        "reward against highest",
        "5d6 against a d8, three d6 and a d4: win from a player who always shows the highest die",
    ),
)
