"""The FateStones project's table, recounted and replayed with its own search; and searches that find what it misses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dice_envs import agents, configure
from dice_envs.core.game import Variant
from dice_envs.core.options import check_range
from dice_envs.exact.fatestones import MOST_DRAWS, circles, draw_hands, evaluate, margins, solve_draws
from dice_envs.exact.intervals import Z95
from dice_envs.experiments.arena import MOST_GAMES
from dice_envs.experiments.jobs.workers import kept_beside, on_ray
from dice_envs.experiments.logs.fatestones import read_log
from dice_envs.experiments.reproduce.fatestones.plots import draw
from dice_envs.experiments.reproduce.fatestones.strength import (
    PROJECT,
    against_random,
    fatestones_curves,
    liars_dice_curves,
    own_search,
)
from dice_envs.experiments.reproduce.fatestones.table import names_of, recount, replay
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.findings import Finding, print_rows
from dice_envs.experiments.ui.options import (
    GamesOption,
    JsonOption,
    RayOption,
    ReportOption,
    ResumeOption,
    SeedOption,
    count_option,
    seed_or_fresh,
)
from dice_envs.experiments.ui.page import Chapter
from dice_envs.games.fatestones import CODES


def main(
    log: Annotated[list[Path] | None, typer.Option(help="Recount a log in the source's format; repeat it for more.")] = None,
    games: GamesOption = 100_000,
    draws: Annotated[int, count_option(help="Sampled draws for the exact values.")] = 100_000,
    work: Annotated[float, typer.Option(help="Simulation budget per point of each curve, in millions.")] = 10.0,
    most: Annotated[int, count_option(help="Most simulations a move in the curves.")] = 10_000,
    liars_dice: Annotated[
        int,
        count_option(help="Most simulations an information set in the curve of one-die Liar's Dice; 0: no such curve."),
    ] = 100,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    ray: RayOption = None,
    resume: ResumeOption = False,
) -> Chapter:
    """FateStones: the source's table, how much can be won, why its search won nothing, and a search that wins.

    Example: reproduce fatestones --log mcts10_vs_random.csv --report report
    """
    check_range("games", games, 1, MOST_GAMES)
    check_range("draws", draws, 2, MOST_DRAWS)
    check_range("work", work, 1e-6, 1e6, whole=False)
    check_range("most", most, 10, 100_000)
    check_range("liars-dice", liars_dice, 0, 10_000)
    logs = {path: read_log(path) for path in log or []}
    check_writable(json)
    check_report(report)
    what = {"source": "fatestones", "games": games, "draws": draws, "work": work, "most": most, "liars_dice": liars_dice}
    with kept_beside(json, resume, what, seed) as kept, on_ray(ray, kept) as workers:
        seed = kept.seed if kept else seed_or_fresh(seed)
        console.print(f"seed {seed}")
        variant = configure("fatestones")
        rows: list[Finding] = []
        for path, rolls in logs.items():
            rows += recount(path, rolls)
        recounted = {name: log.edge_share() for log in logs.values() for name in names_of(log)}
        rows += replay(games, recounted, seed, workers)
        print_rows("The source's table", rows)

        hands = draw_hands(variant, draws, seed)
        exact = solve_draws(hands)
        values = [
            Finding(
                "exact play", "best response to random, margin a draw", None, exact.best_response, exact.best_response_error
            ),
            Finding("exact play", "Nash against random, margin a draw", None, exact.nash, exact.nash_error),
            Finding("exact play", "most left to be won from Nash, any draw", None, f"{exact.gap:.1e}", exact.gap),
        ]
        for spec in ("random", "best_response:random", "nash"):
            values += _measure(variant, spec, hands[:2000], seed)
        values += _open_question()
        own = own_search(variant, work, seed, workers)
        values += own
        values += against_random(hands, work, seed, workers)
        print_rows("How much can be won from a random player (wins − losses a draw)", values, digits=5)
        _explain(exact.best_response, own, games)

        curves = fatestones_curves(hands, most, work, seed, workers)
        if liars_dice:
            curves += liars_dice_curves(liars_dice, seed, workers)
        finish(
            lambda: write_json(json, {"seed": seed, "rows": rows + values, "curves": curves}),
            lambda: draw(report, curves) if report is not None else None,
        )
    return Chapter("FateStones: the project's README, and what can be won", rows + values, seed)


def _open_question() -> list[Finding]:
    """Answer the source's open question, a measure by which 111111 is the worst of all 462 dice and 666666 the best: the
    mean margin."""
    everyone = np.arange(len(CODES))
    mean = margins(everyone).mean(axis=1)
    found = circles(configure("fatestones").params.bag)
    rows = []
    for what, wanted, die in (("worst", 111111, int(mean.argmin())), ("best", 666666, int(mean.argmax()))):
        note = f"mean margin {mean[die]:+.4f} against a random one of the 462"
        rows.append(Finding("dice", f"{what} die of all 462", wanted, CODES[die], 0.0, CODES[die] == wanted, note))
    strongest = " > ".join(str(CODES[die]) for die in (*found[0].dice, found[0].dice[0]))
    note = f"the strongest: {strongest}, each by {found[0].least:.4f} or more"
    return [*rows, Finding("dice", "circles of three among the fair dice", None, len(found), 0.0, note=note)]


def _measure(variant: Variant, spec: str, hands: np.ndarray, seed: int) -> list[Finding]:
    """Measure an agent that states its probabilities exactly on draws."""
    result = evaluate(variant, agents.make(spec), hands, seed)
    note = f"{len(hands):,} draws"
    return [
        Finding("exact play", f"{spec}: share of the edge", None, *result.edge_share(), note=note),
        Finding("exact play", f"{spec}: margin against random", None, *result.margin(), note=note),
        Finding("exact play", f"{spec}: exploitability", None, *result.exploitability(), note=note),
    ]


def _explain(edge: float, own: Sequence[Finding], games: int) -> None:
    """Print why the source's search won nothing, and why its games could hardly have shown it."""
    shares = ", ".join(f"{row.ours:+.3f} ± {row.error:.3f} ({size:,})" for size, row in zip(PROJECT, own, strict=True))
    lines = [
        f"The best response wins {100 * edge:.1f} games in a hundred more than it loses, so at best {50 + 50 * edge:.1f} % of",
        "decided games. The source's search takes none of that edge, however long it searches. Of the edge it takes, by",
        f"simulations: {shares}. Its simulator, read and rewritten here:",
        "- gives each different face of a die the same chance, so 144444 is a fair coin of 1 and 4;",
        "- lets the tree choose the rolls, as if they were moves;",
        "- reverses the reward at each level, rolls included: an opponent picks them, and after a tie a win is a loss;",
        "- picks the opponent's die too, and plays its own die of the pair that did best on average. With 10 simulations",
        "  each pair of three dice against three has been tried once.",
        "With the game's own odds and no reversal, a search that picks both dice takes some of the edge; see the curves.",
        f"The least margin that 10,000 games can tell from 0 is {100 * Z95 / 100:.1f} in a hundred, half of the whole edge;",
        f"that of {games:,} games is {100 * Z95 / math.sqrt(games):.2f}.",
    ]
    console.print("\n".join(lines))
