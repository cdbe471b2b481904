"""The answer as plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.experiments.reproduce.liars_dice.answer import ALONE, BLUFFS, STAGES, Answer, shares_of
from dice_envs.experiments.reproduce.liars_dice.habits import FACES_NAMED, NAMERS, NONE
from dice_envs.experiments.reproduce.liars_dice.parts import PARTS
from dice_envs.experiments.solve.liars_dice import draw_values, heat_map, name_dice
from dice_envs.experiments.ui.plots import saved_plot

BAR_COLOURS = ("#e76f51", "#2a6f97", "#2a9d8f", "#74c69d", "#b7e4c7", "#b5838d")  # of PARTS
COLOURS = ("#2a6f97", "#89c2d9", "#e76f51", "#f4a261")  # of FACES_NAMED
LEAST_LABEL = 0.04  # a share below this has no label


def draw_answer(folder: Path, answer: Answer) -> None:
    """Save all plots."""
    _draw_named(folder, answer)
    _draw_named_by_round(folder, answer)
    _draw_openings(folder, answer)
    _draw_calls(folder, answer)
    draw_values(folder, {dice: worth.value for dice, worth in answer.values.items()})
    _draw_losses(folder, answer)


def _stack(panel: Any, shares: np.ndarray, labels: list[str], parts: list[str], colours: Any) -> None:
    """Draw horizontal bars of shares (bars, parts), the first bar at the top."""
    from matplotlib.colors import to_rgb

    left = np.zeros(len(shares))
    places = np.arange(len(shares))[::-1]
    for part, name in enumerate(parts):
        panel.barh(places, 100 * shares[:, part], left=100 * left, color=colours[part], label=name, height=0.75)
        for place, begin, share in zip(places, left, shares[:, part], strict=True):
            if share >= LEAST_LABEL:
                ink = "white" if np.mean(to_rgb(colours[part])) < 0.45 else "black"
                panel.text(100 * (begin + share / 2), place, f"{100 * share:.0f}", ha="center", va="center", color=ink)
        left += np.nan_to_num(shares[:, part])
    panel.set_yticks(places, labels)
    panel.set_xlim(0, 100)


def _draw_named(folder: Path, answer: Answer) -> None:
    with saved_plot(
        folder, "liars_dice_faces_named", "Which face bids name, in whole games of the solution.", figsize=(10, 5)
    ) as (figure, panel):
        shares = shares_of(answer.named).reshape(-1, len(FACES_NAMED))
        labels = [f"{name}, {namer}" for name in STAGES for namer in NAMERS]
        _stack(panel, shares, labels, list(FACES_NAMED), COLOURS)
        panel.set_xlabel("% of bids in a whole game")
        panel.set_title(f"What bids name, {answer.dice} dice each (all at the solution's own decisions)")
        figure.legend(loc="outside lower center", ncols=2)


def _draw_named_by_round(folder: Path, answer: Answer) -> None:
    most = answer.dice
    caption = "How often the solution bids on a face that it does not hold though it could name one that it holds, by round."
    size = (4 + 1.4 * most, 2 + 0.8 * most)
    with saved_plot(folder, "liars_dice_bluffs_by_round", caption, ncols=2, figsize=size) as (figure, panels):
        for stage, panel in enumerate(panels):
            grid = np.full((most, most), np.nan)
            for (own, others), habits in answer.habits.items():
                grid[own - 1, others - 1] = 100 * shares_of(habits.named[stage])[0, NONE]
            shown = heat_map(panel, grid, "Oranges", 60, "{:.0f}", lambda share: share > 36)
            name_dice(panel, most)
            panel.set_title(STAGES[stage])
        panels[0].set_ylabel("dice of the starter")
        figure.colorbar(shown, ax=panels, label="%")
        figure.suptitle("% of bids on a face that the solution does not hold, by choice")


def _draw_openings(folder: Path, answer: Answer) -> None:
    habits = answer.habits[answer.full]
    quantities = np.flatnonzero(habits.openings.sum(axis=1) >= 5e-4)
    faces = habits.openings.shape[1]
    caption = "The solution's first bids: all of them, and their quantity by how many dice show the best face."
    with saved_plot(folder, "liars_dice_openings", caption, ncols=2, figsize=(12, 5)) as (_, (left, right)):
        grid = 100 * habits.openings[quantities]
        most = max(1.0, float(grid.max()))
        heat_map(left, grid, "Blues", most, "{:.1f}", lambda share: share > 0.6 * most)
        left.set_xticks(range(faces), range(1, faces + 1))
        left.set_yticks(range(len(quantities)), quantities + 1)
        left.set_xlabel("face")
        left.set_ylabel("quantity")
        left.set_title(f"first bids, %, {answer.dice} v {answer.dice} dice")
        held = np.flatnonzero(habits.openings_by_most.sum(axis=0) > 0)
        shares = shares_of(habits.openings_by_most[np.ix_(quantities, held)].T)
        labels = [f"{most} ({100 * habits.openings_by_most[:, most].sum():.3g} %)" for most in held]
        import matplotlib

        colours = matplotlib.colormaps["YlGnBu"](np.linspace(0.2, 0.55, len(quantities)))
        _stack(right, shares, labels, [f"bids {quantity + 1}" for quantity in quantities], colours)
        right.set_ylabel("dice of the best face (% of hands)")
        right.set_xlabel("%")
        right.set_title("by how many dice show the best face")
        right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=len(quantities))


def _turns_with(answer: Answer, unseen: int) -> np.ndarray:
    """Return the chance that the bid holds, the turns and the calls, (n, 3), where the other player has `unseen` dice."""
    points = []
    for dice, share in answer.shares.items():
        for player in range(2):
            if dice[1 - player] == unseen:
                each = zip(*answer.calls(dice, player), strict=True)
                points += [(holds, turns * share, calls * share) for holds, turns, calls in each if turns * share > 0]
    return np.array(points).reshape(-1, 3)


def _draw_calls(folder: Path, answer: Answer) -> None:
    with saved_plot(
        folder,
        "liars_dice_calls",
        "How often the solution calls, by the chance that the bid holds as its own dice say, in every round and seat.",
        figsize=(11, 6),
    ) as (figure, panel):
        import matplotlib

        panel.plot([0, 100], [100, 0], color="#e76f51", label="article's rule:\nthe chance that the bid fails")
        panel.plot([0, 50, 50, 100], [100, 100, 0, 0], color="#888888", linestyle="--", label="threshold 0.5")
        colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, answer.dice))
        for unseen in range(1, answer.dice + 1):
            holds, turns, calls = _turns_with(answer, unseen).T
            panel.scatter(
                100 * holds, 100 * calls / turns, s=np.maximum(350 * turns, 3), color=colours[unseen - 1], alpha=0.8,
                label=f"solution, other has {unseen}", zorder=3, linewidths=0,
            )  # fmt: skip
        panel.set_xlabel("% chance that the bid holds, as the own dice say")
        panel.set_ylabel("% of such turns at which it calls")
        panel.set_title("When the solution calls, in every round and seat (area: how often)")
        legend = figure.legend(loc="outside right upper", labelspacing=0.8)
        for handle in legend.legend_handles[2:]:
            handle.set_sizes([60])


def _draw_losses(folder: Path, answer: Answer) -> None:
    with saved_plot(
        folder,
        "liars_dice_losses",
        "Rounds that numbers agents lose more often than the solution would in their place, and with parts of it replaced.",
        figsize=(12, 6),
    ) as (_, panel):
        width = 0.8 / len(PARTS)
        for place, part in enumerate(PARTS):
            losses = [100 * answer.loss(bluff, part) for bluff in BLUFFS]
            across = np.arange(len(BLUFFS)) + (place - (len(PARTS) - 1) / 2) * width
            label = "as it plays" if part == ALONE else f"with the solution's {part}"
            bars = panel.bar(across, losses, 0.94 * width, color=BAR_COLOURS[place], label=label)
            panel.bar_label(bars, fmt="%.1f", fontsize=9)
        panel.set_xticks(range(len(BLUFFS)), [f"bluff {bluff:g}" for bluff in BLUFFS])
        panel.set_ylabel("% of rounds")
        panel.set_title(f"Rounds that numbers agents lose more often than the solution would, {answer.dice} dice each")
        panel.legend(loc="upper left", ncols=3)
        panel.set_ylim(top=1.25 * panel.get_ylim()[1])
