"""`distill`: one small network that plays a solution of Liar's Dice."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from dice_envs.experiments.distill import distill, hidden_sizes
from dice_envs.experiments.ui.options import DeviceOption, GameArgument, JsonOption, OptionOption, SeedOption, count_option
from dice_envs.learn.distill import Settings

__all__ = ["PLACE", "main"]

PLACE = 8  # in the list of --help


def main(
    game: GameArgument,
    option: OptionOption = None,
    hidden: Annotated[str, typer.Option(help="The sizes of the hidden layers, separated by commas.")] = "512,512",
    steps: Annotated[int, count_option(help="Updates of the network, each from 2,048 positions.")] = Settings().steps,
    minutes: Annotated[
        float | None, typer.Option(help="Stop training after this many minutes; the seed alone does not repeat the run then.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Adam's learning rate, which falls to 0.")] = Settings().rate,
    memoryless: Annotated[
        bool, typer.Option("--memoryless", help="The network sees the last bid only: it is measured fast, but plays worse.")
    ] = False,
    precision: Annotated[float, typer.Option(help="The solution's exploitability.")] = Settings().precision,
    out: Annotated[Path | None, typer.Option(help="The policy file; runs/liars_dice_distilled.npz if left out.")] = None,
    seed: SeedOption = None,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
) -> None:
    """Train one small network to play as the solution of a two-player Liar's Dice does, and measure it exactly.

    The network is saved as a policy, which `ppo:OUT` plays. It never takes actions that are much less likely than the
    likeliest; the threshold is the one for which best responses win least.

    Example: distill liars_dice -o num_dice=3 --hidden 256,256 --steps 3000
    """
    limit = math.inf if minutes is None else minutes
    settings = Settings(hidden_sizes(hidden), steps, limit, rate, memoryless, precision)
    distill(game, option or [], settings, out, seed, json, device)
