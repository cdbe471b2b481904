"""The agent's beliefs about its opponent, and the styles that it distinguishes."""

import numpy as np
import pytest

from dice_envs import Uniform
from dice_envs.agent import Promises, Turn, ask, ask_probabilities
from dice_envs.agents.adaptive import Adaptive
from dice_envs.agents.adaptive.beliefs import (
    CALLING,
    KINDS,
    KINDS_OF,
    OPENING,
    PARTS,
    RAISING,
    Claims,
    Composed,
    FixedReader,
    Lowest,
    Way,
    log_likelihoods,
    posterior,
)
from dice_envs.agents.liars_dice import LiarsDiceNash, Numbers, Reader
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.experiments.arena import play_table
from dice_envs.games.liars_dice.raises import NO_BID
from tests.agents.adaptive.cases import TWO_DICE
from tests.conftest import scaled
from tests.support.subsets import covering, few

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


def test_parts_make_the_players_that_they_are_of():
    states, _ = positions_of_random_play(TWO_DICE, scaled(100, 10), 5)
    turn = Turn(TWO_DICE, states, np.arange(len(states)), new_streams(1, len(states)))
    numbers = Way(Numbers())
    for bluff in (0.0, 0.3):
        parts = Composed(Way(Claims(1), Uniform(), 0.0), Way(Numbers(), Numbers(1.0), bluff), numbers)
        np.testing.assert_allclose(ask_probabilities(parts, turn), ask_probabilities(Numbers(bluff), turn), atol=1e-12)
        assert parts.promises.memoryless
    fresh = states.copy()
    fresh["bids_shown"] = fresh["bids_honest"] = 0
    turn = Turn(TWO_DICE, fresh, np.arange(len(states)), new_streams(1, len(states)))
    parts = Composed(Way(Reader()), Way(FixedReader(0.5)), Way(FixedReader(0.5)))
    np.testing.assert_array_equal(ask_probabilities(parts, turn), ask_probabilities(Reader(), turn))
    assert not parts.promises.memoryless, "it reads the bids of the round"
    lowest = ask_probabilities(Lowest(0.25), turn)
    may_do_both = turn.legal[:, -1].astype(bool) & turn.legal[:, :-1].any(axis=1)
    assert (lowest[may_do_both, -1] == 0.25).all()
    assert (lowest[may_do_both, turn.legal[may_do_both].argmax(axis=1)] == 0.75).all()
    for more in (0, 2):
        opens = states["bid"] == NO_BID
        claimed = ask_probabilities(Claims(more), turn)[opens].argmax(axis=1)
        most = states["counts"][opens, states["seat"][opens]].max(axis=1)
        np.testing.assert_array_equal(claimed // 6 + 1, np.clip(most + more, 1, states["in_play"][opens]))


def test_likelihoods_are_those_of_the_agents():
    states, actions = positions_of_random_play(TWO_DICE, 150, 5)
    logs = log_likelihoods(TWO_DICE, LiarsDiceNash(), states, actions)
    assert logs.shape == (len(states), KINDS)
    turn = Turn(TWO_DICE, states, np.arange(len(states)), new_streams(1, len(states)))
    bids, call = turn.legal[:, :-1].sum(axis=1), TWO_DICE.params.call
    opens, calls = states["bid"] == NO_BID, actions == call
    told = {OPENING: opens, RAISING: ~opens & ~calls, CALLING: ~opens & (bids > 0)}
    for part, rows in told.items():
        own = logs[:, KINDS_OF[part]]
        assert (own[~rows] == 0).all(), "the decision is of another part"
        number = 0
        for style in PARTS[part]:
            for level in style.levels:
                for row in np.flatnonzero(rows)[:40]:
                    chance = 0.0
                    for agent, share in ((style.first, 1 - level), (style.second, level)):
                        if agent is None:
                            continue
                        chances = ask_probabilities(agent, turn)[row]
                        if part == CALLING:
                            chance += share * (chances[call] if calls[row] else 1 - chances[call])
                        elif chances[call] < 1:
                            chance += share * chances[actions[row]] / (1 - chances[call])
                        else:
                            chance += share / bids[row]
                    evenly = 0.5 if part == CALLING else 1 / bids[row]
                    assert own[row, number] == pytest.approx(np.log(0.95 * chance + 0.05 * evenly), abs=1e-9)
                number += 1
        assert number == own.shape[1] - 2, "and optimal play, and unknown"


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
    beliefs = posterior(np.zeros((1, KINDS)))
    np.testing.assert_allclose(beliefs.known, 3 / 8)
    for own in KINDS_OF:
        kinds = beliefs.kinds[0, own]
        assert kinds.sum() == pytest.approx(1)
        np.testing.assert_allclose(kinds[-2:], 5 / 16)


def test_one_part_tells_of_the_others_where_players_are_known_as_a_whole():
    likelihoods = np.zeros((1, KINDS))
    likelihoods[0, KINDS_OF[RAISING]] = -20
    likelihoods[0, KINDS_OF[RAISING].stop - 3] = 0  # the reader's raises
    beliefs = posterior(likelihoods)
    assert beliefs.readers.sum() > 0.99
    assert (beliefs.known > 0.99).all()


@covering(("bluff", "preset"), [0.0, 0.3, 1.0], ["text", "article"])
def test_it_finds_out_how_its_opponent_plays(bluff, preset):
    beliefs, memory = beliefs_after(Numbers(bluff, preset=preset), match=scaled(200, 8))
    if scaled(1, 0):
        number = ["text", "article"].index(preset)
        levels = np.array(PARTS[RAISING][number].levels)
        own = beliefs.kinds[:, KINDS_OF[RAISING].start + number * len(levels) :][:, : len(levels)]
        assert (own.sum(axis=1) > 0.99).all()
        assert (beliefs.kinds[:, KINDS_OF[CALLING].start + number] > 0.99).all()
        if preset == "text":  # the article's program calls so often that its bluffs are rarely shown
            means = own @ levels / own.sum(axis=1)
            assert abs(means - bluff).max() < 0.25
            assert abs(means.mean() - bluff) < 0.1
    assert (memory["rounds"] > 0).all()


@few(1, "opponent", [LiarsDiceNash(), Uniform()])
def test_it_leaves_others_alone(opponent):
    beliefs, memory = beliefs_after(opponent, match=scaled(100, 4))
    if scaled(1, 0):
        assert (beliefs.known[:, RAISING] < 0.1).all()
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
        assert (before.known[:, [OPENING, RAISING]] > 0.99).all()
        assert (after.known[:, [OPENING, RAISING]] < 0.01).all()
