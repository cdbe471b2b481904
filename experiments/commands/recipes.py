"""`recipes`: ways of training by self-play, compared."""

from __future__ import annotations

from typing import Annotated

import typer

from dice_envs.core.game import single_seat
from dice_envs.core.options import check_range
from dice_envs.experiments.recipes import RECIPES, compare, recipes_of, show
from dice_envs.experiments.ui.console import finish, print_mode
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.options import DeviceOption, GameArgument, JsonOption, OptionOption, count_option, game_options
from dice_envs.experiments.ui.progress import progress

__all__ = ["PLACE", "main"]

PLACE = 7  # in the list of --help


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
