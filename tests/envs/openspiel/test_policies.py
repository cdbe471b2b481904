"""Agents as policies and back: OpenSpiel's measures and solutions agree with ours."""

import re

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policies
from open_spiel.python.algorithms import expected_game_score, exploitability, external_sampling_mccfr

from dice_envs.agent import Turn, Uniform
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.envs.openspiel import AgentPolicy, PolicyAgent, estimate_positions, openspiel_game
from dice_envs.exact import measure
from dice_envs.experiments.arena import tournament
from tests.envs.openspiel.cases import GAMES, QUANTITY, TWO_ROUNDS, gap_of, play_until_decision
from tests.support.subsets import few

# --- agreement with our measures and solutions --------------------------------------------------------------------


@pytest.mark.parametrize("which", ["quantity", "either"])
def test_exploitability_of_any_policy_is_what_measure_finds(which):
    """Where either seat may begin, the policy differs in each."""
    name, options = GAMES[which]
    game = openspiel_game(name, **options)
    policy = policies.TabularPolicy(game)
    drawn = np.random.default_rng(1).exponential(size=policy.legal_actions_mask.shape) ** 3 * policy.legal_actions_mask
    policy.action_probability_array[:] = drawn / drawn.sum(axis=1, keepdims=True)
    found = gap_of(name, PolicyAgent(game, policy), options)
    assert found == pytest.approx(exploitability.exploitability(game, policy), abs=1e-9)


@pytest.mark.library("open_spiel", "exploitability, as measure finds it", game=lambda test: GAMES[test["which"]][0])
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("which", "agent", "perfect_recall"),
    [
        ("quantity", "numbers:bluff=0.25", True),
        ("quantity", "numbers:bluff=0.25", False),
        ("quantity", "nash", False),
        ("either", "numbers", False),
        ("either", "nash", True),
        ("two rounds", "random", False),
        ("two rounds", "numbers:bluff=0.5", False),
        ("two rounds", "nash", True),
        ("perudo", "numbers:bluff=0.5", False),
        ("perudo", "nash", True),
        ("stones", "random", False),
        ("stones", "nash", True),
        ("stones", "best_response", False),
        ("pools", "highest", True),
        ("pools", "highest", False),
    ],
)
def test_exploitability_of_agents_is_what_measure_finds(which, agent, perfect_recall):
    """With perfect recall best responses see more, but not against these agents, which forget past rounds."""
    name, options = GAMES[which]
    game = openspiel_game(name, perfect_recall=perfect_recall, **options)
    theirs = exploitability.exploitability(game, AgentPolicy(game, agent))
    assert theirs == pytest.approx(gap_of(name, agent, options), abs=1e-9)


@pytest.mark.library("open_spiel", "CFR finds what measure confirms", game=lambda test: GAMES[test["which"]][0])
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("which", "solution", "iterations"),
    [
        ("one round", "nash", 30),
        ("either", "nash", 30),
        ("two rounds", "nash", 8),
        ("stones", "nash", 8),
        ("pools", "random", 8),  # any random choice is an equilibrium
    ],
)
def test_cfr_finds_solutions_that_measure_confirms(which, solution, iterations):
    """As one of our agents, the average policy has the exploitability that OpenSpiel computes, which is small."""
    name, options = GAMES[which]
    # An agent sees of past rounds only what is in its observation, so information sets must not contain more.
    game = openspiel_game(name, perfect_recall=which in ("one round", "either", "pools"), **options)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    theirs = pyspiel.exploitability(game, average)
    assert gap_of(name, PolicyAgent(game, average), options) == pytest.approx(theirs, abs=1e-9)
    assert theirs < 0.05
    ours = expected_game_score.policy_value(game.new_initial_state(), [AgentPolicy(game, solution)] * 2)
    assert sum(ours) == pytest.approx(0, abs=1e-9)
    # The value may be off by at most what best responses win, the sum of both seats.
    assert pyspiel.expected_returns(game.new_initial_state(), average, -1, True)[0] == pytest.approx(
        ours[0], abs=2 * theirs + 1e-9
    )


@pytest.mark.thorough
def test_an_algorithm_runs_with_sampled_chance():
    sampled = openspiel_game("liars_dice", num_players=3, num_dice=1, num_faces=3, chance="sampled", rng_seed=1)
    traverser = external_sampling_mccfr.ExternalSamplingSolver(sampled)
    for _ in range(20):
        traverser.iteration()
    assert traverser.average_policy().action_probabilities(play_until_decision(sampled))


# --- agents and policies ------------------------------------------------------------------------------------------


def test_agents_and_policies_are_the_same_players():
    name, options = QUANTITY
    game = openspiel_game(name, **options)
    bluffer = AgentPolicy(game, "numbers:bluff=0.25")
    back = PolicyAgent(game, bluffer)
    assert gap_of(name, back, options) == pytest.approx(gap_of(name, "numbers:bluff=0.25", options), abs=1e-9)
    played = tournament(game.variant, ["back", "random"], 50, 1, agents=[back, Uniform()])
    assert played.win_rate[0][1] > 0.5
    state = play_until_decision(game)
    assert sum(bluffer.action_probabilities(state).values()) == pytest.approx(1)
    assert list(bluffer.action_probabilities(state)) == state.legal_actions()
    seen = AgentPolicy(game, lambda observations, masks: masks / masks.sum(axis=1, keepdims=True))
    assert seen.action_probabilities(state) == policies.UniformRandomPolicy(game).action_probabilities(state)


@pytest.mark.parametrize("perfect_recall", [True, False])
def test_where_a_policy_has_no_entry_is_said(perfect_recall):
    """It plays uniformly elsewhere, so the figure is that of a policy that nobody has made."""
    name, options = GAMES["one round"]
    game = openspiel_game(name, perfect_recall=perfect_recall, **options)
    table = policies.TabularPolicy(game)
    entries = [
        (text, [(action, 1.0) for action in np.flatnonzero(table.legal_actions_mask[row])])
        for text, row in table.state_lookup.items()
    ]
    for known in (entries[::2], entries):
        chances = {text: [(int(action), weight / len(row)) for action, weight in row] for text, row in known}
        agent = PolicyAgent(game, pyspiel.TabularPolicy(chances))
        notes = [each.note for each in measure(name, agent, **options).measures[:2]]
        assert {bool(re.search(r"no entry at \d+ of \d+ observations, and plays uniformly", note)) for note in notes} == {
            known is not entries
        }


def test_a_policy_plays_games_of_any_size_without_recall():
    game = openspiel_game("liars_dice", perfect_recall=False)
    agent = PolicyAgent(game, policies.UniformRandomPolicy(game))
    batch = Batch(game.variant, 8, seed=1)
    turn = Turn(game.variant, batch.states, np.arange(8), new_streams(2, 8))
    np.testing.assert_allclose(agent.probabilities(turn), Uniform().probabilities(turn))


def test_positions_are_estimated():
    """Compared with the number counted by a walk."""
    game = openspiel_game("liars_dice", num_dice=1, num_faces=3)
    counted, waiting = 0, [game.new_initial_state()]
    while waiting:
        state = waiting.pop()
        counted += 1
        waiting += [] if state.is_terminal() else [state.child(action) for action in state.legal_actions()]
    assert estimate_positions(game) == pytest.approx(counted, rel=0.2)


@few(1, "name", ["liars_dice", "fatestones", "shakes"])
def test_a_tree_too_large_to_walk_is_refused_with_its_size(name):
    game = openspiel_game(name)
    with pytest.raises(ValueError, match=rf"^{name}.* has about \de\+\d+ positions, .* 10,000,000 are allowed"):
        PolicyAgent(game, policies.UniformRandomPolicy(openspiel_game("liars_dice", num_dice=1, num_faces=3)))


def test_what_a_policy_cannot_play_is_said():
    name, options = QUANTITY
    game = openspiel_game(name, **options)
    agent = PolicyAgent(game, policies.UniformRandomPolicy(game))
    with pytest.raises(ValueError, match=r"the policy plays liars_dice \(num_dice=1 num_faces=3\), not liars_dice"):
        measure("liars_dice", agent, num_dice=1)
    with pytest.raises(ValueError, match="chance must be 'explicit'"):
        PolicyAgent(openspiel_game(name, chance="sampled", **options), policies.UniformRandomPolicy(game))
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        AgentPolicy(game, "nobody")


class Rememberer(policies.Policy):
    """Plays its first legal action if it has seen an even number of items, otherwise its last."""

    def action_probabilities(self, state, player_id=None):
        legal = state.legal_actions()
        even = len(state.information_state_string()) % 2 == 0
        return {action: float(action == legal[0 if even else -1]) for action in legal}


@pytest.mark.thorough
def test_a_policy_that_needs_its_memory_is_no_agent():
    game = openspiel_game(TWO_ROUNDS[0], **TWO_ROUNDS[1])
    with pytest.raises(ValueError, match="differs between positions that look the same to player ."):
        PolicyAgent(game, Rememberer(game, [0, 1]))
