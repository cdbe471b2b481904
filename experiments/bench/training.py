"""Speed of training with PPO, beside MaskablePPO on the same games."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dice_envs import configure
from dice_envs.core.machine import torch_threads
from dice_envs.experiments.bench import BenchPart, BenchRow
from dice_envs.learn.presets import LEARNERS, PRESETS
from dice_envs.learn.run import TrainingRun


def _ppo(quick: bool, device: str) -> Iterator[BenchRow]:
    """Time whole training iterations of `train --preset quick`: play, update and bookkeeping. On a CPU, of one core."""
    preset = PRESETS["liars_dice"]["quick"]
    on_cpu = device == "cpu"
    preset = preset if on_cpu else preset.on_gpu()
    with tempfile.TemporaryDirectory() as folder, torch_threads(preset.threads):
        model, stock = (
            TrainingRun(configure("liars_dice"), preset, 0, Path(folder) / learner, device, learner).model
            for learner in LEARNERS
        )
        count = (1 if quick else 8) * (1 if on_cpu else 16)
        ours = count * preset.num_envs * preset.num_steps / _seconds(model.iterate, count)
        theirs = preset.num_envs * preset.num_steps / _seconds(lambda: stock.iterate(lambda *results: None), 1)
        shares = f"processor time: {_shares(model, count)}" if on_cpu else f"{preset.num_envs:,} games at once"
    yield BenchRow(
        "PPO training, learner steps", ours, "/s", 55_000 if on_cpu else 6e6, theirs,
        "MaskablePPO with the same games and settings", shares,
    )  # fmt: skip
    if not on_cpu:
        yield from _commands(quick, device)


def _seconds(iterate: Callable[[], Any], count: int) -> float:
    """Return the seconds of iterations after one that compiles. They return losses, so a GPU has done its work."""
    iterate()
    start = time.perf_counter()
    for _ in range(count):
        iterate()
    return time.perf_counter() - start


def _commands(quick: bool, device: str) -> Iterator[BenchRow]:
    """Time the command `train` where it takes seconds, set-up, measures and files included."""
    seconds, found = _trained("quick", device, *(("--steps", "1000000") if quick else ()))
    edges = found["table"]["edges"]
    shares = [f"{edge['share']:.1%} against {edge['opponent']}" for edge in edges if edge["agent"] == "ppo greedy"]
    note = f"of a best response's edge: {', '.join(shares)}"
    yield BenchRow(f"train --preset quick, {found['steps']:,} steps, and measures", seconds, "s", 15.0, note=note)
    _, found = _trained("match", device, "--steps", "3000000" if quick else "300000000", "--evaluation-games", "100")
    wins = [f"{agent['agent']} {each['value']:.1%}" for agent in found["measures"] for each in agent["measures"][1:2]]
    note = f"a best response wins from {', '.join(wins)}, exact"
    yield BenchRow(f"train --preset match, {found['steps']:,} steps", 60 * found["minutes"], "s", 120.0, note=note)


def _trained(preset: str, device: str, *more: str) -> tuple[float, dict[str, Any]]:
    """Train five dice in a process of its own; return its seconds and the results that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dice_envs.experiments", "train", "liars_dice", "--preset", preset, "--seed", "1"]
        start = time.perf_counter()
        command += ["--device", device, "--out", folder, "--measure", "full"]
        subprocess.run([*command, *more], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start, json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))


def _shares(model: Any, iterations: int) -> str:
    """Return where the processor time of some more iterations goes, the largest share first."""
    import torch

    seconds: defaultdict[str, float] = defaultdict(float)

    def timed(work: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return work(*arguments, **options)
            finally:
                seconds[part] += time.process_time() - start

        return call

    parts = (
        (model.env, "step", "games"), (model.networks["actor"], "forward", "forward"),
        (model.networks["critic"], "forward", "forward"), (torch.Tensor, "backward", "backward"),
        (torch.optim.Adam, "step", "optimiser"), (model, "_draw", "sampling"),
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        for owner, name, part in parts:
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name), part)))
        start = time.process_time()
        for _ in range(iterations):
            model.iterate()
        total = time.process_time() - start
    seconds["rest"] = total - sum(seconds.values())
    return ", ".join(f"{part} {seconds[part] / total:.0%}" for part in sorted(seconds, key=seconds.__getitem__, reverse=True))


PARTS = (BenchPart("liars_dice", _ppo, on_device=True),)
