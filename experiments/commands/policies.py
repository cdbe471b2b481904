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
    add: Annotated[Path | None, typer.Option(help="First put the policy of this run's folder among them, measured.")] = None,
    name: Annotated[str, typer.Option(help="The name of its file there; the folder's if left out.")] = "",
    floor: Annotated[
        float | None, typer.Option(help="With --add: never take actions less likely than so many times the likeliest one.")
    ] = None,
) -> None:
    """List the trained policies that come with the package: `ppo` plays them without a path.

    Their figures are those that their files state; a policy is measured anew by `measure GAME ppo -o ...`.
    """
    check_writable(json)
    if add is not None:
        add_policy(add, name or add.name, floor)
    list_policies(json)
