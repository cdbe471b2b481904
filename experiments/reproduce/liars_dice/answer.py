"""Bluff or play the numbers? The habits of an exact solution, and the losses of the article's agents against it."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from dice_envs import agents, configure
from dice_envs.exact.liars_dice.seating import Dice
from dice_envs.exact.liars_dice.solution import Solution
from dice_envs.exact.liars_dice.solver import solve, throttled
from dice_envs.experiments.reproduce.liars_dice.habits import (
    FACES_NAMED,
    MOST,
    NAMERS,
    Habits,
    Worth,
    chance_that_bids_hold,
    habits_of,
    round_shares,
    values_of_all_rounds,
)
from dice_envs.experiments.reproduce.liars_dice.parts import PARTS, Played, mean_loss, wins_against, wins_games
from dice_envs.experiments.solve.liars_dice import SAY_EVERY, line_of
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.findings import Finding

BLUFFS = (0.0, 0.25, 0.75, 1.0)  # of the article's agents
STAGES = ("first bids", "raises")
ALONE, *BORROWED = PARTS  # an agent's own play, and the parts of it that the solution's play replaces


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
