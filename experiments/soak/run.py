"""`soak`: every game, with random options, through every interface, in rounds; and the report."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import os
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from rich.text import Text

from dice_envs.core.game import Game, Variant, load
from dice_envs.experiments.soak.callers import CALLERS, VECTOR_GAMES
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid

__all__ = ["MOST_MOVES", "Row", "broken", "grown", "random_variant", "resident_bytes", "show", "soak"]

MOST_MOVES = 10**13

ROUNDS = 10  # each plays every game through every interface, with new options
VARIANTS = 4  # of each game in a round
SHARE = 2000  # moves of the loop for one move through each interface: interfaces are about a thousand times slower
NAMES = ("Ada", "meat", "hot bath", "<b>", "Ł & Co", "x" * 24, '"', "drug 1")  # for options that take names
LEAVES = 64 * 2**20  # bytes that memory may grow after the second round: caches of a fixed size fill up


# --- options ----------------------------------------------------------------------------------------------------------


def random_variant(game: Game, rng: np.random.Generator) -> Variant:
    """Return the game with random options of the types that their hints allow; options that it refuses are drawn again."""
    hints = typing.get_type_hints(game.options)
    while True:
        chosen = [name for name in hints if rng.random() < 0.5]
        try:
            return game.configure(**{name: _value(hints[name], rng) for name in chosen})
        except ValueError:
            continue


def _value(hint: Any, rng: np.random.Generator) -> Any:
    """Return a random value of an option's type. Most numbers are small."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = typing.get_args(hint)
        return _value(kinds[rng.integers(len(kinds))], rng)
    if typing.get_origin(hint) is Literal:
        words = typing.get_args(hint)
        return words[rng.integers(len(words))]
    if typing.get_origin(hint) is tuple and typing.get_args(hint)[0] is str:
        return tuple(str(name) for name in rng.choice(NAMES, rng.integers(2, 7), replace=False))
    if typing.get_origin(hint) is tuple:
        digits = int(rng.choice([1, 2, 6]))  # six digits are the faces of a FateStones die
        numbers = [int("".join(map(str, rng.integers(1, 7, digits)))) for _ in range(rng.integers(1, 9))]
        return tuple(numbers)
    if hint is bool:
        return bool(rng.integers(2))
    if hint is int:
        return int(rng.integers(1, 9) if rng.random() < 0.8 else rng.integers(1, 201))
    if hint in (None, type(None)):
        return None
    raise TypeError(f"no values are known for options of the type {hint}")


# --- rounds -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    """One game through one interface.

    Attributes:
        game: the game's name.
        interface: a name in CALLERS.
        moves: number of moves played.
        games: number of games that ended.
        variants: number of variants played.
        faults: broken promises, with the options and the seed.
    """

    game: str
    interface: str
    moves: int = 0
    games: int = 0
    variants: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)


def resident_bytes() -> int:
    """Return the memory in use by this process; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def soak(
    games: Sequence[str], moves: int, seed: int, done: Callable[[float], Any] = lambda moves: None
) -> tuple[list[Row], list[int]]:
    """Play games in ROUNDS rounds.

    Args:
        games: names of games.
        moves: moves in the compiled loop, of all games together; each interface plays one for every SHARE of them.
        seed: repeats a run, with the same `moves`.
        done: progress callback, called with the moves of the compiled loop since its last call.

    Returns:
        A row for each game and interface, and the memory in use after each round, in bytes.
    """
    rows = {(name, caller): Row(name, caller) for name, caller in itertools.product(games, CALLERS)}
    memory = []
    a_game = moves / len(games) / ROUNDS / VARIANTS
    for number in range(ROUNDS):
        for name, variant, own_seed in _variants(games, seed, number):
            for caller, play in CALLERS.items():
                if not _is_there(caller, variant):
                    continue
                row = rows[name, caller]
                share = round(a_game) if caller == "compiled loop" else round(a_game / SHARE) + VECTOR_GAMES
                try:
                    row.games += play(variant, share, np.random.default_rng([own_seed, len(row.interface)]))
                except Exception as problem:
                    row.faults.append(f"{variant}, seed {own_seed}: {type(problem).__name__}: {problem}")
                row.moves += share
                row.variants += 1
            done(a_game)
        memory.append(resident_bytes())
    return [row for row in rows.values() if row.variants], memory


def grown(memory: list[int]) -> int:
    """Return the growth of memory in bytes since the second round, by which everything has been compiled."""
    return memory[-1] - memory[1]


def broken(rows: list[Row], memory: list[int]) -> bool:
    """Return whether there are faults, or memory has grown by more than LEAVES."""
    return any(row.faults for row in rows) or grown(memory) > LEAVES


def show(rows: list[Row], memory: list[int], seconds: float) -> None:
    """Print the moves played and the faults found."""
    counts = [(row.moves, row.games, row.variants, len(row.faults)) for row in rows]
    cells = [(row.game, row.interface, *(f"{count:,}" for count in own)) for row, own in zip(rows, counts, strict=True)]
    Grid("", ("game", "interface", "moves", "games", "variants", "faults"), cells, (0, 1)).show()
    for row in rows:
        for fault in row.faults:
            console.print(Text.assemble(("broken: ", "red"), f"{row.interface}, {fault}"))
    moves, faults = sum(row.moves for row in rows), sum(len(row.faults) for row in rows)
    console.print(f"{moves:,} moves in {seconds:,.0f} s, {faults:,} faults", highlight=False)
    if memory[-1]:
        early, late = (f"{size / 2**20:,.0f} MiB" for size in (memory[1], memory[-1]))
        told = f"memory in use {early} after two rounds of {len(memory)}, {late} at the end"
        too_much = f": more than {LEAVES / 2**20:,.0f} MiB were added" if grown(memory) > LEAVES else ""
        console.print(told + too_much, highlight=False)


def _is_there(caller: str, variant: Variant) -> bool:
    """Return whether a game can be played through this interface, with the installed libraries."""
    if caller == "parallel":
        return variant.facts.simultaneous
    return caller != "SB3" or importlib.util.find_spec("stable_baselines3") is not None


def _variants(games: Sequence[str], seed: int, number: int) -> Iterator[tuple[str, Variant, int]]:
    """Yield each game's name, its variants for a round (first the default one) and their seeds."""
    for place, name in enumerate(games):
        for each in range(VARIANTS):
            sequence = np.random.SeedSequence(seed, spawn_key=(number, place, each))
            own_seed = int(sequence.generate_state(1)[0])
            game = load(name)
            first = number == 0 and each == 0
            yield name, game.configure() if first else random_variant(game, np.random.default_rng(own_seed)), own_seed
