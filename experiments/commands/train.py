"""`train`: a PPO agent, or a sweep of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs import names
from dice_envs.core.options import check_range
from dice_envs.experiments.sweep import MOST_RUNS, RECIPES, parse_settings, sweep
from dice_envs.experiments.train import train
from dice_envs.experiments.ui.options import (
    DeviceOption,
    GameArgument,
    JsonOption,
    OptionOption,
    RayOption,
    ReportOption,
    SeedOption,
    count_option,
)
from dice_envs.learn.presets import presets_of

__all__ = ["PLACE", "main"]

PLACE = 6  # in the list of --help


def main(
    game: GameArgument,
    preset: Annotated[
        str, typer.Option(help="quick (minutes) or full: beat opponents; equilibrium: be hard to exploit.")
    ] = "quick",
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/GAME_PRESET if left out.")] = None,
    option: OptionOption = None,
    opponents: Annotated[
        list[str] | None, typer.Option("--opponent", help="A fixed opponent instead of the preset's; may be repeated.")
    ] = None,
    steps: Annotated[int | None, count_option(help="Learner steps in all, instead of the preset's number.")] = None,
    seed: SeedOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    evaluation_games: Annotated[int, count_option(help="Games for each pair of agents in the final cross table.")] = 20_000,
    learner: Annotated[
        str | None, typer.Option(help="ppo: this package's own PPO, or sb3: MaskablePPO of SB3-contrib as it is.")
    ] = None,
    device: DeviceOption = "cpu",
    threads: Annotated[int | None, typer.Option(help="PyTorch's threads, instead of the preset's number.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the preset: NAME=VALUE, or NAME=VALUE,VALUE for a run with each."),
    ] = None,
    recipes: Annotated[
        list[str] | None,
        typer.Option("--recipe", help=f"A run with settings for self-play: {'; '.join(RECIPES)}; all: each but published."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each setting, with seeds from --seed (or 1) upwards.")] = None,
    jobs: Annotated[int, typer.Option(help="Runs at once, one core each.")] = 1,
    ray: RayOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all measures and the games between all players.")] = False,
) -> None:
    """Train a PPO agent, measure it exactly where that is possible, and save it.

    The presets quick and full learn to beat a pool of opponents (--opponent) and past selves. The preset equilibrium, and
    match in Liar's Dice of many rounds, learn by self-play to be hard to beat. Exact gaps are recorded during training
    where they are cheap.

    The agent is saved as OUT/policy.npz; `ppo:OUT` names it in every command, with its game options. Ctrl-C saves
    everything and stops; --resume continues the run, even after a kill, and ends exactly like an undisturbed run. In The
    Shakes it trains a physician, in the game of 30s a player alone; -o chooses the game with others.

    With --report, the measures, tables and plots become one page.

    With --seeds, --recipe, or several values of --set, there are many runs, each in its own folder inside OUT, and a table
    at the end: exact gaps and shares won, for every seed. --jobs makes several at once, --ray distributes them on a cluster.

    Example: train liars_dice --out runs/three_dice -o num_dice=3 --opponent numbers --opponent random
    """
    plain = presets_of(game).get(preset) if game in names() else None
    values = parse_settings(settings or [], plain) if plain is not None else {}
    several = seeds is not None or bool(recipes) or any(len(each) > 1 for each in values.values())
    if (ray is not None or jobs != 1) and not several:
        raise ValueError("--jobs and --ray share out several runs: add --seeds or --recipe, or --set with several values")
    common: dict[str, Any] = {"option": option or [], "opponents": opponents, "steps": steps, "resume": resume, "json": json}
    common |= {"evaluation_games": evaluation_games, "learner": learner, "device": device, "verbose": verbose}
    if not several or plain is None:  # `train` refuses a game or preset that does not exist
        chosen = {name: each for name, (each,) in values.items()}
        train(game, preset, out, seed=seed, threads=threads, settings=chosen, report=report, **common)
        return
    if report is not None:
        raise ValueError("--report shows one run: leave it out, or --seeds, --recipe and several values of --set")
    check_range("seeds", 1 if seeds is None else seeds, 1, MOST_RUNS)
    first = 1 if seed is None else seed
    folder = out or Path("runs") / f"{game}_{preset}_sweep"
    chosen_seeds = range(first, first + (seeds or 1))
    sweep(game, preset, folder, values, chosen_seeds, recipes or (), jobs, ray, threads=threads or 1, **common)
