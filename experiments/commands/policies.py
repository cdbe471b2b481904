"""`policies`: the trained policies of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_envs.experiments.policies import add_policy, list_policies
from dice_envs.experiments.ui.files import check_writable
from dice_envs.experiments.ui.options import JsonOption

__all__ = ["PLACE", "main"]

PLACE = 3  # in the list of --help


def main(
    json: JsonOption = None,
    add: Annotated[
        Path | None, typer.Option(help="First measure the policy of this run's folder and add it to the package.")
    ] = None,
    name: Annotated[str, typer.Option(help="With --add: name of its file; the folder's name if left out.")] = "",
    floor: Annotated[
        float | None,
        typer.Option(help="With --add: drop actions whose probability is below this share of the likeliest one's."),
    ] = None,
) -> None:
    """List the trained policies that come with the package: `ppo` plays them without a path.

    The figures are stored in the policies' files; `measure GAME ppo -o ...` measures one anew.
    """
    check_writable(json)
    if add is not None:
        add_policy(add, name or add.name, floor)
    list_policies(json)
