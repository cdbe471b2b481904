"""Exact measures of Liar's Dice, compared with a plain program and with known values."""

import contextlib
import dataclasses

import numpy as np
import pytest

from dice_envs import Uniform, configure, measure
from dice_envs.agent import Promises
from dice_envs.agent.specs import for_game
from dice_envs.agents.liars_dice import Numbers
from dice_envs.exact import Effort, asked
from dice_envs.exact.agents import RandomAnswers, Sampled, ask_again, probe
from dice_envs.games.liars_dice.exact import measures, moves, shares, sources, walk
from dice_envs.games.liars_dice.exact.round import Round
from tests.support.awkward import FAMILY, Mixed
from tests.support.liars_dice_games import exploitability, winning_probability
from tests.support.liars_dice_tables import plain_of
from tests.support.policies import ActsOnly, Counted, uneven, uniform
from tests.support.progress import progress
from tests.support.subsets import few
from tests.support.variants import SOLVABLE_PERUDO

BY_SEAT = [Mixed(lambda turn, seat=seat: turn.seats == seat) for seat in range(2)]  # at random in one seat, else the lowest


def test_an_agent_that_plays_differently_by_seat_is_asked_in_both():
    for agent, words in ((BY_SEAT[0], "24 information sets"), ("random", "12 information sets")):
        assert words in measure("liars_dice", agent, num_dice=1, num_faces=3).measures[0].note


@pytest.mark.thorough
def test_what_observations_tell_is_compared_where_an_agent_declares_to_read_nothing_else():
    variant = configure("liars_dice", num_dice=1, num_faces=3)
    declared, other = Counted("random", observes_only=True), Counted("random")
    assert exploitability(variant, declared) == exploitability(variant, other)
    assert other.count == 2 * declared.count


# --- a plain second implementation ---------------------------------------------------------------------------------


PLAIN = [
    {"num_dice": (1, 2), "num_faces": 2, "raise_rule": "either", "wild": "highest"},
    {"num_dice": 1, "num_faces": 3},
    {"num_dice": 2, "num_faces": 3},
    {"num_dice": (2, 1), "num_faces": 3, "wild": "ones", "starter": "first"},
    {"num_dice": 2, "num_faces": 2, "raise_rule": "either", "rounds": "single"},
    {"num_dice": 1, "num_faces": 3, "raise_rule": "perudo", "wild": "ones"},
    {"num_dice": 2, "num_faces": 2, **SOLVABLE_PERUDO},
    {"num_dice": (2, 1), "num_faces": 3, **SOLVABLE_PERUDO, "raise_rule": "quantity", "wild": "highest"},
]


@few(1, "options", PLAIN)
def test_a_plain_implementation_agrees_on_best_responses(options):
    variant = configure("liars_dice", past_rounds=False, **options)
    for spec in ("random", "numbers:bluff=0.5", uneven, *BY_SEAT):
        agent = asked(spec, variant)
        wins = [plain_of(variant, agent, agent).mean("responds", seat) for seat in range(2)]
        assert (1 + exploitability(variant, agent)) / 2 == pytest.approx(np.mean(wins), abs=1e-12)
        assert measure(variant, spec).measures[1].value == pytest.approx(np.mean(wins), abs=1e-12)


@few(1, "options", PLAIN)
def test_a_plain_implementation_agrees_on_two_agents(options):
    variant = configure("liars_dice", past_rounds=False, **options)
    for pair in [
        ("random", "numbers:bluff=0.5"),
        (uneven, "random"),
        ("numbers:bluff=1", uneven),
        (BY_SEAT[0], uneven),
        BY_SEAT,
    ]:
        agents = [asked(each, variant) for each in pair]
        wins = [plain_of(variant, *seated).mean("plays", seat) for seat, seated in enumerate((agents, agents[::-1]))]
        assert winning_probability(variant, *pair) == pytest.approx(np.mean(wins), abs=1e-12)


# Wins of best responses to the agent of the text, mean over who begins, from an independent program.
NUMBERS = [(2, 0, 0.85761), (2, 1, 0.94205), (3, 0, 0.88621), (3, 1, 0.96305)]
FIVE_DICE = [(5, bluff, wins) for bluff, wins in ((0, 0.952), (0.25, 0.957), (0.75, 0.975), (1, 0.984))]
SLOW = [pytest.param(*row, marks=pytest.mark.slow) for row in FIVE_DICE]


@few(1, ("dice", "bluff", "wins"), [*NUMBERS, *SLOW])
def test_best_responses_in_whole_games(dice, bluff, wins):
    found = measure("liars_dice", f"numbers:bluff={bluff}", num_dice=dice).measures
    assert found[1].value == pytest.approx(wins, abs=5e-6 if dice < 5 else 5e-4)
    assert found[0].value == pytest.approx(2 * found[1].value - 1)
    assert {each.error for each in found} == {0}


@pytest.mark.thorough
def test_splitting_a_walk_and_forgetting_the_tables_change_nothing(monkeypatch):
    """A walk in parts, and an agent asked at every information set although only the last bid matters to it."""

    def outcome(spec):
        variant = configure("liars_dice", num_dice=3, num_faces=4, wild="ones")
        return exploitability(variant, asked(spec, variant)), winning_probability(variant, spec, "numbers:bluff=0.3")

    specs = ("random", "numbers:bluff=0.5", "numbers:preset=article,bluff=0.7,threshold=0.3")
    usual = {spec: outcome(spec) for spec in specs}
    monkeypatch.setattr(moves, "HEAVY", 3000)
    monkeypatch.setattr(sources, "ROWS_AT_ONCE", 1000)
    for spec, expected in usual.items():
        assert outcome(spec) == pytest.approx(expected, abs=1e-12)
    for agent in (Uniform, Numbers):
        monkeypatch.setattr(agent, "promises", Promises())
    for spec, expected in usual.items():
        assert outcome(spec) == pytest.approx(expected, abs=1e-12)


def test_progress_ends_where_it_should():
    for options in ({"num_dice": 2}, {"num_dice": (2, 1), "rounds": "single"}, {"num_dice": 2, "starter": "first"}):
        variant = configure("liars_dice", **options)
        for spec in ("numbers", "random"):
            with progress() as told:
                measures.measure(variant, asked(spec, variant), Effort())
            assert sum(told) == pytest.approx(1)
            with progress() as told:
                winning_probability(variant, spec, "numbers")
            assert sum(told) == pytest.approx(1)


@pytest.mark.thorough
def test_an_agent_to_whom_past_rounds_matter():
    """It is measured as it plays before it has seen a call, and a note says so. Two such agents are not computed."""
    words = "neither an upper nor a lower bound"
    for spec, matter in (("reader", True), ("reader:learn=false", False), ("numbers", False)):
        assert (words in measure("liars_dice", spec, num_dice=3).measures[0].note) == matter
        assert words not in measure("liars_dice", spec, num_dice=3, rounds="single").measures[0].note
        if matter:
            with pytest.raises(ValueError, match="past rounds matter to reader: an exact result of two agents is known for"):
                winning_probability(configure("liars_dice", num_dice=3), "numbers", spec)
    for past_rounds in (True, False):
        variant = configure("liars_dice", num_dice=2, num_faces=3, past_rounds=past_rounds)
        assert (words in measure(variant, uneven).measures[0].note) == past_rounds


@few(1, "num_dice", [2, 3, (2, 3)])
def test_that_past_rounds_matter_is_no_matter_of_luck(num_dice):
    variant = configure("liars_dice", num_dice=num_dice)
    reader = asked("reader", variant)
    assert [sources.past_rounds_matter(variant, reader, seed) for seed in range(10)] == [True] * 10


@pytest.mark.thorough
def test_what_is_known_of_past_rounds():
    """True: a difference was found. False: there can be none. None: none was found."""

    two_dice = configure("liars_dice", num_dice=2)
    assert sources.past_rounds_matter(two_dice, asked(uniform, two_dice)) is None
    assert "it does not declare that they never do" in measure(two_dice, uniform).measures[0].note
    drawing = asked(FAMILY["draws by its own generator, 0.01"].make(), two_dice)
    assert sources.past_rounds_matter(two_dice, drawing) is None
    with contextlib.suppress(RandomAnswers):
        probe(two_dice, drawing)
    with pytest.raises(RandomAnswers):
        ask_again(two_dice, drawing)
    assert sources.note_on_past_rounds(two_dice, Sampled(drawing)).endswith("is not known, since its answers are random")
    blind = configure("liars_dice", num_dice=2, past_rounds=False)
    assert sources.past_rounds_matter(blind, asked(uniform, blind)) is False, "it does not see them"
    for options in ({"num_dice": 1}, {"num_dice": 2, "rounds": "single"}):
        variant = configure("liars_dice", **options)
        assert sources.past_rounds_matter(variant, asked("reader", variant)) is False, "there are none"


@few(2, "spec", sorted(for_game("liars_dice")))
def test_agents_that_declare_that_past_rounds_do_not_matter_keep_to_it(spec, monkeypatch):
    variant = configure("liars_dice", num_dice=2)
    try:
        player = asked(spec, variant)
    except ValueError:
        pytest.skip("plays other variants")
    if not player.promises.memoryless and player.promises.looks_back:
        pytest.skip("declares nothing")
    player.promises = dataclasses.replace(player.promises, memoryless=False, looks_back=True)
    assert sources.past_rounds_matter(variant, player) is None


def test_a_round_that_one_would_rather_lose(monkeypatch):
    """No agent of this game causes this, so the check is tested with made-up values."""
    variant = configure("liars_dice", num_dice=2)

    class Walk:
        """The response wins where the agent starts with one die each, and where it starts with one against two."""

        def __init__(self, round_, sources, coalitions, *given):
            self.won = (coalitions[0].members, round_.dice) in (((1,), (1, 1)), ((0,), (1, 2)))

        def values(self):
            return np.array([[float(self.won)]])

    monkeypatch.setattr(shares, "Walk", Walk)
    with pytest.raises(ValueError, match=r"with 2 dice against the agent's 2 one would rather lose the round than win it"):
        shares.response_wins(variant, asked("random", variant), 0)


@pytest.mark.thorough
def test_two_agents_that_are_not_computed():
    def chances(observations, masks):
        drawn = np.random.default_rng().random(masks.shape) * masks
        return drawn / drawn.sum(axis=1, keepdims=True)

    one_die = configure("liars_dice", num_dice=1)

    with pytest.raises(ValueError, match="ActsOnly states no probabilities and does not promise deterministic=True: an exact"):
        winning_probability(one_die, "numbers", ActsOnly("reader"))
    spec = "numbers:threshold=0.5"
    promises = ActsOnly(spec, deterministic=True)
    assert winning_probability(one_die, "random", promises) == pytest.approx(winning_probability(one_die, "random", spec))
    for pair in (("numbers", chances), (ActsOnly("random"), "numbers")):
        with pytest.raises(ValueError, match="are random: an exact result of two agents is known for"):
            winning_probability(one_die, *pair)
    with pytest.raises(ValueError, match="num_players must be 2 for an exact result of two agents, not 3"):
        winning_probability(configure("liars_dice", num_players=3), "random", "random")
    assert winning_probability(one_die, "numbers", "numbers") == pytest.approx(0.5)


def test_sizes_of_the_rounds():
    """Information sets with a choice, compared with an independent program and with the largest academic benchmark."""
    for dice, sets in ((2, 3_213), (3, 145_040)):
        played = Round(configure("liars_dice", num_dice=dice), (dice, dice))
        assert sum(played.information_sets(player) for player in range(2)) == sets
    openspiel = configure("liars_dice", rules="openspiel", num_dice=2, num_faces=5)
    played = Round(openspiel, (2, 2))
    assert sum(played.information_sets(player) for player in range(2)) == 2**19 * 15
    five = Round(configure("liars_dice"), (5, 5))
    assert 185_000_000 < sum(five.information_sets(player) for player in range(2)) < shares.MOST_INFORMATION_SETS


@few(1, "options", [{"num_dice": (3, 2), "num_faces": 4}, {"num_dice": 2, "num_faces": 3, "rules": "openspiel"}])
def test_a_player_who_ignores_its_dice_is_met_once_for_each_bid(options, monkeypatch):
    """Nodes with the same last bid are merged; the values are those of all nodes."""
    variant = configure("liars_dice", **options)

    class Caller(Uniform):
        """Calls three times as often as it makes any raise."""

        def probabilities(self, turn):
            chances = super().probabilities(turn)
            chances[:, -1] *= 3
            return chances / chances.sum(axis=1, keepdims=True)

    def outcome(agent):
        with progress() as told:
            value = measures.measure(variant, asked(agent, variant), Effort())
        return [each.value for each in value], sum(told)

    merged = [outcome(agent) for agent in (Uniform(), Caller())]
    monkeypatch.setattr(walk.Walk, "_merged", lambda *given: None)
    for (value, told), agent in zip(merged, (Uniform(), Caller()), strict=True):
        everywhere, _ = outcome(agent)
        assert value == pytest.approx(everywhere, abs=1e-12)
        assert told == pytest.approx(1)
    assert merged[0] != merged[1]
