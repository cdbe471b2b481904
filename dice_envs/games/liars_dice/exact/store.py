"""Files in which solved rounds of Liar's Dice are kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from dice_envs.core.files import read_archive, warn_not_kept, write_archive
from dice_envs.core.work import say
from dice_envs.games.liars_dice.exact.solution import SolvedRound
from dice_envs.games.liars_dice.exact.tree import Kinds, Tree
from dice_envs.games.liars_dice.raises import ROUND_KINDS

CACHE = "DICE_ENVS_CACHE"  # the environment variable that names the folder
HASHED = 12  # digits of a hash in a file's name
_MOST_OTHERS = 2**20  # bytes of a file beside the numbers


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


# --- rounds ---------------------------------------------------------------------------------------------------------------


def file_of(tree: Tree, folder: Path) -> Path:
    """Return a round's file. Its name has the rules, and a hash of what its numbers mean."""
    digest = hashlib.sha256()
    given = tree.kinds[: Kinds._fields.index("first_leaf")]  # those after them follow from them
    for array in (*given, tree.bids):
        digest.update(array.astype(np.int64).tobytes())
    for chances in tree.class_chances:
        digest.update(chances.tobytes())
    options = tree.variant.options
    kind = f"-{ROUND_KINDS[tree.kind]}" if tree.kind in ROUND_KINDS else ""
    rules = f"{options.num_faces}-faces-{options.raise_rule}-{options.wild or 'no'}-wild{kind}"
    table = f"table-{options.rounds}-" if options.num_players > 2 else ""
    return folder / rules / f"{table}{'-'.join(map(str, tree.dice))}-{digest.hexdigest()[:HASHED]}.npz"


def has_older(path: Path) -> bool:
    """Return whether there is a file of the same round whose numbers mean something else, but not this one."""
    return not path.exists() and any(path.parent.glob(f"{path.stem[:-HASHED]}{'?' * HASHED}.npz"))


def keep(path: Path, solved: SolvedRound) -> None:
    """Write a round's file, whole or not at all, unless there is a better one or it cannot be written."""
    kept, width = read_kept(path, len(solved.numbers)), solved.certificate.gain
    improves = kept is None or kept["width"] >= width
    del kept  # its arrays are as large as those that are written now
    if improves:
        how = {"iterations": solved.iterations, "seconds": solved.seconds, "width": width, "widths": solved.widths}
        keep_archive(path, {"numbers": solved.numbers, **how})


def read_kept(path: Path, size: int) -> dict[str, Any] | None:
    """Return what a round's file holds; None without one, or if it is damaged.

    These are `size` numbers and how they were found, as in `SolvedRound`, and their width, which is the certificate's gain.
    Strategies of earlier versions are as good, because they are certified again, unless their numbers meant something else.
    """

    def checked(members: dict[str, np.ndarray]) -> dict[str, Any]:
        numbers = members["numbers"]
        if numbers.shape != (size,) or numbers.dtype not in (np.uint16, np.float32, np.float64):
            raise ValueError(f"numbers is {numbers.dtype} {numbers.shape}")
        if not np.isfinite(numbers).all() or numbers.min(initial=0) < 0:
            raise ValueError("numbers are not all finite and 0 or more")
        width, widths = float(members.get("width", np.inf)), tuple(map(float, members.get("widths", ())))
        found = {"iterations": int(members["iterations"]), "seconds": float(members["seconds"])}
        return {"numbers": numbers, **found, "width": width, "widths": widths}

    most = 8 * size + _MOST_OTHERS
    return read_archive(path, path.name, checked, say, most, unchecked=True)  # certified, so a checksum is not needed
