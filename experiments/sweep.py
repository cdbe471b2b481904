"""Sweeps: training runs for several seeds, settings and recipes, and a table of their results."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.core.files import atomic
from dice_envs.core.machine import check_threads
from dice_envs.core.options import check_choice, check_range, check_seed, did_you_mean, is_whole, parse_options, shown
from dice_envs.core.work import advance, work
from dice_envs.experiments.jobs import Processes, kept_beside, on_ray
from dice_envs.experiments.train import RunSpec, make_run
from dice_envs.experiments.ui import check_folder, finish, progress, write_json
from dice_envs.experiments.ui.grids import Grid
from dice_envs.learn.presets import Preset, presets_of, setting_text

MOST_RUNS = 10_000

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


def parse_settings(given: Sequence[str], preset: Preset) -> dict[str, list[Any]]:
    """Parse settings of a preset: NAME=VALUE, or NAME=VALUE,VALUE,... to try several; layers are written 128x128. ValueError
    for another form, an unknown setting, a wrong value, or a setting or value given twice."""
    # Opponents have their own option.
    known = {name: value for name, value in vars(preset).items() if name != "opponents"}
    found: dict[str, list[Any]] = {}
    for pair in given:
        name, equals, values = (part.strip() for part in pair.partition("="))
        if not equals or not values:
            raise ValueError(f"--set must be NAME=VALUE or NAME=VALUE,VALUE,..., not {shown(pair)}")
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"--set {shown(name)}: no such setting; settings are: {', '.join(known)}{hint}")
        if name in found:
            raise ValueError(f"--set {name} is given twice; put all its values into one")
        found[name] = [_value(name, text, known[name]) for text in map(str.strip, values.split(","))]
        if len(set(found[name])) < len(found[name]):
            hint = "; the layers of one network are written 128x128" if isinstance(known[name], tuple) else ""
            raise ValueError(f"--set {name} has a value twice: {values}{hint}")
    first = {name: choices[0] for name, choices in found.items()}
    for name, choices in found.items():
        for value in choices:
            dataclasses.replace(preset, **{**first, name: value})
    return found


def _value(name: str, text: str, like: Any) -> Any:
    """Parse a setting's value; `like` is the preset's. Settings that may be None are numbers."""
    if isinstance(like, tuple):
        return layer_sizes(text, "x")
    value = parse_options([f"{name}={text.replace('_', '')}"])[name]
    return float(value) if is_whole(value) and (like is None or isinstance(like, float)) else value


def layer_sizes(text: str, between: str) -> tuple[int, ...]:
    """Return the sizes of a network's layers. ValueError if they are no whole numbers; their range is checked elsewhere."""
    sizes = text.split(between)
    if not all(size.strip().isdecimal() for size in sizes):
        raise ValueError(f"hidden must be the sizes of layers such as 128{between}128, not {shown(text)}")
    return tuple(map(int, sizes))


def sweep(
    spec: RunSpec,
    settings: Mapping[str, Sequence[Any]],
    seeds: Sequence[int],
    recipes: Sequence[str] = (),
    jobs: int = 1,
    ray: str | None = None,
    json: Path | None = None,
    verbose: bool = False,
) -> list[dict[str, Any]]:
    """Train once for each seed, recipe and combination of settings, each run in its own folder.

    Each run has one thread, so that its result does not depend on where it is made. Finished runs are kept.

    Args:
        spec: of all runs, with the folder of their folders. With `resume` a stopped sweep is continued: an unfinished run is
            resumed here, and starts anew on a cluster.
        settings: the values to try, by field of the preset.
        seeds: of the runs.
        recipes: names in RECIPES, for the preset "equilibrium", or "all" for each but published; none: the preset as it is.
        jobs: runs at once, each in its own process and silent; 1: in this process, one after another.
        ray: address of the Ray cluster that makes the runs, instead of `jobs`.
        json: a file for the rows, besides `sweep.json` in the folder.
        verbose: as for `make_run`.

    Returns:
        A row for each run: its name, recipe, seed, settings, exact gaps and win rates.

    Raises:
        ValueError: wrong arguments, or a folder that holds such runs already.
    """
    game, preset, resume, folder = spec.game, spec.preset, spec.resume, spec.out
    assert folder is not None
    runs, jobs = runs_of(game, preset, settings, seeds, recipes), check_threads(jobs, "jobs")
    check_folder(folder)
    for name, *_ in runs:
        if (folder / name).exists() and not resume:
            raise ValueError(f"{folder} holds the run {name} already; add --resume to go on with it, or choose another --out")
    common = dataclasses.asdict(dataclasses.replace(spec, out=None, resume=False, seed=None))
    what = {"run": common, "settings": dict(settings), "seeds": list(seeds), "recipes": list(recipes)}
    with kept_beside(folder / "sweep.json", resume, what, 0) as kept, on_ray(ray, kept) as alone:
        workers = Processes(jobs, kept) if jobs > 1 and ray is None else alone
        shared = (dataclasses.replace(spec, out=None if ray else folder), verbose, workers is not alone)
        with progress("runs", len(runs)):
            trained = workers.run(_trained, shared, [(name, chosen, seed) for name, _, chosen, seed in runs])
        rows = []
        for (name, recipe, chosen, seed), (result, files) in zip(runs, trained, strict=True):
            own = folder / name
            for file, content in files.items():
                with atomic(own / file) as temporary:
                    temporary.write_bytes(base64.b64decode(content))
            rows.append({"run": name, "recipe": recipe, "seed": seed, "settings": chosen, **result})
        finish(
            lambda: show(f"{game}, preset {preset}", rows),
            lambda: write_json(folder / "sweep.json", {"rows": rows}),
            lambda: write_json(json, {"rows": rows}),
        )
    return rows


def runs_of(
    game: str, preset: str, settings: Mapping[str, Sequence[Any]], seeds: Sequence[int], recipes: Sequence[str]
) -> list[tuple[str, str, dict[str, Any], int]]:
    """Return the name, recipe ("" for none), settings and seed of each run. ValueError for wrong arguments, as in `sweep`."""
    for recipe in recipes:
        check_choice("recipe", recipe, (*RECIPES, "all"))
    usual = [name for name in RECIPES if name != "published"]
    recipes = [each for recipe in recipes for each in (usual if recipe == "all" else [recipe])]
    if len(set(recipes)) < len(recipes):
        raise ValueError(f"recipe names one twice: {', '.join(recipes)}")
    combinations = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    check_range("the number of runs", len(combinations) * len(seeds) * max(1, len(recipes)), 1, MOST_RUNS)
    for seed in seeds:
        check_seed(seed)
    if recipes and preset != "equilibrium":
        raise ValueError(f"preset must be 'equilibrium' with recipes, which change its settings, not {shown(preset)}")
    runs = []
    for recipe, chosen in itertools.product(recipes or [""], combinations):
        whole, named = {**RECIPES.get(recipe, {}), **chosen}, {**({"recipe": recipe} if recipe else {}), **chosen}
        dataclasses.replace(presets_of(game)[preset], **whole)  # raises for values that exclude each other
        runs += [(_name(named, seed), recipe, whole, seed) for seed in seeds]
    return runs


def _name(chosen: Mapping[str, Any], seed: int) -> str:
    """The name of a run's folder, valid as a path in an agent's spec: `learning_rate_0.001_seed_3`."""
    words = "_".join(f"{name}_{setting_text(value)}" for name, value in {**chosen, "seed": seed}.items())
    return re.sub(r"[^\w.+-]+", "_", words)


def _trained(
    spec: RunSpec, verbose: bool, silent: bool, name: str, chosen: Mapping[str, Any], seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """Make one run; return its results and, without a folder, the contents of its files."""
    folder = spec.out
    with contextlib.ExitStack() as until_trained:
        if silent:
            nowhere = until_trained.enter_context(open(os.devnull, "w", encoding="utf-8"))
            until_trained.enter_context(contextlib.redirect_stdout(nowhere))
            until_trained.enter_context(contextlib.redirect_stderr(nowhere))
        own = Path(folder or until_trained.enter_context(tempfile.TemporaryDirectory())) / name
        own_spec = dataclasses.replace(spec, out=own, seed=seed, resume=True, settings=chosen)
        with work():
            result = make_run(own_spec, verbose=verbose)
        files = {}
        if folder is None:
            files = {
                path.name: base64.b64encode(path.read_bytes()).decode()
                for path in sorted(own.iterdir())
                if path.is_file() and not path.name.startswith(".")
            }
    advance()
    measured = result.measures[0].measures[0] if result.measures else None
    pairs = result.table if result.table is not None and result.table.seats == 2 else None
    gaps = (result.trained.gaps or [{}])[-1]
    row = {
        "steps": result.trained.steps,
        "minutes": result.trained.minutes or None,
        "gap": None if measured is None else {"name": measured.name, "gap": measured.gap, "error": measured.error},
        "gaps": {name: gap for name, gap in gaps.items() if name != "steps"},
        "wins": dict(zip(pairs.agents[2:], pairs.win_rate[0][2:], strict=True)) if pairs is not None else {},
    }
    return row, files


def show(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print, for each recipe or combination of settings, gaps and the shares won: medians and every seed."""

    def label(row: Mapping[str, Any]) -> str:
        usual = RECIPES.get(row["recipe"], {})
        changed = [f"{name}={setting_text(value)}" for name, value in row["settings"].items() if usual.get(name) != value]
        return " ".join([row["recipe"], *changed]).strip()

    cells = []
    for settings, group in itertools.groupby(rows, key=label):
        own = list(group)
        lines = {}
        if all(row["gap"] for row in own):
            lines[f"gap: {own[0]['gap']['name']}"] = [row["gap"]["gap"] for row in own]
        for policy in own[0]["gaps"]:
            lines[f"gap of the {policy} policy"] = [row["gaps"][policy] for row in own]
        for opponent in own[0]["wins"]:
            lines[f"wins against {opponent}"] = [row["wins"][opponent] for row in own]
        for number, (quantity, values) in enumerate(lines.items()):
            each = " ".join(f"{value:.4f}" for value in values)
            cells.append((settings or "as the preset" if number == 0 else "", quantity, f"{np.median(values):.4f}", each))
    Grid(title, ("settings", "quantity", "median", "each seed"), cells, words=(0, 1)).show()
