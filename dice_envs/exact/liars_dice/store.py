"""Solved rounds of Liar's Dice, and the files in which they are kept."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from dice_envs.core.files import keep_file, warn_not_kept
from dice_envs.exact.liars_dice.cfr import Walker
from dice_envs.exact.liars_dice.elimination import Bounds
from dice_envs.exact.liars_dice.tree import Tree

__all__ = ["CACHE", "SolvedRound", "cache_folder", "file_of", "keep", "keep_arrays", "kept_round"]

CACHE = "DICE_ENVS_CACHE"  # the environment variable that names the folder


@dataclasses.dataclass(frozen=True)
class SolvedRound:
    """Both players' strategies of one round, with their certificate.

    Attributes:
        tree: of the round.
        numbers: (numbers,) of any type, in proportion to how likely each action is; see `Kinds`.
        bounds: of the starter's chance to win.
        value: the starter's chance to win if both play the strategies.
        iterations: made to find them; 0 for a linear programme.
        seconds: taken to find them.
        widths: of the bounds, as they were asked for one after another: the result depends on all of them.
    """

    tree: Tree
    numbers: np.ndarray
    bounds: Bounds
    value: float
    iterations: int
    seconds: float
    widths: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        tree: Tree,
        numbers: np.ndarray,
        iterations: int,
        seconds: float,
        threads: int = 1,
        widths: Sequence[float] = (),
    ) -> SolvedRound:
        """Certify the strategies by best responses to them."""
        walker = Walker(tree, numbers, threads)
        return cls(tree, numbers, walker.bounds(), walker.value(), iterations, seconds, tuple(widths))


# --- files --------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the default folder of solutions: below DICE_ENVS_CACHE, or below the user's cache folder, if there is one."""
    try:
        return Path(os.environ.get(CACHE) or platformdirs.user_cache_dir("dice-envs")) / "liars_dice"
    except (OSError, RuntimeError) as problem:  # there is no home folder
        warn_not_kept(CACHE, problem)
        return Path(os.devnull) / "liars_dice"


def keep_arrays(path: Path, **arrays: Any) -> bool:
    """Keep arrays in a file, compressed, if that is possible."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            np.savez_compressed(stream, **arrays)

    return keep_file(path, write, CACHE)


def file_of(tree: Tree, folder: Path) -> Path:
    """Return a round's file. Its name has a hash of what its numbers mean, the rules and the tree's layout."""
    digest = hashlib.sha256()
    for array in (*tree.kinds, tree.bids, *tree.chances):
        digest.update(np.ascontiguousarray(array).tobytes())
    options = tree.variant.options
    rules = f"{options.num_faces}-faces-{options.raise_rule}-{options.wild or 'no'}-wild{'-palifico' if tree.palifico else ''}"
    return folder / rules / f"{tree.dice[0]}-{tree.dice[1]}-{digest.hexdigest()[:12]}.npz"


def keep(solved: SolvedRound, folder: Path) -> None:
    """Write a round's file, whole or not at all, unless there is a better one or it cannot be written."""
    path = file_of(solved.tree, folder)
    if _width_kept(path) >= solved.bounds.width:
        keep_arrays(
            path,
            numbers=solved.numbers,
            iterations=solved.iterations,
            seconds=solved.seconds,
            width=solved.bounds.width,
            widths=solved.widths,
        )


def _width_kept(path: Path) -> float:
    """Return the width of the bounds that a file states; infinity if there is no file, or it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return float(file["width"])
    except Exception:  # no file; or damage, which raises in zipfile, zlib, NumPy or Python's parser, each in its own way
        return float("inf")


def kept_round(tree: Tree, folder: Path, threads: int) -> SolvedRound | None:
    """Return a round from its file, certified again; None if there is no file, or it is damaged."""
    path = file_of(tree, folder)
    try:
        with np.load(path, allow_pickle=False) as file:
            numbers, iterations, seconds = file["numbers"], int(file["iterations"]), float(file["seconds"])
            widths = [float(width) for width in file["widths"]] if "widths" in file.files else []  # earlier versions have none
    except Exception:  # as above
        return None
    if numbers.shape != (tree.kinds.size[0],) or numbers.dtype not in (np.uint16, np.float32, np.float64):
        return None
    if not np.isfinite(numbers).all() or numbers.min(initial=0) < 0:
        return None
    solved = SolvedRound.of(tree, numbers, iterations, seconds, threads)
    reached = tuple(width for width in widths if width >= solved.bounds.width)
    return dataclasses.replace(solved, widths=reached)
