"""Liar's Dice beside the article that simulates it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from dice_envs import agents, configure
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.bench import BenchRow, Part, best_seconds

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


PARTS = (Part("liars_dice", _article_games),)
