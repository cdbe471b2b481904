"""The rounds of a game of Liar's Dice between an agent and its opponent, and how often a best response wins them.

A stage is the beginning of a round. For an agent that looks at the present round only, each round is examined alone, and
the game's value follows backward from its end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.exact.liars_dice.elimination import Dice, check_two_players, is_palifico, wins_game
from dice_envs.exact.liars_dice.round import Round
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Seats, source_of
from dice_envs.exact.liars_dice.walk import Keep, Record, respond

__all__ = [
    "MOST_INFORMATION_SETS",
    "MOST_WALKED",
    "Stage",
    "check_measurable",
    "first_stages",
    "has_equal_seats",
    "information_sets",
    "opponent_wins",
    "placed",
    "response_chances",
    "response_wins",
    "round_of",
    "stages_of",
]

# Of one round, both players together.
MOST_INFORMATION_SETS = 250_000_000  # where nodes are kept, or people wait; enough for five dice each by the article's rule
MOST_WALKED = 10_000_000_000  # where nodes are forgotten, in bounded memory; enough for six
_ROUNDING = 1e-9


class Stage(NamedTuple):
    """A game at the beginning of a round."""

    agent: int  # dice of the agent
    other: int  # dice of its opponent
    agent_starts: bool


def check_measurable(variant: Variant, what: str, most: int = MOST_INFORMATION_SETS) -> None:
    """Raise ValueError, naming `what` is not available, unless the game is small enough and between two players for a win.

    Small enough: each round has `most` information sets or fewer.
    """
    options = variant.options
    check_two_players(options, what)
    sets = sum(round_of(variant, options.dice_per_seat).information_sets(player) for player in range(2))
    if sets > most:
        raise ValueError(
            f"num_dice={options.num_dice!r} with num_faces={options.num_faces} and raise_rule={options.raise_rule!r} makes a "
            f"round of about {sets:,.0f} information sets; {most:,} at most are allowed for {what}"
        )


@functools.lru_cache(maxsize=64)
def round_of(variant: Variant, dice: tuple[int, int]) -> Round:
    """Return the round with these dice of the starter and of the other player."""
    return Round(variant, dice, is_palifico(variant.options, dice))


def starters(variant: Variant) -> tuple[int, ...]:
    """Return the seats that may begin the game."""
    return (0, 1) if variant.options.starter == "random" else (0,)


def has_equal_seats(variant: Variant) -> bool:
    """Return whether both seats have the same number of dice and begin equally often, which makes them symmetric."""
    first, second = variant.options.dice_per_seat
    return bool(first == second and variant.options.starter == "random")


def first_stages(variant: Variant, seat: int) -> list[Stage]:
    """Return the stages at which the game may begin with the agent in the seat."""
    dice = variant.options.dice_per_seat
    return [Stage(dice[seat], dice[1 - seat], starter == seat) for starter in starters(variant)]


def stages_of(variant: Variant, seat: int) -> list[Stage]:
    """Return the rounds that a game may reach with the agent in the seat, those with fewer dice first.

    After the first round, the starter has just lost a die.
    """
    stages = set(first_stages(variant, seat))
    if variant.options.rounds == "elimination":
        own, other = variant.options.dice_per_seat[seat], variant.options.dice_per_seat[1 - seat]
        stages |= {Stage(a, b, True) for a in range(1, own) for b in range(1, other + 1)}
        stages |= {Stage(a, b, False) for a in range(1, own + 1) for b in range(1, other)}
    return sorted(stages, key=lambda stage: (stage.agent + stage.other, stage))


def information_sets(variant: Variant, seats: Iterable[int]) -> float:
    """Return the number of information sets at which the agent has a choice, over all rounds."""
    total = 0.0
    for seat in seats:
        for stage in stages_of(variant, seat):
            played, player = placed(variant, stage)
            total += played.information_sets(player)
    return total


def placed(variant: Variant, stage: Stage) -> tuple[Round, int]:
    """Return the round, and which of its players the agent is."""
    if stage.agent_starts:
        return round_of(variant, (stage.agent, stage.other)), 0
    return round_of(variant, (stage.other, stage.agent)), 1


def opponent_wins(stage: Stage, chances: dict[Stage, np.ndarray], variant: Variant, best: bool) -> np.ndarray:
    """Return the chance that the agent's opponent wins the game from a stage on, from its chances in each round.

    With `best` the first number of each is a best response's, and winning a round must be worth no less than losing it.

    Raises:
        ValueError: losing a round is worth more.
    """
    if variant.options.rounds == "single":
        return chances[stage]

    def value(dice: Dice, won: Any, lost: Any, chance: np.ndarray) -> np.ndarray:
        after_win, after_loss = np.ravel(won)[0], np.ravel(lost)[0]
        if best and after_win < after_loss - _ROUNDING:
            raise ValueError(
                f"no best response is known: with {dice[0]} dice against the agent's {dice[1]} one would rather lose "
                f"the round than win it ({after_loss:.6f} of the games are won after it is lost, {after_win:.6f} after it is "
                "won)"
            )
        mean: np.ndarray = lost + (won - lost) * chance
        return mean

    def chance(own: int, others: int, starts: bool) -> np.ndarray:
        return chances[Stage(others, own, not starts)]

    found: np.ndarray = wins_game((stage.other, stage.agent), not stage.agent_starts, chance, value)
    return found


def response_chances(
    variant: Variant,
    agent: Any,
    seat: int,
    seed: int = 0,
    copies: int = 1,
    done: Callable[[float], Any] = lambda amount: None,
    record: Callable[[Stage], Record] | None = None,
    keep: Callable[[Stage], Keep] | None = None,
    seats: Seats | None = None,
) -> dict[Stage, np.ndarray]:
    """Return how often a best response wins each round from an agent that states its probabilities.

    Args:
        variant: the game, between two players for a win.
        agent: see `dice_envs.agent.ask_probabilities`; it is taken to look at the present round only.
        seat: the agent's.
        seed: of the agent's own random streams.
        copies: 2: the agent is asked twice everywhere, and the best response to its first answers is valued against the
            second ones too.
        done: progress callback, called with the number of information sets done since the last call.
        record: makes, for a round, the callback for the response at each node (see `walk.respond`).
        keep: makes, for a round, what keeps the values at its nodes (see `walk.respond`).
        seats: compares the agent's answers in the other seat.

    Returns:
        (copies,) float64 for each round.
    """
    streams = np.array([new_streams(each, ROWS_AT_ONCE) for each in np.random.SeedSequence(seed).spawn(copies)])
    chances = {}
    for stage in stages_of(variant, seat):
        played, player = placed(variant, stage)
        source = source_of(played, player, agent, seat, streams, seats)
        recorded = record(stage) if record is not None else None
        kept = keep(stage) if keep is not None else None
        chances[stage] = respond(played, player, source, copies, done, recorded, kept)
    return chances


def response_wins(variant: Variant, agent: Any, seat: int, **settings: Any) -> list[np.ndarray]:
    """Return how often a best response wins the game, (copies,) float64 for each seat that may begin.

    The arguments are those of `response_chances`.

    Raises:
        ValueError: a best response would rather lose a round than win it.
    """
    chances = response_chances(variant, agent, seat, **settings)
    return [opponent_wins(stage, chances, variant, best=True) for stage in first_stages(variant, seat)]
