"""Meetings of pairs without luck: results less what dice, and choices of known probabilities, did to them.

See `dice_envs.evaluation`. Luck is told by the values of an agent's choices against the other, whose probabilities must be
known and fixed. If both are known, there are two kinds of luck, and each is taken out with a coefficient from other games. No
kind is chosen by its result, which would bias the mean.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dice_envs.agent import Agent
from dice_envs.agent.matches import GAMES_ASKED, pieces_of
from dice_envs.core.game import Variant
from dice_envs.evaluation import GAMES_WON, scale_of
from dice_envs.evaluation.estimate import adjust
from dice_envs.evaluation.games import expected_returns, play_valued
from dice_envs.exact import ResponseValues, response_values
from dice_envs.exact.limits import TooLong
from dice_envs.experiments.arena.matches import parts_of
from dice_envs.experiments.arena.results import Meeting, Part
from dice_envs.experiments.jobs.workers import Workers

__all__ = ["Ways", "known_values", "play_pair", "without_luck"]

Ways = Sequence[ResponseValues | None]  # values of each agent's choices against the other; None: not known


def known_values(
    variant: Variant,
    specs: Sequence[str],
    agents: Sequence[Agent],
    done: Callable[[float, float], Any] = lambda amount, total: None,
) -> tuple[list[ResponseValues | None], list[str]]:
    """Return the values of choices against each agent, None where they are not known, and the reasons for these.

    Args:
        variant: the game.
        specs: names of the agents; agents of one name share their values.
        agents: the agents.
        done: progress callback of each agent in turn, as for `response_values`; it may raise TooLong.
    """
    found: dict[str, ResponseValues | None] = {}
    reasons = []
    for spec, agent in zip(specs, agents, strict=True):
        if spec in found:
            continue
        found[spec] = None
        try:
            values = response_values(variant, agent, done=done)
            if scale_of(variant, values).unit != GAMES_WON:
                raise ValueError(f"{variant} is not won or lost alone")
            found[spec] = values
        except TooLong as problem:
            reasons.append(f"no values against {spec}: there are {problem} to evaluate")
        except ValueError as problem:
            reasons.append(f"no values against {spec}: {problem}")
    return [found[spec] for spec in specs], reasons


def play_pair(
    variant: Variant,
    agents: Sequence[Agent],
    ways: Ways,
    games: int,
    seed: np.random.SeedSequence,
    done: Callable[[int], Any],
    match: int,
    workers: Workers,
) -> np.ndarray:
    """Play the games of `play_table` and value decisions; see `play_valued` for (matches, match, 4) that are returned."""
    pieces = pieces_of(games // match, 2, seed, GAMES_ASKED)
    sizes = [match * piece.number for piece in pieces]
    found = workers.run(play_valued, (variant, agents, ways, match), [([piece],) for piece in pieces], sizes, done)
    return np.concatenate(found)


def without_luck(variant: Variant, plain: Sequence[Meeting], ways: Ways, played: np.ndarray) -> list[Meeting]:
    """Return both agents' meetings with luck taken out, from the plain ones and from what `play_pair` returned."""
    earned, expected, lost, losers = played[:, :, 0], [], [], []
    scale = next(scale_of(variant, values) for values in ways if values is not None)
    for agent, (values, sign) in enumerate(zip(ways, (1, -1), strict=True)):
        if values is not None:  # in returns of the first agent: the second one's are their negatives
            expected.append(sign * expected_returns(values, *earned.shape, agent=agent))
            lost.append(played[:, :, 2 + agent])
            losers.append(sign)
    results, starts, given = scale.of(earned), scale.of(np.array(expected)), scale.factor * np.array(lost)
    whole = adjust(results, starts, given, losers=losers)
    parts = []
    for first, last in parts_of(earned.shape[1]):
        here = slice(first - 1, last)
        part = adjust(results[:, here], starts[:, :, here], given[:, :, here], losers=losers)
        parts.append(Part(first, last, part.value, part.error))
    first_own = dataclasses.replace(
        plain[0],
        win_rate=whole.value,
        ci95=whole.error,
        mean_return=(whole.value - scale.shift) / scale.factor,
        mean_return_ci95=whole.error / scale.factor,
        parts=parts,
        plain_win_rate=plain[0].win_rate,
        plain_ci95=plain[0].ci95,
        variance_ratio=whole.variance_ratio,
    )
    return [first_own, first_own.mirrored(plain[1])]
