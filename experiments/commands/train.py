"""`train`: a PPO agent, or a sweep of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from dice_envs import names
from dice_envs.core.options import check_range
from dice_envs.experiments import ui
from dice_envs.experiments.sweep import MOST_RUNS, RECIPES, parse_settings, sweep
from dice_envs.experiments.train import RunSpec, make_run
from dice_envs.learn.presets import presets_of


def main(
    game: ui.GameArgument,
    preset: Annotated[
        str, typer.Option(help="quick (minutes) or full: beat opponents; equilibrium: be hard to exploit.")
    ] = "quick",
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/GAME_PRESET if left out.")] = None,
    option: ui.OptionOption = None,
    opponents: Annotated[
        list[str] | None, typer.Option("--opponent", help="A fixed opponent instead of the preset's; may be repeated.")
    ] = None,
    steps: Annotated[int | None, ui.count_option(help="Learner steps in all, instead of the preset's number.")] = None,
    seed: ui.SeedOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    measure: Annotated[str | None, typer.Option(help="Afterwards: none, quick or full. Default: see above.")] = None,
    evaluation_games: Annotated[int | None, ui.count_option(help="Games of a pair afterwards; 20,000, quick 2,000.")] = None,
    learner: Annotated[
        str | None, typer.Option(help="ppo: this package's own PPO, or sb3: MaskablePPO of SB3-contrib as it is.")
    ] = None,
    device: ui.DeviceOption = "cpu",
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
    ray: ui.RayOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all measures and the games between all players.")] = False,
) -> None:
    """Train a PPO agent, measure it exactly where that is possible, and save it.

    The presets quick and full learn to beat a pool of opponents (--opponent) and past selves. The preset equilibrium, and
    match in Liar's Dice of many rounds, learn by self-play to be hard to beat. Exact gaps are recorded during training
    where they are cheap.

    A training that is shorter than a minute and than its preset's is measured quickly, and a line says what was left out and
    which command adds it; --measure full measures all.

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
    spec = RunSpec(
        game, preset, out, option=option or (), opponents=opponents or (), steps=steps, seed=seed, resume=resume,
        evaluation_games=evaluation_games, learner=learner, device=device, threads=threads,
        measure=measure or ("full" if several else None),  # runs that are compared have the same measures
    )  # fmt: skip
    if not several or plain is None:  # `train` refuses a game or preset that does not exist
        chosen = {name: each for name, (each,) in values.items()}
        make_run(dataclasses.replace(spec, settings=chosen), json, report, verbose)
        return
    if report is not None:
        raise ValueError("--report shows one run: leave it out, or --seeds, --recipe and several values of --set")
    check_range("seeds", 1 if seeds is None else seeds, 1, MOST_RUNS)
    first = 1 if seed is None else seed
    spec = dataclasses.replace(spec, out=out or Path("runs") / f"{game}_{preset}_sweep", threads=threads or 1)
    sweep(spec, values, range(first, first + (seeds or 1)), recipes or (), jobs, ray, json, verbose)
