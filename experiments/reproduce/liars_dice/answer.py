"""Bluff or play the numbers? The habits of an exact solution, and the losses of the article's agents against it.

The answer is shown as tables, as a few sentences whose figures are computed, and as plots.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dice_envs import agents, configure
from dice_envs.exact.liars_dice.seating import Dice
from dice_envs.exact.liars_dice.solution import Solution
from dice_envs.exact.liars_dice.solver import solve, throttled
from dice_envs.experiments.reproduce.liars_dice.habits import (
    FACES_NAMED,
    FEWER,
    MOST,
    NAMERS,
    NONE,
    Habits,
    Worth,
    chance_that_bids_hold,
    habits_of,
    round_shares,
    values_of_all_rounds,
)
from dice_envs.experiments.reproduce.liars_dice.parts import PARTS, Played, mean_loss, wins_against, wins_games
from dice_envs.experiments.solve.liars_dice import SAY_EVERY, draw_values, heat_map, line_of, name_dice
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.findings import Finding
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.plots import saved_plot

BLUFFS = (0.0, 0.25, 0.75, 1.0)  # of the article's agents
STAGES = ("first bids", "raises")
ALONE, *BORROWED = PARTS  # an agent's own play, and the parts of it that the solution's play replaces
SEEN = 5e-4  # least share that is shown
BAR_COLOURS = ("#e76f51", "#2a6f97", "#2a9d8f", "#74c69d", "#b7e4c7", "#b5838d")  # of PARTS
COLOURS = ("#2a6f97", "#89c2d9", "#e76f51", "#f4a261")  # of FACES_NAMED
LEAST_LABEL = 0.04  # a share below this has no label


class Calls(NamedTuple):
    """Turns with a bid to call or to raise, by the chance that the bid holds given the mover's own dice."""

    holds: np.ndarray  # (n,) chances
    turns: np.ndarray  # (n,) expected numbers
    calls: np.ndarray  # (n,) expected numbers of turns at which the solution calls


@dataclasses.dataclass(frozen=True)
class Answer:
    """Everything that is computed.

    Attributes:
        solution: of the game of two players with `dice` dice each.
        habits: its habits in each round.
        shares: how often its own play reaches each round.
        values: the starter's chance to win the game from any numbers of dice.
        played: a numbers agent's bluff → the part of its play that is replaced → round → its chances to win.
    """

    solution: Solution
    habits: dict[Dice, Habits]
    shares: dict[Dice, float]
    values: dict[Dice, Worth]
    played: dict[float, dict[str, dict[Dice, Played]]]

    @property
    def dice(self) -> int:
        """Dice of each player when the game begins."""
        return max(self.solution.variant.options.dice_per_seat)

    @property
    def full(self) -> Dice:
        """The first round."""
        return self.dice, self.dice

    @functools.cached_property
    def named(self) -> np.ndarray:
        """Expected numbers of first bids and of raises in a whole game, by the face named: (2, namers, faces named)."""
        weighted = [share * self.habits[dice].named for dice, share in self.shares.items()]
        return np.asarray(np.sum(weighted, axis=0))

    def calls(self, dice: Dice, player: int) -> Calls:
        """Return the turns of one player of a round."""
        unseen = dice[1 - player]
        holds = chance_that_bids_hold(self.solution.variant, unseen)
        habits = self.habits[dice]
        return Calls(holds, habits.turns[player, : unseen + 2], habits.calls[player, : unseen + 2])

    @functools.cached_property
    def all_calls(self) -> Calls:
        """The turns of a whole game."""
        parts = []
        for dice, share in self.shares.items():
            for player in range(2):
                each = self.calls(dice, player)
                parts.append((each.holds, share * each.turns, share * each.calls))
        return Calls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def calls_below(self, even: bool) -> Calls | None:
        """Return the sum of a whole game's turns at bids with even chances or more, or with less; None if there are none."""
        each = self.all_calls
        mine = (each.holds >= 0.5) == even
        turns = each.turns[mine].sum()
        if turns == 0:
            return None
        return Calls((each.holds[mine] * each.turns[mine]).sum() / turns, turns, each.calls[mine].sum())

    def loss(self, bluff: float, part: str) -> float:
        """Return how much less often than the solution the numbers agent wins a round, mean over the rounds of a game."""
        return mean_loss(self.solution, self.played[bluff][part])


def shares_of(counts: np.ndarray) -> np.ndarray:
    """Divide each row by its sum; NaN where that is 0."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)


def as_bluff(named: np.ndarray) -> float:
    """Return the `bluff` of a numbers player that names the face it holds most of as often, from (namers, faces named)."""
    solution, numbers, blind = shares_of(named)[:, MOST]
    return float((numbers - solution) / (numbers - blind)) if numbers > blind else float("nan")


def dice_in_words(number: int) -> str:
    """Return "1 die", "2 dice" and so on."""
    return f"{number} {'die' if number == 1 else 'dice'}"


def work_out(dice: int, precision: float) -> Answer:
    """Solve the game, or take its kept solution, and compute all figures. Prints progress."""
    say = throttled(lambda progress: console.print(line_of(progress)), SAY_EVERY)
    console.print(f"Bluff or play the numbers? Two players with {dice_in_words(dice)} each, solved to {precision:g}:")
    solution = solve(configure("liars_dice", num_dice=dice), precision, resume=True, done=say)
    values = values_of_all_rounds(solution, precision, say)
    habits = {each: habits_of(solved) for each, solved in solution.rounds.items()}
    played = {}
    for bluff in BLUFFS:
        console.print(f"  numbers agent with bluff={bluff:g} against it")
        played[bluff] = wins_against(solution, agents.make(f"numbers:bluff={bluff}"))
    return Answer(solution, habits, round_shares(solution), values, played)


def findings(answer: Answer) -> list[Finding]:
    """Return all figures as rows: habits exactly for the strategies found, values within the solution's certificate."""
    dice, rows = answer.dice, []
    exploitability = max(answer.solution.exploitability, 0)
    source = f"exact solution, two players with {dice_in_words(dice)} each, exploitability {exploitability:.1e}"

    def add(figure: str, ours: float, error: float = 0.0, note: str = "") -> None:
        if np.isfinite(ours):
            rows.append(Finding(source, figure, None, float(ours), error, None, note))

    for stage, name in enumerate(STAGES):
        for namer, shares in zip(NAMERS, shares_of(answer.named[stage]), strict=True):
            for named, share in zip(FACES_NAMED, shares, strict=True):
                add(f"whole game, {name}, {namer}: {named}, %", 100 * share)
        add(
            f"whole game, {name}: bluff of a numbers player that names as often what it holds most of",
            as_bluff(answer.named[stage]),
        )
    for (own, others), habits in answer.habits.items():
        add(f"{own} v {others} dice: % of games that come to it", 100 * answer.shares[own, others])
        for stage, name in enumerate(STAGES):
            for named, share in zip(FACES_NAMED, shares_of(habits.named[stage])[0], strict=True):
                add(f"{own} v {others} dice, {name}, solution: {named}, %", 100 * share)
    for (quantity, face), share in np.ndenumerate(answer.habits[answer.full].openings):
        if share > 0:
            add(f"{dice} v {dice} dice: % of first bids that are {quantity + 1} x {face + 1}", 100 * share)
    for player, who in enumerate(("starter", "other player")):
        for need, (holds, turns, calls) in enumerate(zip(*answer.calls(answer.full, player), strict=True)):
            if turns > 0:
                figure = f"{dice} v {dice} dice, {who}, {need} of the other's dice needed: % called"
                add(figure, 100 * calls / turns, note=f"the bid holds with {holds:.4f}; {turns:.4f} turns a round")
    for (own, others), worth in answer.values.items():
        error = max(worth.upper - worth.value, worth.value - worth.lower)
        add(f"{own} v {others} dice: chance that the starter wins the game", worth.value, error, "between certified bounds")
    for bluff, parts in answer.played.items():
        for part, rounds in parts.items():
            who = f"numbers bluff {bluff:g}" + (f" with the solution's {part}" if part != ALONE else "")
            add(f"{who}: % of games won against the solution", 100 * wins_games(rounds, dice))
            add(f"{who}: rounds lost more often than by the solution, %", 100 * answer.loss(bluff, part))
            for (own, others), each in rounds.items():
                figure = f"{who}, {own} v {others} dice: % of rounds won"
                add(f"{figure} as the starter", 100 * each.starting, note=f"the solution {100 * each.best_starting:.4f}")
                add(f"{figure} as the other player", 100 * each.following, note=f"the solution {100 * each.best_following:.4f}")
    return rows


# --- the answer on the terminal: tables, and a few sentences whose figures are computed ------------------------------


def show(answer: Answer) -> None:
    """Print all tables, then the conclusion."""
    for table in (
        _named(answer),
        _named_by_round(answer),
        _openings(answer),
        _openings_by_most(answer),
        _calls(answer),
        _values(answer),
        _losses(answer),
    ):
        table.show()
    for sentence in conclusion(answer):
        console.print(sentence)


def percent(share: float, digits: int = 1) -> str:
    """Format a share in %, such as "37.5"; a dash for NaN."""
    return f"{round(100 * share, digits) + 0.0:.{digits}f}" if np.isfinite(share) else "-"  # + 0.0: no -0.0


def _named(answer: Answer) -> Grid:
    title = "What bids name in a whole game, % (numbers player and random face: at the solution's own decisions)"
    rows = []
    for stage, name in enumerate(STAGES):
        for place, (namer, shares) in enumerate(zip(NAMERS, shares_of(answer.named[stage]), strict=True)):
            bluff = as_bluff(answer.named[stage])
            alike = (f"{bluff:.2f}" if np.isfinite(bluff) else "-", "0", "1")[place]
            rows.append((f"{name}, {namer}", *map(percent, shares), alike))
    last_of_stages = range(len(NAMERS) - 1, len(rows), len(NAMERS))
    return Grid(title, ("", *FACES_NAMED, "as a numbers player with bluff"), rows, rules=last_of_stages)


def _named_by_round(answer: Answer) -> Grid:
    title = "What the solution's bids name, by round, %: the face held most of / a face not held, by choice"
    headings = (
        "dice of the starter v other", "in % of games", "first bids", "as bluff", "raises", "as bluff", "raises a round",
    )  # fmt: skip
    rows = []
    for (own, others), habits in answer.habits.items():
        row = [f"{own} v {others}", percent(answer.shares[own, others])]
        for stage in range(2):
            shares, bluff = shares_of(habits.named[stage])[0], as_bluff(habits.named[stage])
            row.append(f"{percent(shares[MOST])} / {percent(shares[NONE])}")
            row.append(f"{bluff:.2f}" if np.isfinite(bluff) else "-")
        rows.append((*row, f"{habits.named[1, 0].sum():.2f}"))
    return Grid(title, headings, rows)


def _openings(answer: Answer) -> Grid:
    openings = answer.habits[answer.full].openings
    faces = range(1, openings.shape[1] + 1)
    rows = [
        (str(quantity), *map(percent, row), percent(row.sum()))
        for quantity, row in enumerate(openings, 1)
        if row.sum() >= SEEN
    ]  # fmt: skip
    total = ("all", *map(percent, openings.sum(axis=0)), percent(openings.sum()))
    title, headings = (
        f"First bids with {answer.dice} v {answer.dice} dice, %",
        ("quantity", *(f"face {face}" for face in faces), "all"),
    )
    return Grid(title, headings, [*rows, total], rules=[len(rows) - 1])


def _openings_by_most(answer: Answer) -> Grid:
    habits = answer.habits[answer.full]
    quantities = [q for q, row in enumerate(habits.openings, 1) if row.sum() >= SEEN]
    title = f"First bids with {answer.dice} v {answer.dice} dice, by how many dice show the best face, %"
    bid_headings = (f"bids {quantity}" for quantity in quantities)
    headings = ("dice of the best face", "hands", *bid_headings, *FACES_NAMED[:3])
    rows = []
    for most in range(1, answer.dice + 1):
        by_quantity, named = habits.openings_by_most[:, most], habits.named_by_most[:, most]
        if by_quantity.sum() > 0:
            bids = [percent(shares_of(by_quantity)[quantity - 1]) for quantity in quantities]
            faces = [percent(shares_of(named)[each]) for each in (MOST, FEWER, NONE)]
            rows.append((str(most), percent(by_quantity.sum(), 2), *bids, *faces))
    return Grid(title, headings, rows)


def _calls(answer: Answer) -> Grid:
    title = f"When the solution calls with {answer.dice} v {answer.dice} dice, % of turns with a bid to call or to raise"
    headings = (
        "dice needed of the other's", "the bid holds", "turns, starter", "calls", "turns, other", "calls",
        "article's rule", "threshold 0.5",
    )  # fmt: skip
    rows = []
    both = [answer.calls(answer.full, player) for player in range(2)]
    turns = [shares_of(each.turns) for each in both]
    called = [np.divide(each.calls, each.turns, out=np.full_like(each.turns, np.nan), where=each.turns > 0) for each in both]
    for need, holds in enumerate(both[0].holds.tolist()):
        row = [str(need) if holds > 0 else "more than it has", percent(holds)]
        for player in range(2):
            row += [percent(turns[player][need]), percent(called[player][need])]
        rows.append((*row, percent(1 - holds), percent(float(holds < 0.5))))
    return Grid(title, headings, rows)


def _values(answer: Answer) -> Grid:
    most = answer.dice
    headings = ("dice", *(str(each) for each in range(1, most + 1)), "being first is worth")
    rows = []
    for own in range(1, most + 1):
        row = [percent(answer.values[own, others].value, 2) for others in range(1, most + 1)]
        rows.append((str(own), *row, f"{100 * (answer.values[own, own].value - 0.5):+.2f}"))
    return Grid("% of games that the starter wins, by its dice (rows) and the other's", headings, rows)


def _losses(answer: Answer) -> Grid:
    dice = f"{answer.dice} v {answer.dice}"
    ours = answer.played[BLUFFS[0]][ALONE][answer.full]
    title = (
        "Numbers agents against the solution, %: games and rounds won; the loss, rounds won less often than the solution "
        "would; and the share of the loss that the solution's calls, first bids or raises would remove"
    )
    headings = (
        "agent", "games", f"{dice}, first (solution {percent(ours.best_starting)})",
        f"second ({percent(ours.best_following)})", "loss, all rounds", *BORROWED,
    )  # fmt: skip
    rows = []
    for bluff in BLUFFS:
        alone = answer.played[bluff][ALONE]
        played, game, loss = alone[answer.full], wins_games(alone, answer.dice), answer.loss(bluff, ALONE)
        mended = [mended_by(answer, bluff, part) for part in BORROWED]
        cells = [game, played.starting, played.following, loss, *mended]
        rows.append((f"bluff {bluff:g}", *map(percent, cells)))
    return Grid(title, headings, rows)


def mended_by(answer: Answer, bluff: float, part: str) -> float:
    """Return the share of a numbers agent's loss that a part of the solution's play removes."""
    loss = answer.loss(bluff, ALONE)
    return 1 - answer.loss(bluff, part) / loss if loss > 0 else float("nan")


def conclusion(answer: Answer) -> list[str]:
    """Return the figures in sentences."""
    sentences = []
    for stage, name in enumerate(STAGES):
        counts = answer.named[stage]
        if counts.sum() == 0:
            continue
        shares = shares_of(counts)
        bluff = as_bluff(counts)
        alike = f"; a numbers player with bluff={bluff:.2f} would do so as often" if np.isfinite(bluff) else ""
        sentences.append(
            f"The solution's {name} name the face it holds most of in {percent(shares[0, MOST])} % of cases (a numbers player "
            f"in {percent(shares[1, MOST])} %, a random face {percent(shares[2, MOST])} %){alike}. "
            f"{percent(shares[0, NONE])} % name a face that it does not hold although it holds another."
        )
    return [*_about_losses(answer), *sentences, _about_calls(answer), _about_values(answer), _how_sure(answer)]


def _about_calls(answer: Answer) -> str:
    parts = []
    for even, words in ((True, "even chances or better to hold"), (False, "less than even chances")):
        each: Any = answer.calls_below(even)
        if each is not None:
            parts.append(
                f"{percent(each.calls / each.turns)} % of bids with {words}, of which the article's rule would call "
                f"{percent(1 - each.holds)} %"
            )
    return f"It calls {', and '.join(parts)}."


def _about_values(answer: Answer) -> str:
    most = answer.dice
    first = 100 * (answer.values[most, most].value - 0.5)
    sentence = f"Being first with {dice_in_words(most)} each is worth {first:+.2f} points of winning chance"
    if most > 1:
        ahead = (answer.values[most, most - 1].value + 1 - answer.values[most - 1, most].value) / 2
        sentence += f"; {most} dice against {most - 1} are worth {100 * (ahead - 0.5):+.2f}, mean over both starters"
    return f"{sentence}."


def _about_losses(answer: Answer) -> list[str]:
    losses = {bluff: answer.loss(bluff, ALONE) for bluff in BLUFFS}
    words = ", ".join(f"{percent(loss)} with bluff={bluff:g}" for bluff, loss in losses.items())
    sentences = [
        "Bluff or play the numbers? Percentage points by which each of the article's agents wins fewer rounds against the "
        f"solution than the solution would in its place: {words}."
    ]
    for bluff in (BLUFFS[0], BLUFFS[-1]):
        if losses[bluff] > 0:
            mended = {part: f"{percent(mended_by(answer, bluff, part), 0)} %" for part in BORROWED}
            sentences.append(
                f"With bluff={bluff:g}, the solution's first bids would remove {mended['first bids']} of this loss (their "
                f"quantities alone {mended['quantity of first bids']}, their faces alone {mended['face of first bids']}), its "
                f"calls {mended['calls']}, its raises {mended['raises']}."
            )
    sentences.append("Their first bid, one more than they hold, is that of the article's program; its text gives none.")
    return sentences


def _how_sure(answer: Answer) -> str:
    return (
        f"All this is exact for one pair of strategies, whose exploitability is {max(answer.solution.exploitability, 0):.1e}. "
        "Other strategies may name other faces and be as good."
    )


# --- the answer as plots ---------------------------------------------------------------------------------------------


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
