"""Liar's Dice beside the article that it is played after."""

from __future__ import annotations

from collections.abc import Iterator

import agents
from dice_envs import configure
from experiments.arena import play_table
from experiments.bench import BenchRow, Part, best_seconds

__all__ = ["PARTS"]

ARTICLE_SECONDS = 37.1997  # Oehm 2018: 10,000 games of two agents on all cores of a notebook


def _article_games(quick: bool) -> Iterator[BenchRow]:
    variant = configure("liars_dice", num_dice=6)
    players = [agents.make(f"numbers:preset=article,bluff={bluff}") for bluff in (1, 0)]
    seconds = best_seconds(lambda: play_table(variant, players, 10_000, 1), 10)
    yield BenchRow("the article's 10,000 games, 6 dice", seconds, "s", 0.01, ARTICLE_SECONDS, "the article, as published")


PARTS = (Part("liars_dice", _article_games),)
