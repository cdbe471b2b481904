"""`soak`: random play through every interface, checked at every move."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from dice_envs import load, names
from dice_envs.core.options import check_range
from dice_envs.experiments.soak.run import MOST_MOVES, broken, show, soak
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.options import JsonOption, SeedOption, count_option, seed_or_fresh
from dice_envs.experiments.ui.progress import progress

__all__ = ["PLACE", "main"]

PLACE = 12  # in the list of --help


def main(
    games: Annotated[list[str] | None, typer.Argument(help="Games, say liars_dice; all if left out.")] = None,
    moves: Annotated[
        int, count_option(help="Moves in the compiled loop; each interface plays one for every 2,000 of them.")
    ] = 10**7,
    seed: SeedOption = None,
    json: JsonOption = None,
) -> None:
    """Play every game with random options through every interface, and check every move against their promises.

    Some moves are illegal on purpose. Faults are listed with options and seed, and the command then fails.
    JSON: {"seed", "moves", "seconds", "memory": bytes after each round, "rows": [{"game", "interface", "moves", "games",
    "variants", "faults"}]}.

    Example: soak --moves 1000000000 --seed 1
    """
    check_range("moves", moves, 1, MOST_MOVES)
    chosen = [load(name).name for name in games or names()]
    seed = seed_or_fresh(seed)
    check_writable(json)
    console.print(f"seed {seed}")
    begun = time.perf_counter()
    with progress("moves", moves) as done:
        rows, memory = soak(chosen, moves, seed, done)
    seconds = time.perf_counter() - begun
    finish(
        lambda: show(rows, memory, seconds),
        lambda: write_json(json, {"seed": seed, "moves": moves, "seconds": seconds, "memory": memory, "rows": rows}),
    )
    if broken(rows, memory):
        raise typer.Exit(1)
