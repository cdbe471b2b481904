"""Lock-step with OpenSpiel's liars_dice: the same legal actions, the same player, the same returns."""

import numpy as np
import pytest

from dice_envs.core.batch import Batch
from dice_envs.core.game import OVER

pyspiel = pytest.importorskip("pyspiel")

GAMES_EACH = 1400  # of 15 sizes: 21,000 games


@pytest.mark.parametrize("faces", [4, 5, 6])
@pytest.mark.parametrize("dice", [1, 2, 3, 4, 5])
def test_lock_step(dice, faces):
    game = pyspiel.load_game(f"liars_dice(numdice={dice},dice_sides={faces})")
    batch = Batch("liars_dice", GAMES_EACH, seed=dice * 10 + faces, rules="openspiel", num_dice=dice, num_faces=faces)
    rng = np.random.default_rng(dice * 10 + faces)
    theirs = []
    for counts in batch.states["counts"][:, :2, :faces]:
        state = game.new_initial_state()
        for seat in range(2):
            for face in np.repeat(np.arange(faces), counts[seat]):
                state.apply_action(int(face))
        theirs.append(state)
    returns = np.zeros((GAMES_EACH, 2))
    assert batch.variant.facts.num_actions == game.num_distinct_actions()
    while True:
        seats, masks = batch.seats, batch.legal()
        playing = np.flatnonzero(seats != OVER)
        for i in np.flatnonzero(seats == OVER):
            assert theirs[i].is_terminal()
        if not len(playing):
            break
        actions = []
        for i in playing:
            legal = theirs[i].legal_actions()
            assert theirs[i].current_player() == seats[i]
            assert np.flatnonzero(masks[i]).tolist() == legal
            # Mostly small raises, so that games are long enough to reach the last bids.
            pick = min(int(rng.geometric(0.35)) - 1, len(legal) - 1) if rng.random() < 0.8 else int(rng.integers(len(legal)))
            actions.append(legal[pick])
            theirs[i].apply_action(legal[pick])
        batch.play(np.array(actions), playing)
        returns[playing] += batch.rewards[playing]
    assert [state.returns() for state in theirs] == returns.tolist()
