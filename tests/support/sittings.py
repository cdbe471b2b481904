"""Games at a table, played to their end."""

import numpy as np

from dice_envs.table.sitting import Sitting


def finish(sitting: Sitting, choice: int | np.random.Generator = -1) -> Sitting:
    """Play a game on to its end and return it; people take the legal action of this place, or one that is drawn."""
    while not sitting.over:
        if sitting.mover in sitting.people:
            legal = sitting.legal()
            sitting.play(legal[choice] if isinstance(choice, int) else int(choice.choice(legal)))
        else:
            sitting.step()
    return sitting
