"""Bluff or play the numbers? The habits of an exact solution, and the losses of the article's agents against it.

The answer is a list of figures. It is shown as tables of them, as a few sentences whose figures are computed, and as plots.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from dice_envs.exact.contract import plus_minus
from dice_envs.experiments import ui
from dice_envs.experiments.reproduce import Finding, across, draw_across
from dice_envs.experiments.reproduce.liars_dice.habits import (
    FACES_NAMED,
    MOST,
    NAMERS,
    NONE,
    PARTS,
    Habits,
    RoundChances,
    games_won,
    habits_of,
    mean_loss,
    round_shares,
    values_of_all_rounds,
    wins_against,
)
from dice_envs.games.liars_dice.exact.report import followed
from dice_envs.games.liars_dice.exact.seating import Certificate, Dice
from dice_envs.games.liars_dice.exact.solution import Solution
from dice_envs.games.liars_dice.exact.solver import solve

BLUFFS = (0.0, 0.25, 0.75, 1.0)  # of the article's agents
STAGES = ("first bids", "raises")
ALONE, *BORROWED = PARTS  # an agent's own play, and the parts of it that the solution's play replaces
SEEN = 5e-4  # least share that is shown

# Tables of the figures: title, their names (see `crossed`), decimals, the name of the plot.
TABLES = (  # title, digits and name
    ("What bids name in a whole game, % (numbers player and random face: at the solution's own decisions)", 1, "faces_named"),
    ("What the solution's bids name, by round, %", 1, "faces_by_round"),
    ("First bids of the first round, %: quantity x face", 1, "openings"),
    ("First bids of the first round, %, by how many dice show the best face: quantity", 1, "quantities"),
    ("When the solution calls in the first round, % of its turns, by how many of the other's dice it takes", 1, "calls"),
    ("The chance that the starter wins the game, by its dice and the other's", 4, "values"),
    ("Numbers agents against the solution", 1, "losses"),
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """Everything that is computed."""

    solution: Solution  # of the game of two players with `dice` dice each
    habits: dict[Dice, Habits]  # its habits in each round
    shares: dict[Dice, float]  # how often its own play reaches each round
    values: dict[Dice, Certificate]  # the starter's chance to win the game from any numbers of dice
    # A numbers agent's bluff → the part of its play that is replaced → round → its chances to win.
    played: dict[float, dict[str, dict[Dice, RoundChances]]]

    @property
    def dice(self) -> int:
        """Dice of each player when the game begins."""
        return max(self.solution.variant.options.dice_per_seat)

    @functools.cached_property
    def named(self) -> np.ndarray:
        """Expected numbers of first bids and of raises in a whole game, by the face named: (2, namers, faces named)."""
        return np.asarray(np.sum([share * self.habits[dice].named for dice, share in self.shares.items()], axis=0))

    def loss(self, bluff: float, part: str = ALONE) -> float:
        """Return how much less often than the solution the numbers agent wins a round, mean over the rounds of a game."""
        return mean_loss(self.solution, self.played[bluff][part])

    def mended(self, bluff: float, part: str) -> float:
        """Return the share of the numbers agent's loss that a part of the solution's play removes."""
        return 1 - self.loss(bluff, part) / self.loss(bluff)


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
    say = followed(ui.console.print)
    ui.console.print(f"Bluff or play the numbers? Two players with {dice_in_words(dice)} each, solved to {precision:g}:")
    solution = solve(configure("liars_dice", num_dice=dice), precision, resume=True, done=say)
    values = values_of_all_rounds(solution, precision, say)
    habits = {each: habits_of(solved) for each, solved in solution.rounds.items()}
    played = {}
    for bluff in BLUFFS:
        ui.console.print(f"  numbers agent with bluff={bluff:g} against it")
        played[bluff] = wins_against(solution, make_agent(f"numbers:bluff={bluff}"))
    return Answer(solution, habits, round_shares(solution), values, played)


def findings(answer: Answer) -> list[Finding]:
    """Return all figures as rows: habits exactly for the strategies found, values within the solution's certificate."""
    dice, rows = answer.dice, []
    exploitability = max(answer.solution.exploitability, 0)
    source = f"exact solution, two players with {dice_in_words(dice)} each, exploitability {exploitability:.1e}"

    def add(figure: str, ours: float, error: float = 0.0, note: str = "", cell: tuple[str, str, str] | None = None) -> None:
        if np.isfinite(ours):
            rows.append(Finding(source, figure, None, float(ours), error, None, note, cell))

    for stage, name in enumerate(STAGES):
        for namer, shares in zip(NAMERS, shares_of(answer.named[stage]), strict=True):
            for named, share in zip(FACES_NAMED, shares, strict=True):
                cell = "faces_named", f"{name}, {namer}", named
                add(f"whole game, {name}, {namer}: {named}, %", 100 * share, cell=cell)
        add(
            f"whole game, {name}: bluff of a numbers player that names as often what it holds most of",
            as_bluff(answer.named[stage]),
        )
    for (own, others), habits in answer.habits.items():
        add(f"{own} v {others} dice: % of games that come to it", 100 * answer.shares[own, others])
        for stage, name in enumerate(STAGES):
            for named, share in zip(FACES_NAMED, shares_of(habits.named[stage])[0], strict=True):
                cell = "faces_by_round", f"{own} v {others} dice, {name}", named
                add(f"{own} v {others} dice, {name}, solution: {named}, %", 100 * share, cell=cell)
    first = answer.habits[dice, dice]
    for (quantity, face), share in np.ndenumerate(first.openings):
        if share > 0:
            cell = "openings", str(quantity + 1), str(face + 1)
            add(f"{dice} v {dice} dice: % of first bids that are {quantity + 1} x {face + 1}", 100 * share, cell=cell)
    for most, by_quantity in enumerate(first.openings_by_most.T):
        for quantity, share in enumerate(shares_of(by_quantity), 1):
            if share >= SEEN:
                figure = f"{dice} v {dice} dice, {most} of the best face: % of first bids of {quantity}"
                cell = "quantities", str(most), str(quantity)
                add(figure, 100 * share, note=f"{100 * by_quantity.sum():.3g} % of hands", cell=cell)
    for (player, need), turns in np.ndenumerate(first.turns):
        if turns > 0:
            note = f"the bid holds with {first.holds[player, need]:.4f}; {turns:.4f} turns a round"
            who = ("starter", "other player")[player]
            figure = f"{dice} v {dice} dice, {who}, {need} of the other's dice needed: % called"
            add(figure, 100 * first.calls[player, need] / turns, note=note, cell=("calls", str(need), who))
    for (own, others), certificate in answer.values.items():
        error = max(certificate.upper - certificate.value, certificate.value - certificate.lower)
        figure, cell = f"{own} v {others} dice: chance that the starter wins the game", ("values", str(own), str(others))
        add(figure, certificate.value, error, "between certified bounds", cell)
    for bluff, parts in answer.played.items():
        for part, rounds in parts.items():
            whose = f"bluff {bluff:g}" + (f" with the solution's {part}" if part != ALONE else "")
            who, lost = f"numbers {whose}", 100 * answer.loss(bluff, part)
            for what, ours in (
                ("% of games won against the solution", 100 * games_won(rounds, dice)),
                ("rounds lost more often than by the solution, %", lost),
            ):
                add(f"{who}: {what}", ours, cell=("losses", whose, what))
            for (own, others), played in rounds.items():
                figure = f"{who}, {own} v {others} dice: % of rounds won"
                add(f"{figure} as the starter", 100 * played.starting, note=f"the solution {100 * played.best_starting:.4f}")
                note = f"the solution {100 * played.best_following:.4f}"
                add(f"{figure} as the other player", 100 * played.following, note=note)
    return rows


def show(answer: Answer, rows: list[Finding]) -> None:
    """Print the answer's rows as tables, then the conclusion."""
    for title, digits, name in TABLES:
        across(title, rows, name, digits).show()
    sentences = [*_about_losses(answer), *_about_faces(answer), _about_calls(answer), _about_values(answer)]
    sentences.append(
        f"All this is exact for one pair of strategies, whose exploitability is {max(answer.solution.exploitability, 0):.1e}. "
        "Other strategies may name other faces and be as good."
    )
    for sentence in sentences:
        ui.console.print(sentence)


# --- the conclusion: a few sentences whose figures are computed ------------------------------------------------------


percent = functools.partial(plus_minus, half=None, digits=1, percent=True)  # a share, such as "37.5"


def _about_faces(answer: Answer) -> list[str]:
    sentences = []
    for counts, name in zip(answer.named, STAGES, strict=True):
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
    return sentences


def _about_calls(answer: Answer) -> str:
    parts = []
    for even, words in ((True, "even chances or better to hold"), (False, "less than even chances")):
        turns = calls = holds = 0.0
        for dice, habits in answer.habits.items():
            here, share = (habits.holds >= 0.5) == even, answer.shares[dice]
            turns += share * habits.turns[here].sum()
            calls += share * habits.calls[here].sum()
            holds += share * (habits.holds * habits.turns)[here].sum()
        if turns > 0:
            parts.append(
                f"{percent(calls / turns)} % of bids with {words}, of which the article's rule would call "
                f"{percent(1 - holds / turns)} %"
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
    losses = {bluff: answer.loss(bluff) for bluff in BLUFFS}
    words = ", ".join(f"{percent(loss)} with bluff={bluff:g}" for bluff, loss in losses.items())
    sentences = [
        "Bluff or play the numbers? Percentage points by which each of the article's agents wins fewer rounds against the "
        f"solution than the solution would in its place: {words}."
    ]
    for bluff in (BLUFFS[0], BLUFFS[-1]):
        if losses[bluff] > 0:
            mended = {part: f"{percent(answer.mended(bluff, part), digits=0)} %" for part in BORROWED}
            sentences.append(
                f"With bluff={bluff:g}, the solution's first bids would remove {mended['first bids']} of this loss (their "
                f"quantities alone {mended['quantity of first bids']}, their faces alone {mended['face of first bids']}), its "
                f"calls {mended['calls']}, its raises {mended['raises']}."
            )
    sentences.append("Their first bid, one more than they hold, is that of the article's program; its text gives none.")
    return sentences


def draw_answer(folder: Path, rows: list[Finding]) -> None:
    """Save each of the tables as a heat map."""
    for title, digits, name in TABLES:
        draw_across(folder, "liars_dice", name, title, rows, digits)
