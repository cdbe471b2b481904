"""Games at a table, played to their end and saved."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dice_envs import Variant
from dice_envs.table.sitting import PERSON, Sitting


def finish(sitting: Sitting, choice: int | np.random.Generator = -1) -> Sitting:
    """Play a game on to its end and return it; people take the legal action of this place, or one that is drawn."""
    while not sitting.over:
        if sitting.mover in sitting.people:
            legal = sitting.legal()
            sitting.play(legal[choice] if isinstance(choice, int) else int(choice.choice(legal)))
        else:
            sitting.step()
    return sitting


def save(path: Path, variant: Variant, seats: Sequence[str] = (PERSON,), seed: int = 1) -> Path:
    """Save a game that is over, in which people chose at random."""
    finish(Sitting(variant, seed, list(seats)), np.random.default_rng(seed)).save_to(path)
    return path
