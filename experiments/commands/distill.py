"""`distill`: turns a solution of two-player Liar's Dice into one small network, and measures it exactly."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import Measures, configure, measure
from dice_envs.agents.about import measures_as_dicts
from dice_envs.agents.ppo import Likeliest, NetworkPolicy, save_policy
from dice_envs.core.machine import torch_device
from dice_envs.core.options import shown
from dice_envs.exact.liars_dice.shares import check_measurable
from dice_envs.exact.liars_dice.solver import solve, throttled
from dice_envs.experiments.solve.liars_dice import line_of
from dice_envs.experiments.ui.console import console, finish, print_mode
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.findings import measuring, show_measures
from dice_envs.experiments.ui.options import (
    DeviceOption,
    GameArgument,
    JsonOption,
    OptionOption,
    SeedOption,
    count_option,
    game_options,
    seed_or_fresh,
)
from dice_envs.experiments.ui.progress import progress
from dice_envs.learn.distill import FLOORS, DistillSettings, Learner, TrainingPositions, train

SAY_EVERY = 500  # updates


def main(
    game: GameArgument,
    option: OptionOption = None,
    hidden: Annotated[str, typer.Option(help="The sizes of the hidden layers, separated by commas.")] = "512,512",
    steps: Annotated[int, count_option(help="Updates of the network, each from 2,048 positions.")] = DistillSettings().steps,
    minutes: Annotated[
        float | None, typer.Option(help="Stop training after this many minutes; the seed alone does not repeat the run then.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Adam's learning rate, which falls to 0.")] = DistillSettings().rate,
    memoryless: Annotated[
        bool, typer.Option("--memoryless", help="The network sees the last bid only: it is measured fast, but plays worse.")
    ] = False,
    precision: Annotated[float, typer.Option(help="The solution's exploitability.")] = DistillSettings().precision,
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
    settings = DistillSettings(hidden_sizes(hidden), steps, limit, rate, memoryless, precision)
    distill(game, option or [], settings, out, seed, json, device)


def best_floor(policy: NetworkPolicy) -> tuple[NetworkPolicy, Measures, float]:
    """Return the policy with the floor for which best responses win least, its measures, and the seconds of measuring."""
    measure(policy.variant, "random")  # the scores' reference, computed first so that its seconds do not count
    best: tuple[NetworkPolicy, Measures, float] | None = None
    for floor in FLOORS:
        candidate = NetworkPolicy(policy.game, policy.options, policy.layers, policy.about, floor)
        name, start = f"floor {floor:g}", time.monotonic()
        with measuring(name) as done:
            measured = dataclasses.replace(measure(policy.variant, candidate, done=done), agent=name)
        console.print(f"{name}: best responses win {100 * measured.measures[1].value:.3f} %")
        if best is None or measured.measures[0].value < best[1].measures[0].value:
            best = candidate, measured, time.monotonic() - start
    assert best is not None
    return best


def distill(
    game: str,
    option: Sequence[str],
    settings: DistillSettings,
    out: Path | None,
    seed: int | None,
    json: Path | None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Solve, train, measure and save. The arguments are those of the command `distill`.

    Returns:
        The `about` of the policy's file (see `dice_envs.agents.about.check_about`), with the solution's own exploitability.

    Raises:
        ValueError: a game that is not solved or cannot be measured, or wrong arguments.
    """
    plain = configure(game).game.name
    if plain != "liars_dice":
        raise ValueError(f"distill takes liars_dice, not {plain}: only its solutions are stored as probabilities")
    options = game_options(option)
    variant = configure(plain, **options)
    check_measurable(variant, "distilling, which measures the network,")
    seed, device = seed_or_fresh(seed), torch_device(device)
    out = out or Path("runs") / "liars_dice_distilled.npz"
    check_writable(out)
    check_writable(json)
    print_mode(variant)
    say = throttled(lambda each: console.print(line_of(each)), 2.0, ends=True)
    solution = solve(variant, settings.precision, resume=True, done=say)
    learner, positions = Learner(variant, settings, seed, device), TrainingPositions(variant, solution, seed)
    losses: list[float] = []
    start = time.monotonic()
    with progress("updates", settings.steps) as done:

        def report(made: int, loss: float) -> None:
            done(1)
            losses.append(loss)
            if made % SAY_EVERY == 0:
                mean = float(np.mean(losses[-SAY_EVERY:]))
                console.print(f"{made:>8,} updates  {time.monotonic() - start:>6,.0f} s  divergence {mean:.5f}")

        made = train(learner, positions, report)
    minutes = (time.monotonic() - start) / 60
    policy, measured, seconds = best_floor(learner.policy())
    with measuring("greedy") as done:
        greedy = dataclasses.replace(measure(variant, Likeliest(policy), done=done), agent="greedy")
    policy.about = {
        "command": _command(option, settings, seed, device),
        "method": "distill",
        "seed": seed,
        "steps": made,
        "minutes": round(minutes, 2),
        "measures": measures_as_dicts(measured),
        "greedy_measures": measures_as_dicts(greedy),
        "measuring_seconds": round(seconds, 2),
        "solution": {"exploitability": solution.exploitability, "value": solution.value},
        "divergence": float(np.mean(losses[-SAY_EVERY:])),
    }
    finish(
        lambda: save_policy(out, policy, half=True),
        lambda: show_measures(dataclasses.replace(measured, agent="distilled")),
        lambda: show_measures(greedy),
        lambda: console.print(f"the solution's own exploitability: at most {solution.exploitability:.6f}"),
        lambda: write_json(json, policy.about),
        lambda: console.whole_line(f"saved: ppo:{out}, {out.stat().st_size:,} bytes"),
    )
    return policy.about


def _command(option: Sequence[str], settings: DistillSettings, seed: int, device: str) -> str:
    """The command that makes the same policy again, without --out; a time limit may make it another one."""
    given = [f"-o {each}" for each in option]
    given += [f"--hidden {','.join(map(str, settings.hidden))}", f"--steps {settings.steps}", f"--rate {settings.rate:g}"]
    given += [f"--minutes {settings.minutes:g}"] if math.isfinite(settings.minutes) else []
    given += ["--memoryless"] if settings.memoryless else []
    given += [f"--precision {settings.precision:g}", f"--seed {seed}"]
    given += [] if device == "cpu" else [f"--device {device}"]
    return " ".join(["python -m experiments distill liars_dice", *given])


def hidden_sizes(text: str) -> tuple[int, ...]:
    """Parse sizes such as `512,512`; ValueError for anything else."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise ValueError(f"hidden must be sizes of layers such as 512,512, not {shown(text)}")
    return tuple(map(int, parts))
