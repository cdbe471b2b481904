"""The agent's observations of its opponent's decisions."""

import pytest

from dice_envs import configure
from dice_envs.agents.adaptive import Adaptive, decisions_of
from dice_envs.agents.liars_dice import Numbers
from dice_envs.experiments.arena import play_table
from tests.agents.adaptive.cases import SMALL
from tests.conftest import scaled
from tests.support.subsets import few

pytestmark = pytest.mark.thorough


@few(1, "options", SMALL)
def test_it_sees_all_decisions_of_rounds_that_have_been_shown(options):
    """All decisions of the opponent with the dice that it had, except in the last round of a game."""
    variant = configure("liars_dice", **options)
    seen, made = [], []

    def key(state, action):
        seat = int(state["seat"])
        bids = state["bids"][: int(state["num_bids"])].tolist()
        return (
            *state["dice"][:2].tolist(),
            int(state["starter"]),
            seat,
            *state["counts"][seat].tolist(),
            -1,
            *bids,
            int(action),
        )

    class Watching(Adaptive):
        def act(self, turn):
            positions, actions, _ = decisions_of(variant, turn.states, turn.memory)
            seen.extend(key(*each) for each in zip(positions, actions, strict=True))
            for position in positions:
                assert position["in_play"] == position["dice"].sum()
                assert position["bid"] == (position["bids"][position["num_bids"] - 1] if position["num_bids"] else -1)
            return super().act(turn)

    class Opponent:
        def act(self, turn):
            actions = Numbers(0.5, threshold=0.2).act(turn)
            for state, action in zip(turn.states, actions, strict=True):
                last = state["dice"][:2].max() == 1 or state["dice"][:2].min() == 1
                made.append((key(state, action), bool(last)))
            return actions

    play_table(variant, [Watching(), Opponent()], scaled(60, 4), seed=3, match=scaled(20, 2))
    certain = sorted(each for each, may_be_last in made if not may_be_last)
    left = sorted(each for each, _ in made)
    for each in seen:
        left.remove(each)  # it sees only decisions that were made, each once
    assert not [each for each in left if each in certain], "a round that is not a game's last is seen"
    assert len(seen) > 0.3 * len(made)
