"""Exact measures of Liar's Dice: against OpenSpiel, against play, against what is known."""

import functools

import numpy as np
import pytest

import agents
from dice_envs import configure, measure
from dice_envs.exact.liars_dice import MOST_INFORMATION_SETS, Responder, policy_of, rounds_of
from experiments.arena import play_table

pyspiel = pytest.importorskip("pyspiel")
from open_spiel.python import policy as peer_policy  # noqa: E402
from open_spiel.python.algorithms import cfr  # noqa: E402
from open_spiel.python.algorithms import exploitability as peer  # noqa: E402

SIZES = [(1, 6), (2, 3)]  # dice each and faces, under OpenSpiel's rules


@functools.cache
def openspiel_game(num_dice, num_faces):
    return pyspiel.load_game(f"liars_dice(players=2,numdice={num_dice},dice_sides={num_faces})")


def as_function(tabular, num_dice, num_faces):
    """An OpenSpiel policy as a function of our observations: the state's string is made from own dice and bids."""
    game = openspiel_game(num_dice, num_faces)
    bids = 2 * num_dice * num_faces

    def chances(observations, masks):
        out = np.zeros(masks.shape)
        for row, seen in enumerate(observations):
            counts = np.rint(seen[:num_faces] * num_dice).astype(int)
            dice = [face for face in range(num_faces) for _ in range(counts[face])]
            by_seat = seen[num_faces + 2 :][: 2 * bids].reshape(2, bids)
            made = np.flatnonzero(by_seat.any(axis=0)).tolist()
            state = game.new_initial_state()
            mover = len(made) % 2
            for place in range(2 * num_dice):  # seat 0's dice are dealt first
                state.apply_action(dice[place % num_dice] if place // num_dice == mover else 0)
            for bid in made:
                state.apply_action(bid)
            for action, chance in tabular.action_probabilities(state).items():
                out[row, action] = chance
        return out

    return chances


def random_tabular(num_dice, num_faces, seed):
    tabular = peer_policy.TabularPolicy(openspiel_game(num_dice, num_faces))
    rng = np.random.default_rng(seed)
    drawn = rng.exponential(size=tabular.action_probability_array.shape) ** 3 * (tabular.legal_actions_mask != 0)
    tabular.action_probability_array[:] = drawn / drawn.sum(axis=1, keepdims=True)
    return tabular


def agrees(tabular, num_dice, num_faces):
    ours = measure(
        "liars_dice", as_function(tabular, num_dice, num_faces), rules="openspiel", num_dice=num_dice, num_faces=num_faces
    )
    theirs = peer.nash_conv(openspiel_game(num_dice, num_faces), tabular) / 2
    assert ours.measures[0].value == pytest.approx(theirs, abs=1e-9)
    assert ours.measures[0].error == 0


@pytest.mark.parametrize(("num_dice", "num_faces"), [(1, 3), (2, 2)])
def test_random_policies_of_small_games_agree_with_openspiel(num_dice, num_faces):
    for seed in range(3):
        agrees(random_tabular(num_dice, num_faces, seed), num_dice, num_faces)


@pytest.mark.slow
@pytest.mark.parametrize(("num_dice", "num_faces"), SIZES)
def test_random_policies_agree_with_openspiel(num_dice, num_faces):
    for seed in range(2):  # OpenSpiel takes 20 seconds for each
        agrees(random_tabular(num_dice, num_faces, seed), num_dice, num_faces)


@pytest.mark.slow
@pytest.mark.parametrize(("num_dice", "num_faces"), SIZES)
def test_a_cfr_policy_agrees_with_openspiel(num_dice, num_faces):
    solver = cfr.CFRPlusSolver(openspiel_game(num_dice, num_faces))
    for _ in range(2):
        solver.evaluate_and_update_policy()
    agrees(solver.average_policy(), num_dice, num_faces)


def test_known_figures():
    assert measure("liars_dice", "random", rules="openspiel", num_dice=1).score == 0
    # What an independent program found of today's agent.
    numbers = measure("liars_dice", "numbers", rules="openspiel", num_dice=1).measures[0]
    assert numbers.value == pytest.approx(0.46, abs=0.005)


OPTIONS = [
    {"num_dice": 1},
    {"num_dice": 2, "num_faces": 3, "rounds": "single", "wild": "ones"},
    {"num_dice": (2, 1), "num_faces": 3, "rounds": "single", "raise_rule": "either", "wild": "highest", "starter": "first"},
    {"num_dice": (1, 3), "num_faces": 4, "rounds": "single"},
]


class Best:
    """Plays the response that the measure has found."""

    def __init__(self, variant, seat, against):
        self.variant, self.seat = variant, seat
        self.rounds = {}
        for played in rounds_of(variant):
            responder = Responder(variant, played, seat, policy_of(variant, played, 1 - seat, against))
            self.rounds[played.starter] = played, responder
        self.value = np.mean([responder.value for _, responder in self.rounds.values()])

    def act(self, turn):
        actions = turn.legal.argmax(axis=1)  # at the other seat, where its games do not count
        for i, state in enumerate(turn.states):
            if state["seat"] != self.seat:
                continue
            played, responder = self.rounds[int(state["starter"])]
            node = 0
            for bid in state["bids"][: state["num_bids"]]:
                children = played.first_child[node] + np.arange(played.num_children[node])
                node = int(children[played.bid[children] == bid][0])
            (hand,) = np.flatnonzero((played.hands[self.seat] == state["counts"][self.seat]).all(axis=1))
            chosen = responder.choice[node, hand]
            actions[i] = turn.params.call if chosen < 0 else played.bid[chosen]
        return actions


@pytest.mark.parametrize("options", OPTIONS)
def test_the_best_response_wins_what_it_is_said_to(options):
    """Played through the game's own kernels, from either seat."""
    variant = configure("liars_dice", **options)
    numbers, games = agents.make("numbers:bluff=0.5"), 8_000
    for seat in range(2):
        best = Best(variant, seat, numbers)
        players = [best, numbers] if seat == 0 else [numbers, best]
        returns = play_table(variant, players, games, 3)
        own = returns[::2, seat]  # in every second game each sits where it is listed
        error = own.std() / np.sqrt(len(own))
        assert own.mean() == pytest.approx(best.value, abs=5 * error)


def test_answers_instead_of_probabilities():
    """An agent that only acts: exactly if its answers never differ, else within its interval."""

    class Acts:
        def __init__(self, spec):
            self.agent = agents.make(spec)

        def act(self, turn):
            return self.agent.act(turn)

    options = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}
    for spec in ("numbers:threshold=0.5", "reader"):
        assert measure("liars_dice", Acts(spec), **options).measures == measure("liars_dice", spec, **options).measures
    for spec in ("random", "numbers:bluff=0.5"):
        (sampled, _), (exact, _) = (measure("liars_dice", each, **options).measures for each in (Acts(spec), spec))
        assert exact.error == 0
        assert 0 < sampled.error < 0.1
        assert sampled.value == pytest.approx(exact.value, abs=sampled.error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_players": 3}, "num_players must be 2 for an exact measure, not 3: with more players"),
        ({}, "rounds must be 'single' for an exact measure"),
        ({"rounds": "single"}, "num_dice=5 with num_faces=6 makes a round of about 784,"),
        ({"rounds": "single", "num_dice": 2, "reward": "dice"}, "reward must be 'win' for an exact measure, not 'dice'"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, words):
    with pytest.raises(ValueError, match=".") as caught:
        measure("liars_dice", "random", **options)
    assert words in str(caught.value)


def test_sizes_of_the_trees():
    """Public nodes of two, three and four dice each, as an independent program counted them."""
    for dice, nodes in ((2, 634), (3, 10_605), (4, 180_840)):
        played = rounds_of(configure("liars_dice", num_dice=dice, rounds="single"))[0]
        assert len(played.bid) == nodes
        assert sum(played.information_sets(seat) for seat in range(2)) <= MOST_INFORMATION_SETS
