"""Lock-step with OpenSpiel's liars_dice under both of its bidding rules: the same legal actions, players and returns."""

import numpy as np
import pytest

from dice_envs.core.batch import Batch
from dice_envs.core.game import OVER
from tests.support.subsets import covering

pyspiel = pytest.importorskip("pyspiel")

GAMES_EACH = 700  # of 30 sizes and rules: 21,000 games
RULES = {
    "reset-face": {"rules": "openspiel"},
    "reset-quantity": {"raise_rule": "reset_quantity", "wild": "highest", "rounds": "single", "starter": "first"},
}


@covering(("rule", "faces", "dice"), RULES, [4, 5, 6], [1, 2, 3, 4, 5])
def test_lock_step(dice, faces, rule):
    game = pyspiel.load_game(f"liars_dice(numdice={dice},dice_sides={faces},bidding_rule={rule})")
    batch = Batch("liars_dice", GAMES_EACH, seed=dice * 10 + faces, num_dice=dice, num_faces=faces, **RULES[rule])
    to_theirs = np.arange(2 * dice * faces + 1)  # OpenSpiel's number of each action, the last one a call
    if rule == "reset-quantity":  # its bids are numbered face by face
        to_theirs[:-1] = to_theirs[:-1].reshape(faces, 2 * dice).T.ravel()
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
            legal = np.flatnonzero(masks[i]).tolist()
            assert theirs[i].current_player() == seats[i]
            assert sorted(to_theirs[action] for action in legal) == theirs[i].legal_actions()
            # Mostly small raises, so that games are long enough to reach the last bids.
            pick = min(int(rng.geometric(0.35)) - 1, len(legal) - 1) if rng.random() < 0.8 else int(rng.integers(len(legal)))
            actions.append(legal[pick])
            theirs[i].apply_action(int(to_theirs[legal[pick]]))
        batch.play(np.array(actions), playing)
        returns[playing] += batch.rewards[playing]
    assert [state.returns() for state in theirs] == returns.tolist()
