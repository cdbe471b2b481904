"""`bench`: speed, compared with other libraries."""

from __future__ import annotations

import os
import platform
from typing import Annotated, Any

import typer

from dice_envs.core.machine import torch_device
from dice_envs.experiments.bench import chosen_parts
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.options import DeviceOption, JsonOption
from dice_envs.experiments.ui.page import versions

PLACE = 11  # in the list of --help


def main(
    only: Annotated[list[str] | None, typer.Argument(help="Games or parts, say liars_dice or search; all if left out.")] = None,
    quick: Annotated[bool, typer.Option(help="Smaller sizes: a look, not a measurement.")] = False,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
) -> None:
    """Measure speed, and that of other libraries (peers) in the same run, on one core unless a row says otherwise.

    With --device cuda: what runs on a GPU.
    """
    device = device if device == "cpu" else torch_device(device)  # without PyTorch, a CPU has parts to measure
    parts = chosen_parts(only or [], device)
    check_writable(json)
    rows, cells = [], []
    for part in parts:
        for row in part.measured(quick, device):
            rows.append({**vars(row), "ratio": row.ratio})
            figures = [f"{value:,.4g} {row.unit}" if value is not None else "" for value in (row.ours, row.aim, row.peer)]
            ratio = f"{row.ratio:,.1f}×" if row.ratio else ""
            console.print(f"{row.name}: {figures[0]} {ratio}")
            cells.append((part.game, row.name, *figures, row.peer_name, ratio, row.note))
    grid = Grid("bench", ("game", "what", "ours", "aim", "peer", "peer's name", "ratio", "note"), cells, words=(0, 1, 5, 7))
    machine: dict[str, Any] = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    if device != "cpu":
        import torch

        machine["device"] = torch.cuda.get_device_name(device)
        console.print(f"on {machine['device']}")
    about = {"versions": versions(), "machine": machine}
    finish(grid.show, lambda: write_json(json, {**about, "rows": rows}))
