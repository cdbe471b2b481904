"""Tables of Liar's Dice: deviation gains, coalitions and shares agree with a plain program, OpenSpiel and play."""

import numpy as np
import pytest

from dice_envs import configure, measure
from dice_envs.exact import BEST_RESPONSE_WINS, DEVIATION_GAIN, asked
from dice_envs.experiments.arena import exact_tournament, tournament
from dice_envs.games.liars_dice.exact import measures as module
from dice_envs.games.liars_dice.exact import winning_shares
from dice_envs.games.liars_dice.exact.shares import ALONE, PLAYS, RESPONDS, SeatedAgents, mean_shares, shares_of
from tests.support.awkward import Mixed
from tests.support.liars_dice_tables import Plain, of_agent, plain_of
from tests.support.policies import uneven
from tests.support.subsets import covering

GAMES = {
    "article": {"num_players": 3, "num_dice": 1},
    "article, wild": {"num_players": 3, "num_dice": 1, "wild": "ones"},
    "either": {"num_players": 3, "num_dice": 1, "num_faces": 3, "raise_rule": "either"},
    "either, wild": {"num_players": 3, "num_dice": 1, "num_faces": 3, "raise_rule": "either", "wild": "highest"},
    "perudo": {"num_players": 3, "num_dice": 1, "num_faces": 3, "raise_rule": "perudo", "wild": "ones"},
    "unequal": {"num_players": 3, "num_dice": (2, 1, 1), "num_faces": 3},
    "one round": {"num_players": 3, "num_dice": (1, 2, 1), "num_faces": 2, "rounds": "single", "starter": "first"},
    "four": {"num_players": 4, "num_dice": 1, "num_faces": 2, "raise_rule": "either"},
}
AGENTS = {"random": "random", "numbers": "numbers:bluff=0.25", "uneven": uneven}
FORGETFUL = {"past_rounds": False}  # so that `uneven` does not observe past rounds
PARTS = ("plays", "responds", "alone")


def values(measures):
    return {each.name: each.value for each in measures.measures}


@covering(("agent", "game"), AGENTS, GAMES, most=3)
def test_all_shares_agree_with_a_plain_program(game, agent):
    variant = configure("liars_dice", **GAMES[game], **FORGETFUL)
    player = asked(AGENTS[agent], variant)
    plain, seated = Plain(variant, of_agent(variant, player)), SeatedAgents([player])
    known = shares_of(variant, seated, (PLAYS, RESPONDS, ALONE))
    assert seated.seats.alike
    first = max(known, key=lambda table: sum(table.dice))
    assert len(known) > 1 or variant.options.rounds == "single"
    for table in {first, *list(known)[:4]}:
        for which in PARTS:
            expected = [plain.share(which, table.dice, place) if number else 0.0 for place, number in enumerate(table.dice)]
            assert getattr(known[table], which) == pytest.approx(expected, abs=1e-9), (table, which)


@pytest.mark.thorough
@pytest.mark.library("open_spiel", "deviation gains at a table of three", game="liars_dice")
@pytest.mark.parametrize("agent", ["random", "numbers:bluff=0.25"])
@pytest.mark.parametrize(
    "options",
    [{"raise_rule": "either"}, {"wild": "highest"}, {"rounds": "elimination"}, {"raise_rule": "perudo", "wild": "ones"}],
)
def test_openspiel_finds_the_same_gains(options, agent):
    """Its NashConv is the sum of all players' gains, in returns: -1 to 1/2 for one round, -1/2 to 1 for a game."""
    exploitability = pytest.importorskip("open_spiel.python.algorithms.exploitability")
    from dice_envs.envs.openspiel import AgentPolicy, openspiel_game

    options = {"num_players": 3, "num_dice": 1, "num_faces": 2, "rounds": "single", "starter": "first", **options}
    game = openspiel_game("liars_dice", **options)
    theirs = exploitability.nash_conv(game, AgentPolicy(game, agent), use_cpp_br=False)
    returns = 3 if options["rounds"] == "single" else 3 / 2  # of a whole share of wins
    ours = values(measure("liars_dice", agent, **options))[DEVIATION_GAIN]
    assert theirs == pytest.approx(3 * returns * ours, abs=1e-9)


def test_sizes_are_those_of_all_nodes_and_hands(monkeypatch):
    """Every set of the first seven of eight bids is a node with a choice. Of two faces, n dice have n + 1 hands."""
    options = {"num_players": 3, "num_dice": (1, 1, 2), "num_faces": 2, "raise_rule": "either"}
    options |= {"rounds": "single", "starter": "first"}
    for most, taken in ((2**7 * (4 + 4 + 3), True), (2**7 * (4 + 4 + 3) - 1, False)):
        monkeypatch.setattr(module, "MOST_OF_COALITION", most)
        assert ("taken by a coalition" in values(measure("liars_dice", "random", **options))) == taken
    monkeypatch.setattr(module, "MOST_VALUES", 0)
    size = 2**7 * (2 + 2 + 3)
    with pytest.raises(ValueError, match=f"makes at least {size} values .* {size / module.VALUES_A_SECOND / 3600:.3g} hours"):
        measure("liars_dice", "random", **options)


def test_two_players_have_the_figures_of_their_own_walk():
    variant = configure("liars_dice", num_dice=2)
    numbers = SeatedAgents([asked("numbers:bluff=0.25", variant)])
    shares = mean_shares(variant, numbers, shares_of(variant, numbers, (PLAYS, RESPONDS, ALONE)))
    expected = values(measure(variant, "numbers:bluff=0.25"))[BEST_RESPONSE_WINS]
    assert shares.responds.mean() == pytest.approx(expected, abs=1e-12)
    assert shares.alone.mean() == pytest.approx(1 - expected, abs=1e-12)  # a coalition of one


@pytest.mark.thorough
def test_gains_at_a_table_of_different_agents_agree_with_a_plain_program():
    """Each responds to the other two in turn."""
    variant = configure("liars_dice", num_players=3, num_dice=1, num_faces=3, **FORGETFUL)
    agents = [asked(each, variant) for each in AGENTS.values()]
    found = measure(variant, "random", against=[*AGENTS.values()][1:]).measures
    plain = plain_of(variant, *agents)
    plays, responds = ([plain.mean(which, seat) for seat in range(3)] for which in PARTS[:2])
    gains = [each.value for each in found if each.name.startswith(DEVIATION_GAIN)]
    assert gains == pytest.approx(np.subtract(responds, plays).tolist(), abs=1e-9)
    assert winning_shares(variant, agents) == pytest.approx(plays, abs=1e-9)


@pytest.mark.thorough
def test_agents_that_play_otherwise_in_other_seats_are_asked_in_each():
    variant, agent = configure("liars_dice", num_players=3, num_dice=1, num_faces=3), Mixed(lambda turn: turn.seats == 0)
    found, plain = values(measure(variant, agent)), plain_of(variant, *[agent] * 3)
    responds = np.mean([plain.mean("responds", seat) for seat in range(3)])
    assert found[BEST_RESPONSE_WINS] == pytest.approx(responds, abs=1e-9)
    assert found[DEVIATION_GAIN] == pytest.approx(responds - 1 / 3, abs=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "agents"),
    [
        ({"num_players": 3, "num_dice": 2}, ["random", "numbers", "numbers:bluff=0.5"]),
        ({"num_players": 4, "num_dice": (1, 2, 1, 2), "starter": "first"}, ["numbers", "random", "random", "random"]),
        ({"num_players": 3, "num_dice": 1, "rounds": "single", "wild": "ones"}, ["numbers", "numbers", "random"]),
    ],
    ids=["game", "unequal", "round"],
)
def test_played_tables_agree_with_exact_ones(options, agents):
    variant = configure("liars_dice", **options)
    exact, played = exact_tournament(variant, agents), tournament(variant, agents, 1_000_000, seed=1)
    for expected, found in zip(exact.meetings, played.meetings, strict=True):
        assert found.win_rate == pytest.approx(expected.win_rate, abs=2.5 * found.ci95)
        assert found.mean_return == pytest.approx(expected.mean_return, abs=2.5 * found.mean_return_ci95)
    assert sum(each.win_rate for each in exact.meetings) == pytest.approx(1)
    assert [each.win_rate for each in exact.copies] == pytest.approx([each.win_rate for each in played.copies], abs=0.003)
