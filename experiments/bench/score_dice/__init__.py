"""The exact distributions of score dice beside icepool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dice_envs.exact.score_dice.distribution import score_distribution
from dice_envs.experiments.bench import BenchRow, Part, best_seconds
from dice_envs.experiments.reproduce.score_dice import TABLES

__all__ = ["PARTS"]


def _distributions(quick: bool) -> Iterator[BenchRow]:
    """Time the tables of the paper, and 20d6 against 20d6."""
    peer = _icepool()
    repeats = 1 if quick else 3
    yield BenchRow(
        name="score dice: all tables of the paper, exact",
        ours=best_seconds(lambda: [table.compute() for table in TABLES], repeats),
        unit="s",
        aim=0.2,
        peer=best_seconds(lambda: peer.tables(TABLES), repeats) if peer else None,
        peer_name="icepool" if peer else "",
        note=f"{sum(len(table.rows) for table in TABLES)} rows in {len(TABLES)} tables; nothing kept between runs",
    )
    pool = (6,) * (10 if quick else 20)
    yield BenchRow(
        name=f"score dice: {len(pool)}d6 v {len(pool)}d6 sorted, exact",
        ours=best_seconds(lambda: score_distribution(pool, pool), repeats),
        unit="s",
        peer=best_seconds(lambda: peer.sorted_pairs(peer.evaluators()["none"], pool, pool), repeats) if peer else None,
        peer_name="icepool" if peer else "",
        note="the project aims at 10 times icepool's speed",
    )


def _icepool() -> Any:
    """Return the module that uses icepool; None where that is not installed (it comes with the extra `test`)."""
    try:
        from dice_envs.experiments.bench.score_dice import icepool_tables
    except ImportError:
        return None
    return icepool_tables


PARTS = (Part("score_dice", _distributions),)
