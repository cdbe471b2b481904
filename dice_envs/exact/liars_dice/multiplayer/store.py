"""Files in which solved rounds of Liar's Dice at tables are kept, in two bytes for each number."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from dice_envs.core.archive import read_archive
from dice_envs.core.kernel import kernel
from dice_envs.exact.following import say
from dice_envs.exact.liars_dice.cfr import MOST_LEVELS
from dice_envs.exact.liars_dice.multiplayer.cfr import Layout, Walker, size_of
from dice_envs.exact.liars_dice.multiplayer.solution import Rest, SolvedRound
from dice_envs.exact.liars_dice.round import Round, must_call
from dice_envs.exact.liars_dice.store import keep_archive

__all__ = ["file_of", "keep", "kept_round", "quantised"]


@kernel(allocates=False)
def _scale(numbers, at, classes, actions, most, out):
    """Write a node's numbers, the largest of each class as `most`. In place."""
    for each in range(at, at + classes):
        largest = 0.0
        for place in range(actions):
            largest = max(largest, numbers[each + place * classes])
        for place in range(actions if largest > 0.0 else 0):
            out[each + place * classes] = np.uint16(numbers[each + place * classes] / largest * most + 0.5)


@kernel(allocates=False)
def _quantise(layout, slots, edges, offsets, numbers, most, out):
    """Write every node's strategy, the likeliest action of each class as `most`, into `out` (numbers,). In place.

    `slots`, `edges` and `offsets` (depth,) are scratch for the path, which is never longer than the tree is high.
    """
    players, depth = len(layout.size), 0
    slots[0] = edges[0] = offsets[0] = 0
    while depth >= 0:
        slot, at, mover = slots[depth], offsets[depth], depth % players
        if edges[depth] == layout.first[slot]:
            actions = 1 + layout.first[slot + 1] - layout.first[slot]
            _scale(numbers, at, layout.size[mover, mover, slot], actions, most, out)
        edge = edges[depth]
        edges[depth] += 1
        if edge == layout.first[slot + 1]:
            depth -= 1
        elif not must_call(layout, layout.child[edge]):
            depth += 1
            slots[depth] = layout.child[edge]
            edges[depth] = layout.first[slots[depth]]
            offsets[depth] = at + layout.shift[mover, edge]


def quantised(layout: Layout, numbers: np.ndarray) -> np.ndarray:
    """Round strategies to 65,536 levels, (numbers,) uint16: the likeliest action of each class has the highest."""
    out = np.zeros(len(numbers), np.uint16)
    slots, edges, offsets = np.zeros((3, len(layout.need)), np.int64)  # a path visits each slot once at most
    _quantise(layout, slots, edges, offsets, numbers, float(MOST_LEVELS), out)
    return out


# --- files ----------------------------------------------------------------------------------------------------------------


def file_of(round_: Round, folder: Path) -> Path:
    """Return a round's file. Its name has a hash of what its numbers mean, the rules and the tree's layout."""
    digest = hashlib.sha256()
    for array in (*Layout.of(round_), round_.rules.face, *round_.chances):
        digest.update(np.ascontiguousarray(array).tobytes())
    options = round_.variant.options
    rules = f"{options.num_faces}-faces-{options.raise_rule}-{options.wild or 'no'}-wild"
    dice = "-".join(map(str, round_.dice))
    return folder / rules / f"table-{options.rounds}-{dice}-{digest.hexdigest()[:12]}.npz"


def keep(solved: SolvedRound, folder: Path) -> None:
    """Write a round's file, whole or not at all, if that is possible."""
    path = file_of(solved.round_, folder)
    keep_archive(path, {"numbers": solved.numbers, "iterations": solved.iterations, "seconds": solved.seconds})


def kept_round(round_: Round, rest: Rest, folder: Path) -> SolvedRound | None:
    """Return a round from its file, certified for what the rest of the game is worth; None without one, or if it is damaged."""

    def checked(members: dict[str, np.ndarray]) -> tuple[np.ndarray, int, float]:
        numbers = members["numbers"]
        if numbers.shape != (size_of(round_),) or numbers.dtype != np.uint16:
            raise ValueError(f"numbers is {numbers.dtype} {numbers.shape}")
        return numbers, int(members["iterations"]), float(members["seconds"])

    path = file_of(round_, folder)
    kept = read_archive(path, path.name, checked, say, unchecked=True)  # certified, so a checksum is not needed
    if kept is None:
        return None
    numbers, iterations, seconds = kept
    return SolvedRound(round_, numbers, rest.certify(Walker(round_, numbers.astype(np.float64))), iterations, seconds)
