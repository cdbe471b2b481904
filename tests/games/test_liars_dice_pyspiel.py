"""Lock-step with OpenSpiel's liars_dice under both of its bidding rules: the same legal actions, players and returns."""

import numpy as np
import pytest

from dice_envs.core.batch import Batch
from dice_envs.core.game import OVER, configure
from dice_envs.exact.liars_dice.solver import solution_of
from dice_envs.games.liars_dice.raises import MAX_FACES
from tests.support.subsets import covering

pyspiel = pytest.importorskip("pyspiel")

GAMES_EACH = 700  # of 30 sizes and rules: 21,000 games
RULES = {
    "reset-face": {"rules": "openspiel"},
    "reset-quantity": {"raise_rule": "reset_quantity", "wild": "highest", "rounds": "single", "starter": "first"},
}


def their_actions(rule, dice, faces):
    """OpenSpiel's number of each action. With "reset-quantity" its bids are numbered face by face."""
    bids = np.arange(2 * dice * faces)
    if rule == "reset-quantity":
        bids = bids.reshape(faces, 2 * dice).T.ravel()
    return [*bids.tolist(), 2 * dice * faces]


@covering(("rule", "faces", "dice"), RULES, [4, 5, 6], [1, 2, 3, 4, 5])
def test_lock_step(dice, faces, rule):
    game = pyspiel.load_game(f"liars_dice(numdice={dice},dice_sides={faces},bidding_rule={rule})")
    batch = Batch("liars_dice", GAMES_EACH, seed=dice * 10 + faces, num_dice=dice, num_faces=faces, **RULES[rule])
    to_theirs = their_actions(rule, dice, faces)
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
            theirs[i].apply_action(to_theirs[legal[pick]])
        batch.play(np.array(actions), playing)
        returns[playing] += batch.rewards[playing]
    assert [state.returns() for state in theirs] == returns.tolist()


def chances_at(variant, solution, theirs, bid_of):
    """The solution's probabilities at a state of OpenSpiel's, as its policies take them."""
    each = variant.options.num_dice
    history = theirs.history()
    ours = np.zeros(1, variant.game.state)
    variant.kernels.deal(variant.params, ours, np.zeros(1, np.int64))
    for seat in range(2):
        ours["counts"][0, seat] = np.bincount(history[seat * each : (seat + 1) * each], minlength=MAX_FACES)
    for number in history[2 * each :]:
        variant.kernels.play(variant.params, ours, np.zeros(1, np.int64), np.array([bid_of[number]]))
    chances = solution.probabilities(ours)[0]
    return [(number, float(chances[bid_of[number]])) for number in theirs.legal_actions()]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dice", "faces", "value"), [(1, 4, 0.0), pytest.param(1, 6, -1 / 18, marks=pytest.mark.thorough), (2, 2, None)]
)
def test_openspiel_finds_our_solution_of_reset_quantity_optimal(dice, faces, value):
    """Our strategy as a policy of OpenSpiel's own game: no best response gains, and the value is ours."""
    variant = configure("liars_dice", num_dice=dice, num_faces=faces, **RULES["reset-quantity"])
    game = pyspiel.load_game(f"liars_dice(numdice={dice},dice_sides={faces},bidding_rule=reset-quantity)")
    solution, to_theirs = solution_of(variant, 1e-6), their_actions("reset-quantity", dice, faces)
    bid_of = {number: action for action, number in enumerate(to_theirs)}
    policy, waiting = {}, [game.new_initial_state()]
    while waiting:
        state = waiting.pop()
        if not state.is_chance_node() and not state.is_terminal():
            key = state.information_state_string()
            policy[key] = policy.get(key) or chances_at(variant, solution, state, bid_of)
        waiting += [] if state.is_terminal() else [state.child(action) for action in state.legal_actions()]
    tabular = pyspiel.TabularPolicy(policy)
    assert pyspiel.nash_conv(game, tabular) / 2 == pytest.approx(solution.exploitability, abs=1e-9)
    assert solution.exploitability < 1e-6
    theirs = pyspiel.expected_returns(game.new_initial_state(), tabular, -1, True)[0]
    assert theirs == pytest.approx(solution.value, abs=1e-9)
    if value is not None:
        assert theirs == pytest.approx(value, abs=1e-6)
