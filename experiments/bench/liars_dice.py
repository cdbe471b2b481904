"""Liar's Dice beside the article that simulates it; values of choices, many at once beside one at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from dice_envs import Agent, Turn, Variant, agents, configure
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.exact import action_values, asked
from dice_envs.exact.liars_dice import response_values
from dice_envs.exact.liars_dice.values import Values, forget_values
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.bench import BenchRow, Part, best_rate, best_seconds

__all__ = ["PARTS"]

# Oehm 2018: 10,000 games with six dice each, on all cores of a notebook: the agents' bluffs → seconds.
ARTICLE_SECONDS = {(1.0, 0.0): 37.1997, (1.0, 0.75, 0.25, 0.0): 60 * 1.164514}


def _article_games(quick: bool) -> Iterator[BenchRow]:
    for bluffs, published in ARTICLE_SECONDS.items():
        variant = configure("liars_dice", num_players=len(bluffs), num_dice=6)
        players = [agents.make(f"numbers:preset=article,bluff={bluff}") for bluff in bluffs]
        seconds = best_seconds(functools.partial(play_table, variant, players, 10_000, 1), 10)
        name = f"the article's 10,000 games, {len(bluffs)} players, 6 dice"
        aim = 0.01 if len(bluffs) == 2 else None
        yield BenchRow(name, seconds, "s", aim, published, "the article, as published")


def _positions(variant: Variant, player: Agent, games: int) -> np.ndarray:
    """Return the positions of games of a player against itself."""
    batch, streams, found = Batch(variant, games, 1), new_streams(2, games), []
    while len(going := np.flatnonzero(batch.states["seat"] != OVER)):
        found.append(batch.states[going])
        own = streams[going]
        batch.play(player.act(Turn(variant, batch.states, going, own)), going)
        streams[going] = own
    return np.concatenate(found)


def _values(quick: bool) -> Iterator[BenchRow]:
    """Time values against the solution: the table, then decisions a second, beside `action_values` one by one."""
    for dice, aim in ((3, 300_000),) if quick else ((3, 300_000), (5, 50_000)):
        variant = configure("liars_dice", num_dice=dice)
        nash = agents.make("nash")
        states = _positions(variant, nash, 2_000)
        some = states[np.linspace(0, len(states) - 1, 20).astype(np.int64)]
        opponent = asked(nash, variant)

        def build(variant: Variant = variant, opponent: Any = opponent) -> Values:
            forget_values()
            return response_values(variant, opponent)

        seconds = best_seconds(build, 1 if quick else 3)
        values = build()
        note = f"{values.bytes / 1e6:,.1f} MB"
        yield BenchRow(f"Liar's Dice, {dice} dice: all values against nash", seconds, "s", 0.5 if dice == 3 else 15, note=note)
        rate = best_rate(functools.partial(values.action_values, states), len(states))

        def one_by_one(variant: Variant = variant, some: np.ndarray = some) -> None:
            for state in some:
                action_values(variant, state)

        peer = best_rate(one_by_one, len(some), 1)
        name = f"Liar's Dice, {dice} dice: decisions valued against nash"
        yield BenchRow(
            name, rate, "/s", aim, peer, "action_values, one at a time", f"{len(states):,} positions of its own play"
        )


PARTS = (Part("liars_dice", _article_games), Part("liars_dice", _values))
