"""D. Oehm, "Liar's Dice in R" (Gradient Descending, 2018): its simulations and examples, and the answer to its question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs.core.options import check_range
from dice_envs.exact.liars_dice.solver import LEAST_PRECISION
from dice_envs.experiments.arena import MOST_GAMES
from dice_envs.experiments.jobs.workers import kept_beside, on_ray
from dice_envs.experiments.reproduce.liars_dice.answer import findings, work_out
from dice_envs.experiments.reproduce.liars_dice.plots import draw_answer
from dice_envs.experiments.reproduce.liars_dice.simulations import (
    EXPLANATION,
    draw_posterior,
    draw_simulations,
    posterior_rows,
    simulate,
)
from dice_envs.experiments.reproduce.liars_dice.tables import show
from dice_envs.experiments.reproduce.liars_dice.worked_examples import worked_examples
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.findings import print_rows
from dice_envs.experiments.ui.options import (
    GamesOption,
    JsonOption,
    RayOption,
    ReportOption,
    ResumeOption,
    SeedOption,
    seed_or_fresh,
)
from dice_envs.experiments.ui.page import Chapter

MOST_DICE = 5  # of each player; more take hours to solve


def main(
    games: GamesOption = 1_000_000,
    seed: SeedOption = None,
    dice: Annotated[int, typer.Option(help="Dice of each player in the game that is solved, 1 to 5.")] = 5,
    precision: Annotated[float, typer.Option(help="The exploitability of the solution, for returns of ±1.")] = 1e-3,
    json: JsonOption = None,
    report: ReportOption = None,
    ray: RayOption = None,
    resume: ResumeOption = False,
) -> Chapter:
    """Oehm's simulations with two and four players, played as his program plays and as his text says; his posterior and his
    worked examples; then the answer to his question, bluff or play the numbers, from an exact solution of the two-player game.

    Five dice take a minute or two to solve, once: solved rounds are kept and used again.

    Example: reproduce liars-dice --dice 3
    """
    check_range("games", games, 1, MOST_GAMES)
    check_range("dice", dice, 1, MOST_DICE)
    check_range("precision", precision, LEAST_PRECISION, 1, whole=False)
    check_writable(json)
    check_report(report)
    what = {"source": "liars_dice", "games": games, "dice": dice, "precision": precision}
    with kept_beside(json, resume, what, seed) as kept, on_ray(ray, kept) as workers:
        seed = kept.seed if kept else seed_or_fresh(seed)
        rows = simulate(games, seed, workers)
        rows += posterior_rows(rows)
        print_rows(f"Liar's Dice, {games:,} games each, seed {seed}", rows, digits=2)
        console.print(EXPLANATION)
        examples = worked_examples()
        print_rows("The article's worked examples", examples, digits=2)
        answer = work_out(dice, precision)
        show(answer)
        data: dict[str, Any] = {
            "seed": seed,
            "games": games,
            "dice": dice,
            "precision": precision,
            "rows": rows + examples + findings(answer),
        }

        def plot(folder: Path) -> None:
            draw_simulations(folder, rows)
            draw_posterior(folder, rows)
            draw_answer(folder, answer)

        finish(
            lambda: write_json(json, data),
            lambda: plot(report) if report is not None else None,
        )
    return Chapter("Liar's Dice: D. Oehm, “Liar's Dice in R” (2018), and the answer to its question", data["rows"], seed)
