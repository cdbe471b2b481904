"""Arguments and options that several commands share, and the reading of game options."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs.core.dice import fresh_seed
from dice_envs.core.game import Game, register
from dice_envs.core.options import MAX_SHOWN, check_seed, parse_options, shown
from dice_envs.core.own import FORMS, load_own, split_own

MOST_BYTES = 2**20  # of a file that an option is read from


def whole_number(text: str | int) -> int:
    """Read a number as people type large ones: 100000, 100_000 or 1e5.

    Raises:
        ValueError: no whole number.
    """
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):
        if (number := int(float(text))) == float(text):
            return number
    raise ValueError(f"{shown(text)} is no whole number; 20000, 20_000 and 2e4 are")


def count_option(*names: str, help: str) -> Any:
    """Declare an option that is a number of games, steps and the like."""
    return typer.Option(*names, help=help, parser=whole_number, metavar="<int>")


GameArgument = Annotated[str, typer.Argument(help="The game, say liars_dice; `games` lists them. Or your own: FILE.py:GAME.")]
AgentsArgument = Annotated[list[str], typer.Argument(help="Agents, say random numbers:bluff=0.25; `agents` lists them.")]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        help="A game option, KEY=VALUE or KEY=@FILE (a list in a file); repeat it. `games` lists them.",
    ),
]
GamesOption = Annotated[int, count_option("--games", help="Number of games of each pair, table, or agent that plays alone.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Seed of all random draws; if left out, one is chosen and printed.")
]
DeviceOption = Annotated[
    str, typer.Option("--device", help="PyTorch's device, such as cpu or cuda; auto: cuda where there is a GPU, else cpu.")
]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the result here as JSON.")]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", help="Distribute the work over a Ray cluster: local for one on this machine, or its address."),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue a stopped run from the parts that it kept beside the file of --json.")
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="Write plots into this folder, and a page where there is one (index.html).")
]


def own_game(text: str) -> str:
    """Return the name of a game as typed; load and register a user's own, FILE.py:GAME or PACKAGE.MODULE:GAME.

    Raises:
        ValueError: it cannot be loaded, or another game has its name.
    """
    named = split_own(text)
    if named is None:
        return text
    where, name, rest = named
    found = load_own(where, name, "game")
    if rest or not isinstance(found, Game):
        raise ValueError(f"a game of your own is written {FORMS}, where NAME is a dice_envs.Game, not {shown(text)}")
    return register(found).name


def game_options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Read game options as typed: KEY=VALUE, see `dice_envs.core.options.parse_options`, or KEY=@FILE.

    A file holds a list: one value a line, or several separated by commas or blanks. Single digits separated by blanks
    are one value, the FateStones project's notation for dice: `3 3 3 4 4 4` is 333444.

    Raises:
        ValueError: not KEY=VALUE, no such value, or a file that is empty, too long or not text.
        OSError: the file cannot be read.
    """
    return parse_options([_with_file_read(pair) for pair in pairs or ()])


def _with_file_read(pair: str) -> str:
    """Expand KEY=@FILE to KEY=VALUE,VALUE,...; return other text unchanged."""
    name, _, value = (part.strip() for part in pair.partition("="))
    if not name or not value.startswith("@"):
        return pair
    values = list(_values(_text(name, value[1:])))
    if not values:
        raise ValueError(f"{name[:MAX_SHOWN]} is read from {value[1:]}, which holds no values")
    return f"{name}={','.join(values)},"  # the last comma makes a list of a single value, too


def _text(name: str, path: str) -> str:
    if not path:
        raise ValueError(f"{name[:MAX_SHOWN]}=@ must be followed by the name of a file")
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)  # limited: it may be an endless device
    if len(content) > MOST_BYTES:
        raise ValueError(f"{name[:MAX_SHOWN]} is read from {path}, which must hold at most {MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{name[:MAX_SHOWN]} is read from {path}, which is not a text file ({problem.reason})") from None


def _values(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for group in line.split(","):
            parts = group.split()
            if len(parts) > 1 and all(len(part) == 1 and part.isdecimal() for part in parts):
                yield "".join(parts)
            else:
                yield from parts


def seed_or_fresh(seed: int | None) -> int:
    """Return the seed, or a fresh one for None. Raises ValueError for a wrong seed."""
    seed = check_seed(seed)
    return fresh_seed() if seed is None else seed
