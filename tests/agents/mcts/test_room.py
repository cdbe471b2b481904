"""The memory of a search tree is bounded, and a full tree still works."""

import dataclasses
import warnings
from unittest.mock import Mock

import numba
import numpy as np
import pytest

from dice_envs import Batch, configure
from dice_envs.agent import Turn
from dice_envs.agent.specs import make_agent
from dice_envs.agents import mcts
from dice_envs.agents.mcts import MCTS
from dice_envs.agents.mcts import tree as room
from dice_envs.core.dice import new_streams
from dice_envs.core.game import names
from dice_envs.experiments.reproduce.fatestones import JointSearch
from tests.agents.mcts.test_agent import turn_of
from tests.conftest import scaled
from tests.support.subsets import few
from tests.support.turns import turn_at
from tests.support.variants import IDS, MARKED

FEW = scaled(300, 30)  # simulations
AGENTS = [MCTS(FEW, final="mixed"), MCTS(FEW, select="regret"), JointSearch(FEW, final="mixed")]
NAMES = ["uct", "regret", "joint"]


@pytest.fixture
def limit(monkeypatch):
    """Limit the tree to these numbers of nodes and edges, and reset its once-only warning."""

    def to(nodes, edges):
        monkeypatch.setattr(mcts, "most", lambda *_: (nodes, edges))
        monkeypatch.setattr(room, "_warned_full", False)

    return to


# Search is compiled anew for each game: one is among the fast tests.
GAMES = [pytest.param(name, marks=[] if name == "liars_dice" else [pytest.mark.thorough]) for name in names()]


@pytest.mark.thorough
@pytest.mark.parametrize("agent", AGENTS, ids=NAMES)
@pytest.mark.parametrize("moves", [0, 1])
@pytest.mark.parametrize("game", GAMES)
def test_more_room_than_a_search_needs_makes_no_difference(game, moves, agent, limit):
    enough = agent.search(turn_of(game, 3, moves=moves))
    limit(7 * FEW, 600 * FEW)
    for one, other in zip(enough, agent.search(turn_of(game, 3, moves=moves)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.thorough
@pytest.mark.parametrize("most", [None, (30, 60)], ids=["room", "full"])
def test_a_search_depends_on_its_own_stream_alone(most, limit):
    """Earlier games of the batch leave their tree behind, which does not change results."""
    if most:
        limit(*most)
    agent, games = make_agent(f"mcts:{FEW},select=regret"), scaled(10, 3)
    turn = turn_of("score_dice", games, moves=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        together = agent.probabilities(turn_of("score_dice", games, moves=1))
        alone = [
            agent.probabilities(Turn(turn.variant, turn._true_states, np.array([i]), turn.streams[i : i + 1]))
            for i in range(games)
        ]
    np.testing.assert_array_equal(np.concatenate(alone), together)


@few(1, "threads", [2, 3, 20])
def test_threads_find_the_same(threads):
    variant, games = configure("liars_dice", num_dice=2), scaled(10, 3)
    states = Batch(variant, games, seed=1).states
    found = []
    for each in (1, threads):
        streams, agent = new_streams(2, games), make_agent(f"mcts:{FEW},threads={each},final=mixed")
        turn = Turn(variant, states, np.arange(games), streams)
        found.append((*agent.search(turn), agent.act(turn), streams))
    for alone, together in zip(*found, strict=True):
        assert alone.tobytes() == together.tobytes()
    assert len(np.unique(found[0][0], axis=0)) > 1


@pytest.mark.thorough
@pytest.mark.parametrize("promised", [200, 3])
@pytest.mark.parametrize("spec", ["mcts:5", "mcts:5,select=regret"])
def test_a_game_may_come_back_to_the_same_view(spec, promised):
    """Two dice that always tie are redrawn a hundred times: two nodes, and a path of two hundred tree moves."""
    turn = turn_of("fatestones", 20, dice=(333333, 333333), hand_size=1)
    turn.variant.facts = dataclasses.replace(turn.variant.facts, max_steps=promised)
    assert (make_agent(spec).act(turn) == 0).all()


@pytest.mark.parametrize(("name", "options"), MARKED, ids=IDS)
@pytest.mark.parametrize("memory", [0.01, 0.1])
def test_no_tree_takes_more_than_its_memory(name, options, memory):
    variant = configure(name, **options)
    tree = room.new_tree(*MCTS(10_000_000, memory=memory)._room(variant), variant.facts)
    assert memory * 2**30 * 0.7 < sum(array.nbytes for array in tree) < memory * 2**30


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="this many simulations take minutes as Python")
def test_a_search_in_a_full_tree_says_so_once(monkeypatch):
    monkeypatch.setattr(room, "_warned_full", False)
    agent = MCTS(60_000, memory=0.01)
    with pytest.warns(RuntimeWarning, match=r"has filled its 0.01 GiB with 2\d,\d{3} positions.*memory raises the limit"):
        agent.search(turn_of("liars_dice", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.search(turn_of("liars_dice", 1))


@pytest.mark.filterwarnings("ignore:mcts:RuntimeWarning")
@pytest.mark.parametrize(("nodes", "edges"), [(3, 1000), (1000, 122), (40, 500)])
@pytest.mark.parametrize("agent", AGENTS, ids=NAMES)
@pytest.mark.parametrize("game", GAMES)
def test_full_trees_leave_legal_policies(game, agent, nodes, edges, limit):
    limit(nodes, edges)
    turn = turn_of(game, 5, moves=1)
    policies = agent.probabilities(turn)
    assert (policies[turn.legal == 0] == 0).all()
    np.testing.assert_allclose(policies.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore:mcts:RuntimeWarning")
@pytest.mark.thorough
def test_with_a_full_tree_the_second_to_commit_still_learns(limit):
    """Every simulation reaches the searcher's own choice and counts, even without room for the first seat's positions."""
    limit(20, 100)
    policies = MCTS(FEW, final="mixed").probabilities(turn_of("score_dice", 10, moves=1))
    visits = policies * FEW
    np.testing.assert_allclose(visits, visits.round(), atol=1e-9)
    assert (visits.sum(axis=1).round() == FEW).all()
    assert (visits.min(axis=1) >= FEW // 20).all()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:mcts:RuntimeWarning")
@pytest.mark.parametrize("agent", AGENTS, ids=NAMES)
def test_with_a_full_tree_the_mean_return_is_that_of_the_simulations_that_count(agent, limit):
    """B has only sixes against dice of five sides, so it always wins."""
    limit(4, 100)
    batch = Batch("score_dice", 1, 1, pool_a=(5, 5, 5), pool_b=(6, 6, 6))
    batch.variant.arrange(batch.states[0], {"dice": [[3, 2, 1], [6, 6, 6]]})
    batch.play(np.zeros(1, np.int64))
    _, values = agent.search(turn_at(batch.variant, batch.states))
    assert values[0] == pytest.approx(1)


def test_memory_for_less_than_one_simulation_is_refused():
    turn = turn_of("liars_dice", 1)
    turn.variant.facts = dataclasses.replace(turn.variant.facts, num_actions=10**6)
    with pytest.raises(ValueError, match=r"memory must be at least 0.09 for liars_dice with 1,000,000 actions, not 0.05"):
        MCTS(memory=0.05).search(turn)


def test_memory_that_the_system_does_not_have_is_refused(monkeypatch):
    monkeypatch.setattr(mcts, "new_tree", Mock(side_effect=MemoryError))
    with pytest.raises(ValueError, match="memory must be less than 50: the system has no room for so large a tree"):
        MCTS(memory=50).search(turn_of("liars_dice", 1))
