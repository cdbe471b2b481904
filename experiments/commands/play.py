"""`play` and `mcp`: people and agents at the terminal or on a page, and an assistant that plays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_envs import names
from dice_envs.experiments import ui
from dice_envs.experiments.play import Seated, open_game, play_game, set_up
from dice_envs.table.sitting import Sitting


def play(
    game: Annotated[str | None, typer.Argument(help="The game, say liars_dice; `games` lists them.")] = None,
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            help="Opponents in seat order after you, one for all other seats, or none for random play; with --load "
            "instead of the saved ones."
        ),
    ] = None,
    option: ui.OptionOption = None,
    seat: Annotated[int | None, typer.Option(help="Your seat; chosen at random if left out.")] = None,
    people: Annotated[int | None, typer.Option(help="How many people play at this terminal, 1 if left out.")] = None,
    seed: ui.SeedOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Nobody plays: step agents against each other.")] = False,
    load: Annotated[Path | None, typer.Option(help="Go on with a game that `save FILE` has written.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="With --load: step through the game, move by move.")] = False,
    start: Annotated[
        int | None, typer.Option("--from", help="With --load: go on from the position before this move, say your worst one.")
    ] = None,
    review: Annotated[
        bool, typer.Option("--review", help="Show at the end what each of your moves has cost, and how much was luck.")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Play on a page in the browser; each person may use a device of their own.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="With --web: address to listen on; 0.0.0.0 serves your network, too.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="With --web: port to listen on; 8080 or a free one if left out.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="With --web: open a browser.")] = True,
) -> None:
    """Play at the terminal against any agents, with the dice shown as pictures. Type `help` there for the commands: rules,
    hint, odds, undo, history, save. With --web, play on a page instead; without a game it begins with all games to choose from.

    If the game has one seat, the agents play the same deal after you. If a trained policy takes part, options that you leave
    out are those of its training.

    Example: play liars_dice numbers:bluff=0.25 -o num_dice=3
    """
    given = {"--option": option, "--seat": seat, "--people": people, "--seed": seed, "--watch": watch or None}
    if load is not None:
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} cannot be given with --load: a saved game has its own")
    if not web:
        for name, unused in {"--host": host, "--port": port, "--no-browser": None if browser else True}.items():
            if unused is not None:
                raise ValueError(f"{name} is for the page: add --web")
    if load is not None:
        saved = open_game(load, game, start, agents or [])
        if web:
            _serve([saved], host, port, browser)
        else:
            play_game(Seated(saved, "", {}), replay, review)
        return
    if replay:
        raise ValueError("--replay steps through a saved game: name it with --load FILE")
    if start is not None:
        raise ValueError("--from takes up a saved game: name it with --load FILE")
    if game is None and web and all(value is None for value in given.values()):
        _serve([], host, port, browser)
        return
    if game is None:
        raise ValueError(f"name a game, {', '.join(names())}, or a saved one with --load FILE")
    if watch and people is not None:
        raise ValueError("--people cannot be given with --watch, where nobody plays")
    seated = set_up(game, agents or [], option or [], seat, 1 if people is None else people, ui.seed_or_fresh(seed), watch)
    if web:
        _serve(_tables(seated), host, port, browser)
    else:
        play_game(seated, reviewed=review)


def _tables(seated: Seated) -> list[Sitting]:
    """Return the game to serve; in a game of one seat that a person has, also the same deal for each agent."""
    sitting = seated.sitting
    ui.print_mode(sitting.variant, seated.policy)
    if len(sitting.people) == 1:  # the seed reveals all dice: hide it if people play each other
        ui.console.whole_line(f"seed {sitting.seed}")
    after = seated.made if sitting.people and len(sitting.seats) == 1 else {}
    return [sitting, *(Sitting(sitting.variant, sitting.seed, [spec]) for spec in after)]


def _serve(sittings: list[Sitting], host: str | None, port: int | None, browser: bool) -> None:
    from dice_envs.experiments.web.server import HOST, serve  # of an extra of its own

    serve(sittings, HOST if host is None else host, port, browser)


def mcp() -> None:
    """Serve the games to an assistant by the Model Context Protocol, on standard input and output: it plays, asks for rules,
    hints and the price of a move, and reviews its play. The assistant's program starts this command.
    """
    from dice_envs.experiments.assistant import serve  # of an extra of its own

    serve()


COMMANDS = {"play": play, "mcp": mcp}
