"""Mixtures and profiles: the same figures as of the behaviour strategy that the sequence form gives, and as of games played."""

import functools

import numpy as np
import pyspiel
import pytest

from dice_envs import Batch, Mixture, SeatVectorEnv, configure, make_agent, measure
from dice_envs.agent import ask, draw_actions, forget_game, fresh_memory
from dice_envs.agent.matches import pieces_of, play_pieces
from dice_envs.agent.specs import NotHarmless, check_harmless
from dice_envs.core.dice import new_streams
from dice_envs.envs.openspiel import PolicyAgent, openspiel_game
from dice_envs.exact import GameExact
from dice_envs.exact.intervals import half_width
from dice_envs.experiments.learners.openspiel import StatePolicy, game_of

ONE = configure("liars_dice", rules="openspiel", num_dice=1)
SIZES = [(1, 3), *(pytest.param(size, marks=pytest.mark.thorough) for size in ((2, 3), (1, 6)))]


@functools.cache
def infostates(name):
    """Every information state of an OpenSpiel game: string → (seat, legal actions, the seat's decisions before it)."""
    game = pyspiel.load_game(name)
    found, todo = {}, [(game.new_initial_state(), ((), ()))]
    while todo:
        state, before = todo.pop()
        if state.is_terminal():
            continue
        if state.is_chance_node():
            todo += [(state.child(action), before) for action in state.legal_actions()]
            continue
        seat, text = state.current_player(), state.information_state_string()
        found[text] = seat, state.legal_actions(), before[seat]
        for action in state.legal_actions():
            after = tuple((*own, (text, action)) if player == seat else own for player, own in enumerate(before))
            todo.append((state.child(action), after))
    return found


def random_tables(game, count, seed=0):
    """Random policies: information state → action → probability. Some actions are never taken."""
    rng, tables = np.random.default_rng(seed), []
    for _ in range(count):
        table = {}
        for text, (_, legal, _) in infostates(str(game)).items():
            weights = rng.exponential(size=len(legal)) * (rng.random(len(legal)) < 0.7)
            weights = weights if weights.sum() else np.ones(len(legal))
            table[text] = dict(zip(legal, weights / weights.sum(), strict=True))
        tables.append(table)
    return tables


def behaviour(game, tables, weights):
    """The behaviour strategy of a mixture for each seat, from the sequence form: a policy of OpenSpiel's."""
    found = {}
    for text, (seat, legal, before) in infostates(str(game)).items():
        own = [w * np.prod([t[at][action] for at, action in before]) for w, t in zip(weights[seat], tables, strict=True)]
        own = np.array(own) if sum(own) else np.ones(len(tables))
        mixed = sum(reach * np.array([t[text][a] for a in legal]) for reach, t in zip(own, tables, strict=True)) / own.sum()
        found[text] = list(zip(legal, mixed, strict=True))
    return pyspiel.TabularPolicy(found)


def agents_of(game, tables):
    return [StatePolicy(game, lambda state, table=table: table[state.information_state_string()]) for table in tables]


@pytest.mark.parametrize("size", SIZES)
def test_mixtures_are_measured_as_the_sequence_form_says(size):
    variant = configure("liars_dice", rules="openspiel", num_dice=size[0], num_faces=size[1])
    game = game_of(variant)
    tables = random_tables(game, 4)
    agents = agents_of(game, tables)
    flat = [0.1, 0.4, 0.0, 0.5]
    expected = pyspiel.exploitability(game, behaviour(game, tables, [flat, flat]))
    nested = Mixture([Mixture(agents[:2], [1, 4]), agents[2], agents[3]], [5, 0, 5])
    for mixture in (Mixture(agents, flat), nested):
        exploitability, wins, nash_conv = measure(variant, mixture).measures
        assert exploitability.value == pytest.approx(expected, abs=1e-9)
        assert wins.value == pytest.approx((1 + expected) / 2, abs=1e-9)
        assert nash_conv.value == pytest.approx(2 * expected, abs=1e-9)
        assert exploitability.error == 0
    by_seat = [flat, [0.7, 0.0, 0.3, 0.0]]
    policy = behaviour(game, tables, by_seat)
    exploitability, nash_conv, *gains = measure(variant, [Mixture(agents, weights) for weights in by_seat]).measures
    assert nash_conv.value == pytest.approx(pyspiel.nash_conv(game, policy), abs=1e-9)
    assert sum(each.value for each in gains) == pytest.approx(nash_conv.value, abs=1e-12)
    assert exploitability.value == pytest.approx(nash_conv.value / 2, abs=1e-12)
    value = pyspiel.expected_returns(game.new_initial_state(), policy, -1, True)[0]
    assert float(gains[0].note.split(": ")[1].split(" return")[0]) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("players", [2, 3])
def test_a_mixture_of_an_agent_with_itself_is_the_agent(players):
    variant = configure("liars_dice", rounds="single", num_dice=1, num_faces=3, num_players=players)
    agents = ["numbers:bluff=0.5", "random"]
    alone = [[each.value for each in measure(variant, agent).measures] for agent in agents]
    for weights, expected in (([1, 1, 0], alone[0]), ([0, 0, 1], alone[1])):
        found = measure(variant, Mixture([agents[0], agents[0], agents[1]], weights))
        assert [each.value for each in found.measures] == pytest.approx(expected, abs=1e-12)


def test_three_players_mix_as_their_behaviour_does():
    """The first decision is a player's only one if all others call: there the mixture is the mean of its agents."""
    variant = configure("liars_dice", rounds="single", num_dice=1, num_faces=3, num_players=3, starter="first")

    class Mean:
        def __init__(self, agents):
            self.agents = agents

        def probabilities(self, turn):
            return np.mean([agent.probabilities(turn) for agent in self.agents], axis=0)

    class Calls:
        def __init__(self, raises):
            self.raises = raises

        def probabilities(self, turn):  # one raise at the beginning, and a call afterwards
            chances = np.zeros(turn.legal.shape)
            first = turn.legal[:, -1] == 0
            chances[first, self.raises], chances[~first, -1] = 1, 1
            return chances

    agents = [Calls(0), Calls(2)]
    mixed, mean = (measure(variant, each).measures for each in (Mixture(agents), Mean(agents)))
    assert [each.value for each in mixed] == pytest.approx([each.value for each in mean], abs=1e-12)
    seats = [Mixture(agents), "random", "numbers"]
    assert measure(variant, seats).measures[1].value == pytest.approx(
        measure(variant, [Mean(agents), *seats[1:]]).measures[1].value, abs=1e-12
    )


def test_games_played_agree_with_exact_wins():
    variant = configure("liars_dice", num_dice=2)
    agents, weights, opponent = ["random", "numbers:bluff=0.5", "numbers:bluff=0"], np.array([0.5, 0.3, 0.2]), "numbers"
    exact = GameExact(variant.game).winning_shares
    expected = sum(w * exact(variant, [agent, opponent])[0] for w, agent in zip(weights, agents, strict=True))
    mixture = Mixture(agents, weights.tolist())
    pieces = pieces_of(20_000, 2, np.random.SeedSequence(1), 256)
    won = play_pieces(variant, [mixture, make_agent(opponent)], 1, pieces)[:, 0, 0] > 0
    assert abs(won.mean() - expected) < 1.5 * half_width(won.astype(float), 0.0, 1.0)
    env = SeatVectorEnv(variant, 256, opponents=mixture)
    rng, rewards = np.random.default_rng(0), []
    _, info = env.reset(seed=1)
    while len(rewards) < 20_000:  # a random learner
        legal = info["action_mask"]
        actions = (rng.random(legal.shape) * legal).argmax(axis=1)
        _, reward, ended, _, info = env.step(actions)
        rewards += reward[ended].tolist()
    lost = np.array(rewards) < 0
    expected = sum(w * exact(variant, [agent, "random"])[0] for w, agent in zip(weights, agents, strict=True))
    assert abs(lost.mean() - expected) < 1.5 * half_width(lost.astype(float), 0.0, 1.0)


def test_one_agent_plays_a_whole_game_and_each_game_draws_anew():
    class Always:
        def __init__(self, last):
            self.last = last

        def act(self, turn):
            return np.array([np.flatnonzero(row)[-1 if self.last else 0] for row in turn.legal])

    mixture = Mixture([Always(True), Always(False)])
    variant = configure("liars_dice", num_dice=3)
    count, played = 500, []
    memory, streams = fresh_memory(mixture, count), new_streams(0, count)
    for game in range(2):
        forget_game(memory)
        batch = Batch(variant, count, seed=game)
        for _ in range(2):
            ask(mixture, variant, batch.states, np.arange(count), streams, memory)
            played.append(memory["game"].copy())
    assert np.array_equal(played[0], played[1])
    assert np.array_equal(played[2], played[3])
    assert 0.4 < (played[0] == 1).mean() < 0.6
    assert 0.4 < (played[0] == played[2]).mean() < 0.6


def test_whole_games_give_a_bound_and_say_why():
    variant = configure("liars_dice", num_dice=2)
    agents, weights = ["numbers", "random"], [0.25, 0.75]
    measured = measure(variant, Mixture(agents, weights))
    found, *others = measured.measures
    assert measured.score is None
    assert [each.name for each in others] == ["best response wins, at most", "NashConv, at most"]
    parts = [measure(variant, agent).measures[0].value for agent in agents]
    assert found.name == "exploitability, at most"
    assert found.value == pytest.approx(np.dot(weights, parts), abs=1e-12)
    assert "which of the agents it faces" in found.note
    with pytest.raises(ValueError, match="one round"):
        measure(variant, (Mixture(agents), "random"))
    for game, options in (("liars_dice", {"num_players": 3, "num_dice": 2}), ("shakes", {"mode": "maesters"})):
        with pytest.raises(ValueError, match="each seat draws an agent of its own"):
            measure(game, Mixture(["random", "random"]), **options)


def test_what_is_won_from_a_given_opponent_is_the_mean():
    options = {"pool_a": (6, 4), "pool_b": (6, 4)}
    agents = ["random", "highest"]
    parts = [measure("score_dice", agent, **options).measures for agent in agents]
    found = measure("score_dice", Mixture(agents, [1, 3]), **options).measures
    assert found[0].name == parts[0][0].name == "reward against highest"
    assert found[0].value == pytest.approx(0.25 * parts[0][0].value + 0.75 * parts[1][0].value, abs=1e-12)
    assert [each.name for each in found if "at most" in each.name] == ["exploitability, at most"]


def test_with_one_player_it_is_the_mean():
    found = measure("thirties", Mixture(["random", "thirties:heuristic"], [3, 1]))
    parts = [measure("thirties", agent) for agent in ("random", "thirties:heuristic")]
    assert [each.name for each in found.measures] == [each.name for each in parts[0].measures]
    for each, random, other in zip(found.measures, *(part.measures for part in parts), strict=True):
        assert each.value == pytest.approx(0.75 * random.value + 0.25 * other.value, abs=1e-12)
    assert found.score == pytest.approx(1 - found.measures[0].gap / parts[0].measures[0].gap, abs=1e-12)
    assert found.score_error == 0


def test_specs_name_mixtures():
    mixture = make_agent("mix:0.7*nash+0.3*numbers:bluff=0.5,threshold=0.3")
    assert str(mixture) == "mix:0.7*nash+0.3*numbers:bluff=0.5,threshold=0.3"
    assert mixture.shares().tolist() == pytest.approx([0.7, 0.3])
    assert measure(ONE, "mix:1*nash+0*random").measures[0].value == measure(ONE, "nash").measures[0].value
    small = Mixture(["nash", "random"], [1e-6, 1])
    assert make_agent(str(small)).shares().tolist() == pytest.approx(small.shares().tolist())
    small.agents[1] = make_agent("numbers")
    assert "random" not in str(small)
    for spec in ("mix:nash", "mix:0.5*nobody", "mix:x*nash"):
        with pytest.raises(ValueError, match="mix|nobody"):
            make_agent(spec)
    with pytest.raises(NotHarmless):
        check_harmless("mix:1*random+1*ppo:/secret", "liars_dice")


@pytest.mark.parametrize(
    ("agents", "weights", "message"),
    [
        ([], None, "one or more"),
        (["random"], [0], "not all 0"),
        (["random", "nash"], [1, -1], "non-negative"),
        (["random", "nash"], [1], "2 non-negative"),
        (["random"], [float("inf")], "non-negative"),
        (["random"], [float("nan")], "non-negative"),
    ],
)
def test_bad_mixtures_are_refused(agents, weights, message):
    with pytest.raises(ValueError, match=message):
        Mixture(agents, weights)


def test_random_answers_in_a_mixture_are_refused():
    class Moody:
        def act(self, turn):
            return draw_actions(turn.streams, turn.legal / turn.legal.sum(axis=1, keepdims=True))

    with pytest.raises(ValueError, match="probabilities of its agents are fixed"):
        measure(ONE, Mixture([Moody(), "nash"]))


def test_bad_profiles_are_refused():
    for profile, message in ((["nash"], "each of the 2 seats"), (["nash"] * 3, "each of the 2 seats")):
        with pytest.raises(ValueError, match=message):
            measure(ONE, profile)
    with pytest.raises(ValueError, match="with a profile"):
        measure(ONE, ["nash", "nash"], against=["nash"])
    with pytest.raises(ValueError, match="games in which one can: fatestones, liars_dice"):
        measure("score_dice", ["nash", "nash"])
    with pytest.raises(ValueError, match="one Mixture alone"):
        SeatVectorEnv(configure("liars_dice", num_players=3), 1, opponents=[Mixture(["random"]), "random"])


def test_a_policy_for_one_seat_is_a_profile_that_lacks_a_seat():
    from open_spiel.python.policy import TabularPolicy

    game = openspiel_game("liars_dice", rules="openspiel", num_dice=1, num_faces=2)
    halves = [PolicyAgent(game, TabularPolicy(game, players=[seat])) for seat in range(2)]
    with pytest.raises(ValueError, match="profile that lacks seat 2"):
        measure(game.variant, halves[0])
    whole = PolicyAgent(game, TabularPolicy(game))
    found, expected = measure(game.variant, halves), measure(game.variant, whole)
    assert found.measures[0].value == pytest.approx(expected.measures[0].value, abs=1e-12)


def test_nash_conv_stands_beside_exploitability():
    exploitability, _, nash_conv = measure(ONE, "random").measures
    assert (nash_conv.name, nash_conv.value) == ("NashConv", 2 * exploitability.value)
