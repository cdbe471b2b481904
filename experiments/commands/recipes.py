"""`recipes`: ways of training by self-play, compared by the exact gap that each reaches with the same number of steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import typer

import dice_envs
from dice_envs import Variant, measure
from dice_envs.core.game import single_seat
from dice_envs.core.machine import check_threads, torch_device
from dice_envs.core.options import check_range, shown
from dice_envs.experiments.jobs.workers import Done, Processes
from dice_envs.experiments.ui.console import console, finish, print_mode
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.options import DeviceOption, GameArgument, JsonOption, OptionOption, count_option, game_options
from dice_envs.experiments.ui.progress import progress
from dice_envs.learn.presets import Preset, preset_of

__all__ = ["PLACE", "RECIPES", "main", "recipes_of"]

PLACE = 7  # in the list of --help

# One pass over each rollout, and a critic that sees what its seat sees.
_SIMPLE: dict[str, Any] = {
    "num_steps": 64, "epochs": 1, "clip": 0.2, "central_critic": False, "proximal": 0.0, "average_rate": 0.02,
    "kl": 0.0, "reference_rate": 0.0, "entropy_end": None,
}  # fmt: skip

# An entry for each recipe: its changes to the preset "equilibrium".
RECIPES: dict[str, dict[str, Any]] = {
    "plain": {**_SIMPLE, "normalize": True, "entropy": 0.01},
    "high entropy": {**_SIMPLE, "normalize": True, "entropy": 0.1},
    "MMD": {**_SIMPLE, "kl": 0.1, "kl_end": 0.02, "entropy": 0.0},
    "MMD, moving reference": {
        **_SIMPLE, "kl": 0.3, "kl_end": 1.0, "reference_rate": 0.05, "entropy": 0.02, "entropy_end": 0.002,
    },
    "mirror descent, central critic": {},
    "published": {
        **_SIMPLE, "normalize": True, "entropy": 0.1, "clip": 0.025, "learning_rate": 6.25e-5, "num_envs": 8,
        "num_steps": 256, "epochs": 8, "value_weight": 0.0625, "hidden": (512, 512, 512),
    },
}  # fmt: skip
"""plain: a library's usual settings. high entropy: an entropy bonus of 0.1. MMD: a decreasing pull to the initial, almost
uniform policy. MMD, moving reference: a pull to a policy that follows the learner. mirror descent, central critic: the preset
"equilibrium", whose steps have one size, and whose critic sees all hands. published: the best PPO of M. Rudolph et
al., Reevaluating Policy Gradient Methods for Imperfect-Information Games (2025), appendix, but for its discount of 0.99."""


def recipes_of(game: str, steps: int, names: Sequence[str] = ()) -> dict[str, Preset]:
    """Return the presets of these recipes, by default of all but "published", with this number of steps.

    Raises:
        ValueError: there is no such recipe.
    """
    for name in names:
        if name not in RECIPES:
            raise ValueError(f"unknown recipe {shown(name)}; recipes are: {'; '.join(RECIPES)}")
    chosen = names or [name for name in RECIPES if name != "published"]
    base = preset_of(game, "equilibrium", steps=steps, threads=1, measure_every=0, keep="last")
    return {name: dataclasses.replace(base, **RECIPES[name]) for name in chosen}


def _run(variant: Variant, name: str, preset: Preset, seed: int, device: str, done: Done) -> dict[str, Any]:
    plain, mine = (dataclasses.asdict(each) for each in (preset_of(variant.game.name, "equilibrium"), preset))
    settings = {name: value for name, value in mine.items() if value != plain[name]}
    found = dice_envs.train(variant, preset="equilibrium", seed=seed, settings=settings, device=device)
    gaps = {which: measure(variant, policy, seed=seed).measures[0].gap for which, policy in found.policies.items()}
    return {"recipe": name, "seed": seed, "steps": found.steps, "minutes": found.minutes, **gaps}


def compare(
    variant: Variant,
    recipes: Mapping[str, Preset],
    seeds: Sequence[int],
    jobs: int = 1,
    done: Callable[[], Any] = lambda: None,
    device: str = "cpu",
) -> list[dict[str, Any]]:
    """Train each recipe with each seed, and measure the policies exactly.

    Args:
        variant: a game with an exact measure.
        recipes: presets by name.
        seeds: of each recipe's runs.
        jobs: runs at once, each in its own process with one thread.
        done: called after each run.
        device: PyTorch's, see `dice_envs.train`.

    Returns:
        A row for each run: recipe, seed, steps, minutes, and the gaps of the last and the averaged policy.
    """
    if variant.facts.num_seats == 1:
        raise ValueError(f"recipes are for self-play, and {variant} has one seat")
    jobs = check_threads(jobs, "jobs")
    rows: list[dict[str, Any]] = []
    device = torch_device(device)
    runs = [(variant, name, preset, seed, device) for seed in seeds for name, preset in recipes.items()]
    for _, row in Processes(jobs).as_done(_run, runs):
        console.print(f"{row['recipe']}, seed {row['seed']}: last {row['last']:.4f}, averaged {row['averaged']:.4f}")
        rows.append(row)
        done()
    names = list(recipes)
    return sorted(rows, key=lambda row: (names.index(row["recipe"]), row["seed"]))


def show(variant: Variant, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print medians and the gap of every seed."""
    lines = []
    for name in dict.fromkeys(row["recipe"] for row in rows):
        own = [row for row in rows if row["recipe"] == name]
        for policy in ("last", "averaged"):
            gaps = [row[policy] for row in own]
            minutes = f"{np.mean([row['minutes'] for row in own]):.1f}"
            each = " ".join(f"{gap:.3f}" for gap in gaps)
            lines.append((name, policy, f"{np.median(gaps):.4f}", each, f"{own[0]['steps']:,}", minutes))
    headings = ("recipe", "policy", "median", "each seed", "steps", "minutes")
    Grid(f"{variant}: gap from optimal play, exact", headings, lines, words=(0, 1)).show()


def main(
    game: GameArgument,
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Recipes: {'; '.join(RECIPES)}. All but published if left out.")
    ] = None,
    option: OptionOption = None,
    steps: Annotated[int, count_option(help="Learner steps of each run.")] = 3_000_000,
    seeds: Annotated[int, typer.Option(help="Runs of each recipe, with seeds 0, 1, 2 …")] = 5,
    jobs: Annotated[int, typer.Option(help="Runs at once, one core each.")] = 2,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
) -> None:
    """Compare ways of training by self-play: the exact gap from optimal play that each reaches, for every seed.

    Example: recipes liars_dice -o rules=openspiel -o num_dice=1 --steps 3000000
    """
    variant = single_seat(game, **game_options(option))
    check_range("seeds", seeds, 1, 1000)
    chosen = recipes_of(variant.game.name, steps, names or ())
    check_writable(json)
    print_mode(variant, "")
    with progress("runs", len(chosen) * seeds) as done:
        rows = compare(variant, chosen, range(seeds), jobs, done, device)
    finish(lambda: show(variant, rows), lambda: write_json(json, {"variant": str(variant), "rows": rows}))
