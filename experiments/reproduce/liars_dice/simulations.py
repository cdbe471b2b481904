"""The article's two simulations, as its program plays and as its text says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import agents, configure
from dice_envs.exact.intervals import share_half_width
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs.workers import HERE, Workers
from dice_envs.experiments.ui.findings import Finding
from dice_envs.experiments.ui.plots import saved_plot
from dice_envs.experiments.ui.progress import progress

SOURCE = "Oehm 2018, section 'Bluff or play the numbers'"
PUBLISHED_GAMES = 10_000
POSTERIOR_DRAWS, POSTERIOR_BINS = 100_000, 30  # of the article's histogram
# Wins printed by the article: the agents' bluffs → counts.
PUBLISHED = {(1.0, 0.0): (4934, 5066), (1.0, 0.75, 0.25, 0.0): (2379, 2465, 2540, 2616)}

# The program and the text differ in two ways; the last two styles have one of them each.
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
    "says, the agent that always bluffs clearly loses to the one that never does. The first bid, one more than the agent "
    "holds of its best face, is the program's in all rows, because the text does not say how an agent opens."
)


def simulate(games: int, seed: int, workers: Workers = HERE) -> list[Finding]:
    """Play both tables in every style; return the shares of wins beside the article's."""
    rows: list[Finding] = []
    with progress("games", len(PUBLISHED) * len(STYLES) * games) as done:
        for (bluffs, counts), table_seed in zip(PUBLISHED.items(), np.random.SeedSequence(seed).spawn(2), strict=True):
            variant = configure("liars_dice", num_players=len(bluffs), num_dice=6)
            for (style, parameters), style_seed in zip(STYLES.items(), table_seed.spawn(len(STYLES)), strict=True):
                players = [agents.make(f"numbers:{parameters},bluff={bluff}") for bluff in bluffs]
                wins = (play_table(variant, players, games, style_seed, done, workers=workers) > 0).mean(axis=0)
                for bluff, share, count in zip(bluffs, wins, counts, strict=True):
                    published = 100 * count / PUBLISHED_GAMES
                    ours, error = 100 * float(share), 100 * share_half_width(float(share), games)
                    # The article's own sampling error is much larger than ours, so both intervals count.
                    reach = (error**2 + (100 * share_half_width(count / PUBLISHED_GAMES, PUBLISHED_GAMES)) ** 2) ** 0.5
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


def _ours(rows: list[Finding]) -> tuple[float, float]:
    """Return the share, in %, of our two-player games by the article's program that bluff 0 wins, and its ±."""
    row = next(row for row in rows if row.figure == "2 players, its program: % won by bluff 0")
    assert isinstance(row.ours, float)
    return row.ours, row.error


def _posterior() -> Any:
    """Return the article's posterior of the share of games that bluff 0 wins: Beta(wins, losses)."""
    from scipy.stats import beta

    losses, wins = PUBLISHED[1.0, 0.0]
    return beta(wins, losses)


def posterior_rows(rows: list[Finding]) -> list[Finding]:
    """Return the exact figures behind the article's histogram, and where our games lie in it."""
    posterior, (share, error) = _posterior(), _ours(rows)
    low, high = 100 * posterior.ppf([0.025, 0.975])
    figures = (
        (
            "posterior of the share won by bluff 0, as the article draws it: mean, %",
            100 * posterior.mean(),
            (high - low) / 2,
            f"95 % between {low:.2f} and {high:.2f}; the article prints the picture alone",
        ),
        ("the same: % that bluff 0 wins more than half", 100 * posterior.sf(0.5), 0.0, "given the article's counts"),
        (
            "the same: % that it wins more than it wins of our games",
            100 * posterior.sf(share / 100),
            0.0,
            f"given the article's counts; our games {share:.2f} ± {error:.2f} %",
        ),
    )
    return [Finding(SOURCE, figure, None, float(value), float(reach), None, note) for figure, value, reach, note in figures]


def draw_posterior(folder: Path, rows: list[Finding]) -> None:
    """Plot the article's histogram of the win rate, and our games in it."""
    posterior, (share, error) = _posterior(), _ours(rows)
    caption = (
        f"The share of games won by the agent that never bluffs, against the one that always does: the article's histogram of "
        f"{POSTERIOR_DRAWS:,} draws, here with the numbers expected in each bar. The band is the 95 % interval of our games."
    )
    first, last = posterior.ppf([1 / POSTERIOR_DRAWS, 1 - 1 / POSTERIOR_DRAWS])
    edges = np.linspace(first, last, POSTERIOR_BINS + 1)
    expected = POSTERIOR_DRAWS * np.diff(posterior.cdf(edges))
    with saved_plot(folder, "liars_dice_posterior", caption) as (_, panel):
        wins = f"the article's {PUBLISHED_GAMES:,} games"
        panel.bar(
            100 * edges[:-1], expected, 100 * np.diff(edges), align="edge", color="#89c2d9", edgecolor="#333333", label=wins
        )
        panel.axvspan(share - error, share + error, color="#e76f51", alpha=0.7, label="our games, its program")
        panel.axvline(50, color="black", linewidth=0.8, linestyle="--", label="an even share")
        panel.set_xlabel("% of games won by bluff 0")
        panel.set_ylabel(f"of {POSTERIOR_DRAWS:,} draws")
        panel.set_title("Posterior of the win rate: 2 players, 6 dice")
        panel.legend()


def draw_simulations(folder: Path, rows: list[Finding]) -> None:
    """Plot the article's shares of wins beside ours."""
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
