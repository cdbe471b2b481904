"""Solved rounds of Liar's Dice, and the files in which they are kept."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from dice_envs.core.archive import read_archive, write_archive
from dice_envs.core.files import warn_not_kept
from dice_envs.exact.following import say
from dice_envs.exact.liars_dice.cfr import Walker
from dice_envs.exact.liars_dice.seating import Bounds
from dice_envs.exact.liars_dice.tree import Tree

__all__ = ["CACHE", "SolvedRound", "cache_folder", "file_of", "keep", "keep_archive", "kept_round"]

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


def keep_archive(path: Path, members: Mapping[str, Any]) -> None:
    """Write an archive of the work that its name identifies, whole or not at all, if that is possible."""
    try:
        write_archive(path, path.name, members)
    except OSError as problem:  # a read-only or full disk, or a file where the folder would be
        warn_not_kept(CACHE, problem)


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
    kept = _read(solved.tree, folder)
    improves = kept is None or kept.width >= solved.bounds.width
    del kept  # its arrays are as large as those that are written now
    if improves:
        better = _Kept(solved.numbers, solved.iterations, solved.seconds, solved.bounds.width, solved.widths)
        keep_archive(file_of(solved.tree, folder), better._asdict())


class _Kept(NamedTuple):
    """What a round's file holds, see `SolvedRound`."""

    numbers: np.ndarray
    iterations: int
    seconds: float
    width: float  # of the bounds
    widths: tuple[float, ...]


def _read(tree: Tree, folder: Path) -> _Kept | None:
    """Read a round's file. Strategies of earlier versions are as good, because they are certified again."""

    def checked(members: dict[str, np.ndarray]) -> _Kept:
        numbers = members["numbers"]
        if numbers.shape != (tree.kinds.size[0],) or numbers.dtype not in (np.uint16, np.float32, np.float64):
            raise ValueError(f"numbers is {numbers.dtype} {numbers.shape}")
        if not np.isfinite(numbers).all() or numbers.min(initial=0) < 0:
            raise ValueError("numbers are not all finite and 0 or more")
        width, widths = float(members.get("width", np.inf)), members.get("widths", np.zeros(0))
        return _Kept(numbers, int(members["iterations"]), float(members["seconds"]), width, tuple(map(float, widths)))

    path = file_of(tree, folder)
    return read_archive(path, path.name, checked, say, unchecked=True)


def kept_round(tree: Tree, folder: Path, threads: int) -> SolvedRound | None:
    """Return a round from its file, certified again; None if there is no file, or it is damaged."""
    kept = _read(tree, folder)
    if kept is None:
        return None
    solved = SolvedRound.of(tree, kept.numbers, kept.iterations, kept.seconds, threads)
    return dataclasses.replace(solved, widths=tuple(width for width in kept.widths if width >= solved.bounds.width))
