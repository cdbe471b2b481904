"""The agent's beliefs about its opponent, and the players that it knows."""

import numpy as np
import pytest

from dice_envs import Uniform
from dice_envs.agent import Promises, ask, ask_probabilities
from dice_envs.agents.adaptive import (
    ANSWERED,
    KINDS,
    KNOWN,
    READERS,
    Adaptive,
    FixedReader,
    Lowest,
    log_likelihoods,
    posterior,
)
from dice_envs.agents.liars_dice import LiarsDiceNash, Numbers, Reader
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.experiments.arena import play_table
from tests.agents.adaptive.cases import TWO_DICE
from tests.conftest import scaled
from tests.support.subsets import covering, few
from tests.support.turns import turn_at

pytestmark = pytest.mark.thorough


def positions_of_random_play(variant, games, seed):
    batch, streams = Batch(variant, games, seed=seed), new_streams(seed + 1, games)
    found = []
    for _ in range(4):
        going = np.flatnonzero(batch.seats != OVER)
        found.append(batch.states[going])
        batch.play(ask(Uniform(), variant, batch.states, going, streams), going)
    states = np.concatenate(found)
    return states, ask(Uniform(), variant, states, np.arange(len(states)), new_streams(seed + 2, len(states)))


def test_known_players_play_as_they_say():
    states, _ = positions_of_random_play(TWO_DICE, scaled(100, 10), 5)
    turn = turn_at(TWO_DICE, states)
    lowest = ask_probabilities(Lowest(0.25), turn)
    may_do_both = turn.legal[:, -1].astype(bool) & turn.legal[:, :-1].any(axis=1)
    assert (lowest[may_do_both, -1] == 0.25).all()
    assert (lowest[may_do_both, turn.legal[may_do_both].argmax(axis=1)] == 0.75).all()
    fresh = states.copy()
    fresh["bids_shown"] = fresh["bids_honest"] = 0
    for nerve in (0.25, 0.5):
        fixed = ask_probabilities(FixedReader(nerve, 0.5), turn)
        np.testing.assert_array_equal(fixed, ask_probabilities(Reader(nerve=nerve), turn_at(TWO_DICE, fresh)))
    assert KNOWN[:READERS] == ANSWERED[:READERS], "the same number names a player and the answer to it"
    assert [each.nerve for each in KNOWN[READERS:] for _ in range(5)] == [each.nerve for each in ANSWERED[READERS:]]


def test_likelihoods_are_those_of_the_agents():
    states, actions = positions_of_random_play(TWO_DICE, 150, 5)
    logs = log_likelihoods(TWO_DICE, LiarsDiceNash(), states, actions)
    assert logs.shape == (len(states), KINDS)
    turn, call = turn_at(TWO_DICE, states), TWO_DICE.params.call
    kinds = [*((agent, 0.05) for agent in (*KNOWN, LiarsDiceNash())), (Numbers(0.5), 0.5)]
    for (agent, slip), found in zip(kinds, logs.T, strict=True):
        chances = ask_probabilities(agent, turn)
        for row, action in enumerate(actions[:60]):
            bids, may_call = int(turn.legal[row, :call].sum()), bool(turn.legal[row, call])
            evenly = 1.0 if action == call else 1.0 / bids
            if may_call and bids:
                evenly /= 2
            assert found[row] == pytest.approx(np.log((1 - slip) * chances[row, action] + slip * evenly), abs=1e-9)


def beliefs_after(opponent, match, tables=8, seed=1):
    """Its beliefs after a match, (tables, KINDS), and its records."""
    memories = {}

    class Watched(Adaptive):
        def act(self, turn):
            actions = super().act(turn)
            memories["last"] = turn.memory.copy() if len(turn) == tables else memories.get("last")
            return actions

    play_table(TWO_DICE, [Watched(), opponent], tables * match, seed, match=match)
    return posterior(memories["last"]["likelihoods"]), memories["last"]


def test_it_begins_undecided():
    (beliefs,) = posterior(np.zeros((1, KINDS)))
    assert beliefs.sum() == pytest.approx(1)
    np.testing.assert_allclose(beliefs[-2:], 1 / 5)
    assert beliefs[READERS:-2].sum() == pytest.approx(1 / 5)


@covering(("bluff", "preset"), [0.0, 0.25, 1.0], ["text", "article"])
def test_it_finds_out_how_its_opponent_plays(bluff, preset):
    beliefs, memory = beliefs_after(Numbers(bluff, preset=preset), match=scaled(200, 8))
    if scaled(1, 0):
        alike = [getattr(each, "preset", None) == preset and each.threshold is None for each in KNOWN]
        own = beliefs[:, np.flatnonzero(alike)]
        assert (own.sum(axis=1) > 0.99).all()
        if preset == "text":  # the article's program calls so often that its bluffs are rarely shown
            assert (own.argmax(axis=1) == [0.0, 0.25, 0.5, 1.0].index(bluff)).mean() > 0.7
    assert memory["likelihoods"].any(axis=1).all()


@few(1, "opponent", [LiarsDiceNash(), Uniform()])
def test_it_leaves_others_alone(opponent):
    beliefs, memory = beliefs_after(opponent, match=scaled(100, 4))
    if scaled(1, 0):
        assert (beliefs[:, -2:].sum(axis=1) > 0.9).all()
    assert not memory["response"].any()


def test_it_notices_an_opponent_that_changes_its_ways():
    class Turncoat:
        promises = Promises(remembers=np.dtype([("turns", np.int64)]))

        def act(self, turn):
            turn.memory["turns"] += 1
            return np.where(turn.memory["turns"] > 400, LiarsDiceNash().act(turn), Numbers().act(turn))

    before, _ = beliefs_after(Numbers(), match=scaled(100, 4))
    after, _ = beliefs_after(Turncoat(), match=scaled(400, 8))
    if scaled(1, 0):
        assert (before[:, -2:].sum(axis=1) < 0.01).all()
        assert (after[:, -2:].sum(axis=1) > 0.99).all()
