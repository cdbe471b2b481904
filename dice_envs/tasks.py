"""Named tasks: a game with options, and the one quantity by which agents are compared on it.

`dice-envs leaderboard` measures agents on `TASKS`. The values of random and optimal play are not written here:
`dice_envs.measure` computes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
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


def _tasks() -> Iterator[Task]:
    lose = "lose as little as possible to a best response"
    for name, sizes, words in (
        ("1", {"num_dice": 1}, "one die each"),
        ("2x3", {"num_dice": 2, "num_faces": 3}, "two dice of three faces each"),
    ):
        asks = f"OpenSpiel's rules, {words}: {lose}"
        yield Task(f"liars_dice_openspiel_{name}", "liars_dice", {"rules": "openspiel", **sizes}, "exploitability", asks)
    for dice, words in ((3, "three"), (5, "five")):
        asks = f"the article's rule, whole games with {words} dice each: {lose}"
        yield Task(f"liars_dice_{dice}", "liars_dice", {"num_dice": dice}, "exploitability", asks)
    asks = "four players, five dice each: win against three numbers agents that bluff never, half the time and always"
    field = ("numbers:bluff=0", "numbers:bluff=0.5", "numbers:bluff=1")
    yield Task("liars_dice_4_players", "liars_dice", {"num_players": 4}, SHARE_OF_WINS, asks, field)
    yield Task("fatestones", "fatestones", {"dice": "fair"}, "exploitability", f"fair dice, three in hand: {lose}")
    for goal, asks in (
        ("maximize", "as many pips as possible"),
        ("minimize_loss", "as few points below 30 as possible"),
        ("thirty_or_over", "reach 30 as often as possible"),
        ("optimal", "points for the next player, less one's own"),
    ):
        yield Task(f"thirties_{goal}", "thirties", {"num_players": 1, "goal": goal}, "value", f"one turn: {asks}")
    for players, words, patients in ((3, "three", 12), (6, "six", 18)):
        asks = f"a physician with {words} treatments: save as many of {patients} patients as possible"
        yield Task(f"shakes_{players}", "shakes", {"mode": "physician", "num_players": players}, "patients saved", asks)
    for name, pool_b, words in (
        ("3d6", (6, 6, 6), "3d6 against 3d6"),
        ("5d6_mixed", (8, 6, 6, 6, 4), "5d6 against a d8, three d6 and a d4"),
    ):
        asks = f"{words}: win from a player who always shows the highest die"
        options = {"pool_a": (6,) * len(pool_b), "pool_b": pool_b}
        yield Task(f"score_dice_{name}", "score_dice", options, "reward against highest", asks)


TASKS: Mapping[str, Task] = {task.name: task for task in _tasks()}
