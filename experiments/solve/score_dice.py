"""`solve score_dice`: the exact distribution of the score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def main(
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help="A game option, KEY=VALUE; repeat it.")] = None,
    pairing: Annotated[str, typer.Option(help="sorted: highest with highest; unsorted: a random pairing.")] = "sorted",
    json: Annotated[Path | None, typer.Option("--json", help="Write the result here as JSON.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a histogram into this folder.")] = None,
) -> None:
    """Exact distribution of the score of score dice, as fractions, and its win bias, ties and closeness.

    The score is A's points less B's. Win bias is 100 (P(score > 0) - P(score < 0)), closeness 1 / √E[score²].

    Example: solve score_dice -o pool_a=6,6,6,6,6 -o pool_b=6,6,8,8,8 -o ties=a --pairing sorted
    """
    from rich.table import Table

    from agents.score_counting import score_distribution
    from dice_envs import configure
    from dice_envs.game import parse_options
    from experiments.output import check_folder, check_writable, console, figure, write_json
    from experiments.score_tables import draw_histogram, pool_name

    options = configure("score_dice", **parse_options(option or [])).options
    check_writable(json)
    check_folder(report)
    result = score_distribution(options.pool_a, options.pool_b, options.ties, pairing)  # type: ignore[arg-type]
    game = f"{pool_name(options.pool_a)} v {pool_name(options.pool_b)}, {pairing}, ties={options.ties}"
    table = Table(title=game, title_justify="left")
    for heading in ("score", "chance", "exactly"):
        table.add_column(heading, justify="right", overflow="fold")
    for score, chance in result.chances.items():
        table.add_row(f"{score:+d}" if score else "0", f"{float(chance):.6f}", str(chance))
    console.print(table)
    console.print(
        f"win bias {float(result.win_bias):.2f}, ties {float(result.tie_percentage):.2f} %, closeness {result.closeness:.3f}",
        highlight=False,
    )
    summary: dict[str, Any] = {
        "win_bias": float(result.win_bias),
        "tie_percentage": float(result.tie_percentage),
        "closeness": result.closeness,
        "distribution": {str(score): str(chance) for score, chance in result.chances.items()},
    }
    write_json(json, summary)
    if report is not None:
        with figure(report, "score_dice_distribution") as (_, axes):
            draw_histogram(axes, result, game)
