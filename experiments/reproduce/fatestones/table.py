"""The table of the FateStones project's README: recounted from logs, and replayed by its own search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dice_envs import configure
from dice_envs.core.dice import derived_seeds
from dice_envs.exact.intervals import Z95
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs.workers import Done, Workers
from dice_envs.experiments.logs.fatestones import Log, Writer
from dice_envs.experiments.reproduce.fatestones.strength import agent_of
from dice_envs.experiments.ui.findings import Finding
from dice_envs.experiments.ui.progress import progress

__all__ = ["names_of", "recount", "replay"]

SOURCE = "FateStones README, Results"
# The source's table, player 1's wins, losses and ties over 10,000 games; and the agents that replay it.
PUBLISHED = {
    "random v random": (4913, 5031, 2033),
    "MCTS(10) v random": (4951, 5006, 2025),
    "MCTS(50) v random": (4910, 5061, 1959),
    "MCTS(10) v MCTS(10)": (5025, 4940, 1969),
}
REPLAYS = {
    "random v random": ("random", "random"),
    "MCTS(10) v random": ("project:10", "random"),
    "MCTS(50) v random": ("project:50", "random"),
    "MCTS(10) v MCTS(10)": ("project:10", "project:10"),
}


def names_of(log: Log) -> list[str]:
    """Return the published columns that a log's wins, losses and ties equal: one or none."""
    return [name for name, published in PUBLISHED.items() if published == log.record()]


def recount(path: Path, log: Log) -> list[Finding]:
    """Return a log's wins, losses and ties, beside the published column that they equal, if any; and its edge."""
    counts, names = log.record(), names_of(log)
    published = PUBLISHED[names[0]] if names else (None, None, None)
    label = names[0] if names else path.name
    rows = [
        Finding(
            SOURCE,
            f"{label}: {what}",
            known,
            count,
            agrees=None if known is None else known == count,
            note=f"recount of {path.name}",
        )
        for what, known, count in zip(("wins", "losses", "ties"), published, counts, strict=True)
    ]
    for player in range(2):
        share, error = log.edge_share(player)
        rows.append(Finding(SOURCE, f"{label}: share of the edge, player {player + 1}", None, share, error))
    return rows


def _played_again(games: int, specs: Sequence[str], seed: int, done: Done) -> list[float]:
    """Play a pair; return its wins, losses and ties, its share of the edge and that share's error."""
    variant = configure("fatestones")
    writer = Writer(variant)
    play_table(variant, [agent_of(spec) for spec in specs], games, seed, done, after_move=writer.after_move)
    log = writer.log()
    return [*log.record(), *log.edge_share()]


def replay(games: int, recounted: dict[str, tuple[float, float]], seed: int, workers: Workers) -> list[Finding]:
    """Play the source's pairs again; return player 1's shares of decided games and of the edge, and the share of ties."""
    rows = []
    parts = [*zip(REPLAYS.values(), derived_seeds(seed, "pairs", len(REPLAYS)), strict=True)]
    with progress("the source's pairs, games", len(parts) * games) as done:
        played = workers.run(_played_again, (games,), parts, [games] * len(parts), done)
    for (label, specs), (wins, losses, ties, share, error) in zip(REPLAYS.items(), played, strict=True):
        for what, part, whole, known, known_whole in (
            ("% of decided games", wins, wins + losses, PUBLISHED[label][0], sum(PUBLISHED[label][:2])),
            ("% of rolls tied", ties, wins + losses + ties, PUBLISHED[label][2], sum(PUBLISHED[label])),
        ):
            ours, published = part / whole, known / known_whole
            half = Z95 * math.sqrt(ours * (1 - ours) / whole)
            noise = Z95 * math.sqrt(ours * (1 - ours) * (1 / whole + 1 / known_whole))
            known_error = Z95 * math.sqrt(ours * (1 - ours) / known_whole)
            note = f"{games:,} games; the published figure is itself ± {100 * known_error:.2f}"
            agrees = abs(ours - published) <= noise
            rows.append(Finding(SOURCE, f"{label}: {what}", 100 * published, 100 * ours, 100 * half, agrees, note))
        published_share, published_error = recounted.get(label, (None, 0.0))
        agrees = None if published_share is None else abs(share - published_share) <= math.hypot(error, published_error)
        note = " v ".join(specs)
        if published_share is not None:
            note += f"; the recounted log's is itself ± {published_error:.3f}"
        rows.append(Finding(SOURCE, f"{label}: share of the edge, player 1", published_share, share, error, agrees, note))
    return rows
