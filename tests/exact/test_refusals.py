"""What has no exact answer, or takes too much to compute, is refused with the reason."""

import pytest

from dice_envs import configure, measure, response_values
from dice_envs.games.liars_dice.exact.solver import OutOfTimeError, solve
from tests.support.awkward import Jitters
from tests.support.policies import uniform

FOURS = {"pool_a": (4, 4), "pool_b": (4, 4)}
MEASURES = [
    ("liars_dice", "random", {"num_dice": 3, "rules": "openspiel"}, "num_dice=3 with num_faces=6 .* makes a round of about 1,"),
    ("liars_dice", "random", {"num_dice": 2, "reward": "dice"}, "reward must be 'win' for an exact measure, not 'dice'"),
    ("liars_dice", "random", {"num_dice": 6, "num_faces": 8, "raise_rule": "either"}, "10,000,000,000 at most are allowed"),
    ("liars_dice", "random", {"num_players": 6, "num_dice": 6}, "num_players=6 with num_dice=6.* hours; 10,000,000,000"),
    ("liars_dice", "random", {"num_players": 3, "num_dice": 1, "reward": "dice"}, "reward must be 'win'"),
    ("liars_dice", "mcts:10", {"num_players": 3, "num_dice": 1}, "the answers of mcts:10 are random"),
    ("liars_dice", "random", {"num_players": 3, "num_dice": 1, "against": ["random"]}, "against must name 2 agents"),
    ("liars_dice", "random", {"num_players": 3, "num_dice": 1, "against": Jitters}, "against must name 2 agents, .* <class"),
    ("liars_dice", "random", {"num_players": 3, "num_dice": 1, "against": ["random", "mcts:10"]}, "of mcts:10 are random"),
    ("fatestones", "random", {"against": ["random"]}, "against must be left out"),
    ("fatestones", "random", {"sample": 1}, "sample must be at least 2 draws, not 1"),
    ("score_dice", "random", {"pool_a": (20,) * 24, "pool_b": (20,) * 24}, "has up to 2,204,615,430,518,470 situations"),
    ("score_dice", "random", {"pool_a": (12, 10, 8, 6, 4), "pool_b": (12, 10, 8, 6, 4), "ties": "reroll"}, "at most 250,000"),
    ("score_dice", "random", {**FOURS, "sample": 1}, "sample must be at least 2 games, not 1"),
    ("shakes", "random", {"mode": "maesters", "variation": "competitive"}, "variation must be 'cooperative' for an exact"),
    ("shakes", "random", {"num_players": 6, "num_patients": 40}, r"num_patients=40 with num_players=6 .* [\d,]+ tallies"),
    ("shakes", "dogmatic", {}, "dogmatic is a maester"),
    ("shakes", "ppo", {"open_efficacies": True}, "ppo has no policy in the package for shakes"),
    ("shakes", uniform, {"num_players": 6, "sample": 10}, "sample must be a whole number from 100 to 100000000, not 10"),
    ("thirties", "random", {"num_players": 2}, "num_players must be 1 for an exact measure, not 2: optimal play of the table"),
    ("thirties", "random", {"num_faces": 2, "target": 3, "goal": "optimal"}, "'optimal' with num_faces=2: .* infinite"),
    ("thirties", "nobody", {}, "unknown agent 'nobody'"),
    ("thirties", 5, {}, "an agent is a spec"),
    ("thirties", "random", {"sample": 0}, "sample must be a whole number from 1"),
    ("thirties", "random", {"seed": -1}, "seed must be a whole number"),
    ("thirties", lambda observations, masks: masks / 7.0, {}, "must sum to 1"),
]
VALUES = [
    ("liars_dice", "numbers", {"num_players": 3}, "num_players must be 2 for the value of a choice, not 3"),
    ("liars_dice", "numbers", {"num_dice": 2, "reward": "dice"}, "reward must be 'win' for the value of a choice, not 'dice'"),
    ("liars_dice", "numbers", {"num_dice": 6}, "250,000,000 at most are allowed for the value of a choice"),
    ("liars_dice", "reader", {"num_dice": 2}, "past rounds matter to reader: the value of a choice is known for agents"),
    ("liars_dice", Jitters(1.0), {"num_dice": 1}, "are random: the value of a choice is known for agents whose"),
    ("liars_dice", "adaptive", {"num_dice": 1}, "adaptive remembers past games"),
    ("thirties", "random", {"num_players": 2}, "num_players must be 1 for the values of choices, not 2"),
    ("fatestones", "random", {}, "opponent must be nash"),
    ("score_dice", "score_response", FOURS, "nash, random, shuffled or highest .*, not score_response"),
    ("score_dice", "nash", {"ties": "reroll"}, "ties must be 'none' or 'a'"),
    ("score_dice", "nash", {"pool_a": (6,) * 13, "pool_b": (6,) * 13}, "at most 12 dice"),
    ("score_dice", "highest", {"pool_a": (20,) * 9, "pool_b": (20,) * 9}, "too large"),
    ("shakes", "random", {"mode": "maesters", "variation": "competitive"}, 'needs variation="cooperative"'),
]


@pytest.mark.parametrize(
    ("find", "game", "agent", "options", "words"),
    [*((measure, *row) for row in MEASURES), *((response_values, *row) for row in VALUES)],
)
def test_what_cannot_be_measured_or_valued_is_refused(find, game, agent, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        find(game, agent, **options)


ALL_DICE = {"num_players": 6, "num_dice": 6, "raise_rule": "either"}
SOLUTIONS = [
    ({"reward": "dice"}, {}, "reward must be 'win' for optimal play, not 'dice'"),
    ({"num_dice": 3, "raise_rule": "either"}, {}, "num_dice=3 with num_faces=6 for 2 players takes .* GiB of memory"),
    ({"num_dice": 6, "raise_rule": "either", "num_faces": 8}, {}, "makes a round of .* public nodes"),
    ({"num_dice": 1}, {"precision": 0}, "precision"),
    ({"num_dice": 1}, {"threads": 0}, "threads"),
    ({"num_dice": 1}, {"seconds": 0}, "seconds must be above 0, not 0"),
    ({"num_players": 3, "num_dice": 1, "reward": "dice"}, {}, "reward must be 'win' for optimal play, not 'dice'"),
    (ALL_DICE, {}, r"num_dice=\(6, 6, 6, 6, 6, 6\) .* makes a round of .* public nodes"),
    ({"num_players": 3, "num_dice": 1}, {"threads": 2}, "threads and workers elsewhere are for two players"),
    ({"num_players": 3, "num_dice": 3}, {"seconds": 0.01}, "num_dice=3 .* takes at least about .* s, and 0.01 s are given"),
]


@pytest.mark.parametrize(("options", "arguments", "words"), SOLUTIONS)
def test_what_cannot_be_solved_is_refused(options, arguments, words):
    with pytest.raises((ValueError, OutOfTimeError), match=words):
        solve(configure("liars_dice", **options), **arguments)
