"""`bench`: the command, and speed beside peers in the same run.

A module here offers `PARTS`. There is one for each subject: environments, training, search. What is about one game only, such
as a solver or a peer that knows no other, is in a module of that game.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from dice_envs.core.game import names
from dice_envs.core.machine import processor, torch_device
from dice_envs.core.options import shown
from dice_envs.experiments import ui
from dice_envs.experiments.commands import modules
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.pages import versions


@dataclasses.dataclass
class BenchRow:
    """One figure of ours, beside an aim and a peer's figure if there are any."""

    name: str
    ours: float
    unit: str  # "/s", "M/s" or "s"
    aim: float | None = None  # the project's
    peer: float | None = None
    peer_name: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our speed divided by the peer's; None without a peer."""
        if not self.peer:
            return None
        return self.peer / self.ours if self.unit == "s" else self.ours / self.peer


@dataclasses.dataclass(frozen=True)
class BenchPart:
    """Some rows about one game.

    Attributes:
        game: its name; "" for rows about none.
        rows: measures and yields the rows one by one; with True it does about a tenth of the work. Its second argument, for
            parts with `on_device`, is PyTorch's device.
        on_device: whether the part measures on other devices than a CPU.
    """

    game: str
    rows: Callable[..., Iterator[BenchRow]]
    on_device: bool = False


def chosen_parts(wanted: Sequence[str], device: str = "cpu") -> list[BenchPart]:
    """Return the parts of the modules and games that are named; all of them if none is. Hyphens count as underscores.

    On other devices than a CPU these are the parts with `on_device`.

    Raises:
        ValueError: no module and no game has that name, or none of the parts runs on the device.
    """
    found = modules(sys.modules[__name__])
    known = sorted({*found, *names()})
    chosen = [name.replace("-", "_") for name in wanted]
    for name in chosen:
        if name not in known:
            raise ValueError(f"unknown part {shown(name)}; parts are: {', '.join(known)}")
    parts = [part for name, module in found.items() for part in module.PARTS if not chosen or {name, part.game} & set(chosen)]
    if device == "cpu":
        return parts
    able = [part for part in parts if part.on_device]
    if not able:
        raise ValueError(f"device must be cpu for {shown(list(wanted))}; tensors and training run on others")
    return able


def beside_openspiel(
    name: str, ours: float, unit: str, measured: Callable[[Any], float], peer_name: str, aim: float
) -> BenchRow:
    """Return a row with OpenSpiel's figure, which `measured` finds with pyspiel; without a peer where that is not installed.

    `aim` is the project's aim as a multiple of OpenSpiel's figure.
    """
    try:
        import pyspiel
    except ImportError:
        return BenchRow(name, ours, unit, note="OpenSpiel is not installed")
    peer = measured(pyspiel)
    return BenchRow(name, ours, unit, aim * peer, peer, peer_name)


def best_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least time of several runs after a warm-up, which is the least disturbed one."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def best_rate(work: Callable[[], Any], amount: float, repeats: int = 3) -> float:
    """Return `amount` divided by the least time of several runs."""
    return amount / best_seconds(work, repeats)


def main(
    only: Annotated[list[str] | None, typer.Argument(help="Games or parts, say liars_dice or search; all if left out.")] = None,
    quick: Annotated[bool, typer.Option(help="Smaller sizes: a look, not a measurement.")] = False,
    device: ui.DeviceOption = "cpu",
    json: ui.JsonOption = None,
) -> None:
    """Measure speed, and that of other libraries (peers) in the same run, on one core unless a row says otherwise.

    With --device cuda: what runs on a GPU.
    """
    device = device if device == "cpu" else torch_device(device)  # without PyTorch, a CPU has parts to measure
    parts = chosen_parts(only or [], device)
    rows, cells = [], []
    for part in parts:
        for row in part.rows(quick, device) if part.on_device else part.rows(quick):
            rows.append({**vars(row), "ratio": row.ratio})
            figures = [f"{value:,.4g} {row.unit}" if value is not None else "" for value in (row.ours, row.aim, row.peer)]
            ratio = (f"{row.ratio:,.1f}×" if row.ratio >= 0.1 else f"{row.ratio:.1g}×") if row.ratio else ""
            ui.console.print(f"{row.name}: {figures[0]} {ratio}")
            cells.append((part.game, row.name, *figures, row.peer_name, ratio, row.note))
    grid = Grid("bench", ("game", "what", "ours", "aim", "peer", "peer's name", "ratio", "note"), cells, words=(0, 1, 5, 7))
    machine: dict[str, Any] = {"processor": processor(), "cores": os.cpu_count()}
    if device != "cpu":
        import torch

        machine["device"] = torch.cuda.get_device_name(device)
        ui.console.print(f"on {machine['device']}")
    about = {"versions": versions(), "machine": machine}
    ui.finish(grid.show, lambda: ui.write_json(json, {**about, "rows": rows}))
