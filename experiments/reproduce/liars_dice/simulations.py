"""The article's two simulations, as its program plays and as its text says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import agents
from dice_envs import configure
from experiments.arena import play_table
from experiments.output import Finding, progress, saved_plot, wilson_half_width
from experiments.workers import HERE, Workers

SOURCE = "Oehm 2018, section 'Bluff or play the numbers'"
PUBLISHED_GAMES = 10_000
# Wins printed by the article: agents' bluffing → counts.
PUBLISHED = {(1.0, 0.0): (4934, 5066), (1.0, 0.75, 0.25, 0.0): (2379, 2465, 2540, 2616)}

# The two ways in which the program differs from the text, and each of them alone.
STYLES = {
    "its program": "preset=article",
    "its text": "preset=text",
    "text, but calls as its program": "preset=text,chance=more",
    "text, but bluffs as its program": "preset=text,bluff_faces=own",
}

EXPLANATION = (
    "Why the article saw a coin flip: its program is not the agent that its text describes. The program calls as if "
    "one more die were needed than was bid, and picks a bluffed face in proportion to the agent's own dice, so that a "
    "bluff mostly names a face it holds. The rows between show what each of the two does alone: played as the text "
    "says, with the same opening, the agent that always bluffs clearly loses to the one that never does."
)


def simulate(games: int, seed: int, workers: Workers = HERE) -> list[Finding]:
    """Both tables, played by every style, beside the article's counts."""
    rows: list[Finding] = []
    with progress("games", len(PUBLISHED) * len(STYLES) * games) as done:
        for (bluffs, counts), table_seed in zip(PUBLISHED.items(), np.random.SeedSequence(seed).spawn(2), strict=True):
            variant = configure("liars_dice", num_players=len(bluffs), num_dice=6)
            for (style, parameters), style_seed in zip(STYLES.items(), table_seed.spawn(len(STYLES)), strict=True):
                players = [agents.make(f"numbers:{parameters},bluff={bluff}") for bluff in bluffs]
                wins = (play_table(variant, players, games, style_seed, done, workers=workers) > 0).mean(axis=0)
                for bluff, share, count in zip(bluffs, wins, counts, strict=True):
                    published = 100 * count / PUBLISHED_GAMES
                    ours, error = 100 * float(share), 100 * wilson_half_width(float(share), games)
                    # The article's own sampling error is much the larger: both intervals together must reach.
                    reach = (error**2 + (100 * wilson_half_width(count / PUBLISHED_GAMES, PUBLISHED_GAMES)) ** 2) ** 0.5
                    article = style == "its program"
                    rows.append(
                        Finding(
                            SOURCE,
                            f"{len(bluffs)} players, {style}: % won by bluff {bluff:g}",
                            published if article else None,
                            ours,
                            error,
                            abs(ours - published) <= reach if article else None,
                            f"{count} of {PUBLISHED_GAMES:,}" if article else "",
                        )
                    )
    return rows


def draw_simulations(folder: Path, rows: list[Finding]) -> None:
    """The article's shares of wins beside ours."""
    caption = (
        "% of games won by numbers agents that differ in how often they bluff: the article's counts, its program played again, "
        "and its text. The dashed line is an even share."
    )
    with saved_plot(folder, "liars_dice_bluffing", caption, ncols=2, figsize=(11, 5)) as (figure, panels):
        for panel, bluffs in zip(panels, PUBLISHED, strict=True):
            mine = [row for row in rows if row.figure.startswith(f"{len(bluffs)} ")]
            bars = np.arange(len(bluffs))
            panel.bar(bars - 0.27, [row.published for row in mine[: len(bluffs)]], 0.25, label="article's 10,000 games")
            for place, style in enumerate(("its program", "its text")):
                part = [row for row in mine if f", {style}:" in row.figure]
                panel.bar(bars + 0.27 * place, [row.ours for row in part], 0.25, yerr=[row.error for row in part], label=style)
            panel.axhline(100 / len(bluffs), color="black", linewidth=0.8, linestyle="--")
            panel.set_xticks(bars, [f"bluff {bluff:g}" for bluff in bluffs])
            panel.set_ylabel("% of games won")
            panel.set_title(f"{len(bluffs)} players, 6 dice")
        figure.suptitle("Who wins: agents that bluff, or those that play the numbers")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
