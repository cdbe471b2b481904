"""A network that is asked at all hands of many nodes at once, compared with the same network asked at each of them."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core import machine
from dice_envs.core.dice import new_streams
from dice_envs.exact import asked
from dice_envs.games.liars_dice.exact import networks, sources
from dice_envs.games.liars_dice.exact.moves import Source
from dice_envs.games.liars_dice.exact.round import Round
from dice_envs.games.liars_dice.exact.sources import ROWS_AT_ONCE, AgentSource, SeatComparison, source_of
from tests.support.liars_dice_games import exploitability, respond, winning_probability
from tests.support.policies import Plays, random_policy
from tests.support.subsets import few
from tests.support.variants import SOLVABLE_PERUDO

CLOSE = 5e-6  # float32 rounding of a chance


def policy(options, **settings):
    """A network with random weights for a game."""
    return random_policy(configure("liars_dice", **options), seed=3, **{"hidden": (9, 7), "steepness": 2.0, **settings})


class Both(Source):
    """A source that asks a network in both ways and compares the answers."""

    def __init__(self, *given):
        self.at_once, self.one_by_one = source_of(*given), AgentSource(*given)
        self.entries = 0

    def write(self, asking):
        self.at_once.write(asking)
        expected = asking._replace(calls=np.full_like(asking.calls, np.nan), raises=np.full_like(asking.raises, np.nan))
        self.one_by_one.write(expected)
        np.testing.assert_allclose(asking.calls, expected.calls, rtol=0, atol=CLOSE)
        np.testing.assert_allclose(asking.raises, expected.raises, rtol=0, atol=CLOSE)
        self.entries += len(asking.calls)


@few(
    2,
    ("options", "settings"),
    [
        ({"num_dice": 2, "num_faces": 3, "rules": "openspiel"}, {}),
        ({"num_dice": 2, "num_faces": 3, "rules": "openspiel"}, {"hidden": ()}),
        ({"num_dice": (1, 3), "num_faces": 4, "wild": "ones", "past_rounds": False}, {"hidden": (8,), "floor": 0.2}),
        ({"num_dice": 3}, {"floor": 0.05}),
        ({"num_dice": 2, "num_faces": 3, **SOLVABLE_PERUDO}, {}),
        ({"num_dice": 2}, {"steepness": 1e30}),  # infinite sums
    ],
    ids=str,
)
def test_all_answers_in_rounds_are_those_of_the_network(options, settings, monkeypatch):
    monkeypatch.setattr(networks, "NUMBERS_AT_ONCE", 500)
    monkeypatch.setattr(networks, "NODES_AT_ONCE", 50)
    network = policy(options, **settings)
    most = configure("liars_dice", **options).options.dice_per_seat
    for dice in {most, most[::-1]}:
        round_ = Round(network.variant, dice)
        for player in range(2):
            both = Both(round_, player, network, player, new_streams(1, ROWS_AT_ONCE)[None])
            assert isinstance(both.at_once, networks.Networked)
            respond(round_, player, both)
            if not settings.keys() & {"floor", "steepness"}:  # no chance is 0
                assert both.entries == round_.information_sets(player)


@few(1, "most", [0.0, 1.5, 20.0])
def test_large_sums_of_the_first_layer_are_answered_alike(most, monkeypatch):
    monkeypatch.setattr(networks, "_MOST", most)
    network = policy({"num_dice": 2, "num_faces": 3})
    round_ = Round(network.variant, (2, 2))
    write, grown = networks._write_first, set()

    def noted(asking, nodes, of_node, of_hand, are_grown, out):
        grown.add(are_grown)
        return write(asking, nodes, of_node, of_hand, are_grown, out)

    monkeypatch.setattr(networks, "_write_first", noted)
    respond(round_, 0, Both(round_, 0, network, 0, new_streams(1, ROWS_AT_ONCE)[None]))
    assert grown == {0.0: {False}, 1.5: {False, True}, 20.0: {True}}[most]


def test_logits_below_all_bounds_are_compared_like_others():
    logits = np.array([[-3e30, -2e30], [np.nan, -np.inf], [np.inf, 0.5], [1.0, 2.0]], np.float32)
    networks._lower(logits, np.float32([0.5, 0.5]))
    np.testing.assert_array_equal(np.exp(logits), np.exp(np.float32([[-np.inf, 0], [0, 0], [0, -np.inf], [-1, 0]])))


def test_products_take_one_thread(monkeypatch):
    network = policy({"num_dice": 2, "num_faces": 3})
    round_ = Round(network.variant, (2, 2))
    matmul, threads = np.matmul, set()

    def counted(*given, **settings):
        threads.update(each["num_threads"] for each in machine._libraries().info())
        return matmul(*given, **settings)

    monkeypatch.setattr(np, "matmul", counted)
    with threadpool_limits(2, user_api="blas"):
        respond(round_, 0, source_of(round_, 0, network, 0, new_streams(1, ROWS_AT_ONCE)[None]))
    assert threads == {1}


def test_the_measures_are_the_same():
    network = policy({"num_dice": 2, "num_faces": 3, "rules": "openspiel"})
    asked_everywhere = asked(Plays(network), network.variant)
    for figure, *others in ((exploitability,), (winning_probability, "numbers")):
        expected = figure(network.variant, asked_everywhere, *others)
        for player in (network, asked(network, network.variant)):
            assert figure(network.variant, player, *others) == pytest.approx(expected, abs=CLOSE)


def test_seats_are_compared_by_what_is_observed(monkeypatch):
    network = policy({"num_dice": 2, "num_faces": 3})
    seats = SeatComparison()
    round_ = Round(network.variant, (2, 2))
    source = source_of(round_, 0, network, 0, new_streams(1, ROWS_AT_ONCE)[None], seats)
    respond(round_, 0, source)
    assert seats.alike
    place, seated = sources._positions, []  # the agent's own seat comes first

    def with_another_hand(params, dealt, paths, hands, nodes, which, states):
        seated.append(dealt)
        place(params, dealt, paths, hands, nodes, which if dealt is seated[0] else (which + 1) % 2, states)

    monkeypatch.setattr(sources, "_positions", with_another_hand)
    respond(round_, 0, source)
    assert not seats.alike


@pytest.mark.thorough
def test_who_is_asked_everywhere():
    """Agents that play a network in another way than by its softmax."""

    class Mine(NetworkPolicy):
        def probabilities(self, turn):
            return turn.legal / turn.legal.sum(axis=1, keepdims=True)

    options = {"num_dice": 3}
    network, variant = policy(options), configure("liars_dice", **options)
    mine = Mine("liars_dice", options, network.layers)
    round_, streams = Round(variant, (3, 3)), new_streams(0, ROWS_AT_ONCE)[None]
    for agent in (mine, Likeliest(network), make_agent("ppo:greedy=true"), lambda seen, masks: masks):
        assert isinstance(source_of(round_, 0, asked(agent, variant), 0, streams), AgentSource)
    for agent in (network, make_agent("ppo")):
        assert isinstance(source_of(round_, 0, asked(agent, variant), 0, streams), networks.Networked)


@pytest.mark.thorough
def test_hands_that_hardly_ever_come_to_a_node_are_left_out(monkeypatch):
    network = policy({"num_dice": 3}, steepness=9.0)
    round_ = Round(network.variant, (3, 3))
    usual, entries = networks.Networked.write, []

    def write(self, asking):
        entries[-1] += len(asking.calls)
        usual(self, asking)

    monkeypatch.setattr(networks.Networked, "write", write)
    values = []
    for neglected in (0.0, networks.NEGLECTED, 0.01):
        entries.append(0)
        monkeypatch.setattr(networks.Networked, "neglected", neglected)
        source = source_of(round_, 1, network, 1, new_streams(1, ROWS_AT_ONCE)[None])
        values.append(respond(round_, 1, source)[0])
    assert 0 <= values[0] - values[1] < networks.NEGLECTED
    assert 1e-9 < values[0] - values[2] < 0.01
    assert entries[0] == round_.information_sets(1)
    assert entries[2] < entries[1] < 0.95 * entries[0]
