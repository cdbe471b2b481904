"""Speed of the exact tables of score dice beside icepool, and of its games."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.bench import BenchRow, best_rate, best_seconds


def rows(quick: bool) -> Iterator[BenchRow]:
    """The tables of the paper, 20d6 against 20d6, and random play."""
    import numpy as np

    from dice_envs import Batch, configure
    from dice_envs.exact.score_dice_distribution import score_distribution
    from experiments.reproduce.score_dice.tables import TABLES

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
    variant = configure("score_dice")
    batch = Batch(variant, 1000, seed=1)
    steps = 1_000 if quick else 10_000
    yield BenchRow(
        name="score dice: random play, 5d6 v 5d6",
        ours=best_rate(lambda: variant.kernels.playouts(variant.params, batch.states, steps), 1000 * steps / 1e6, repeats),
        unit="M/s",
        note="steps on one core",
    )
    index, choices = np.arange(1000), np.zeros(1000, np.int64)

    def games() -> None:
        variant.kernels.deal(variant.params, batch.states, index)
        for column in range(5):
            choices[:] = column
            for _ in range(2):
                batch.play(choices)

    yield BenchRow(
        name="score dice: steps through Batch, actions checked",
        ours=best_rate(games, 10_000 / 1e6, 10 * repeats),
        unit="M/s",
        note="1,000 games at once",
    )


def _icepool() -> Any:
    """The tables by icepool, where it is installed (it comes with the extra `test`)."""
    try:
        from experiments.bench.score_dice import icepool_tables
    except ImportError:
        return None
    return icepool_tables
