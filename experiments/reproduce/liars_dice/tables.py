"""The answer on the terminal: tables, and a few sentences whose figures are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.experiments.reproduce.liars_dice.answer import (
    ALONE,
    BLUFFS,
    BORROWED,
    STAGES,
    Answer,
    as_bluff,
    dice_in_words,
    shares_of,
)
from dice_envs.experiments.reproduce.liars_dice.habits import FACES_NAMED, FEWER, MOST, NAMERS, NONE
from dice_envs.experiments.reproduce.liars_dice.parts import wins_games
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid

SEEN = 5e-4  # least share that is shown


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
