"""A learner's turn: what long runs give, by their digests, and what an error leaves behind."""

import hashlib

import pytest

from dice_envs import Mixture, configure
from tests.support.policies import ActsOnly
from tests.support.turns import played

GAMES, TURNS = 12, 48
THREE = {"num_players": 3, "num_dice": 2}
PAIR, MAESTERS = {"num_players": 2}, {"mode": "maesters"}
LOSE, MIXED, SELF = {"illegal_action": "lose"}, {"self_play": 0.5}, {"self_play": 1.0}

# game, its options, opponents ("asked" before those whose kernel is hidden), arguments → digest
PINNED = [
    ("liars_dice", {}, ["numbers"], {}, "674902f52ecabf90"),
    ("liars_dice", {}, ["asked numbers"], {}, "674902f52ecabf90"),
    ("liars_dice", {"num_dice": 1}, ["numbers:bluff=0.5", "random", "reader"], MIXED, "ac433b7815c36169"),
    ("liars_dice", THREE, ["numbers", "asked random", "asked reader"], MIXED | {"seat": 1}, "bbcff0b08944bc52"),
    ("liars_dice", THREE, ["numbers", "random"], LOSE | MIXED, "a263949f87e6125d"),
    ("liars_dice", {"num_dice": 2}, ["random"], SELF, "8b8147854856b8c6"),
    ("liars_dice", {"num_dice": 2}, ["asked numbers", "random"], MIXED, "9220efe2697541ca"),
    ("liars_dice", {"num_dice": 2}, ["adaptive", "numbers"], {}, "39624bbf5fad23b8"),
    ("fatestones", {}, ["strongest", "random"], {"expected_rewards": True}, "373a75b13d33e2e2"),
    ("fatestones", {}, ["asked strongest"], SELF | {"expected_rewards": True}, "ace6a9efdff657f4"),
    ("fatestones", {}, ["asked strongest"], LOSE | {"seat": 0}, "8f180db2083f56a2"),
    ("score_dice", {}, ["highest", "shuffled"], MIXED | LOSE, "b19b2fcd3853faea"),
    ("score_dice", {"reward": "score"}, ["asked shuffled"], {}, "e53321bbe85d0d92"),
    ("shakes", MAESTERS, ["dogmatic", "argument", "ucb"], MIXED, "a764ce6e61ad6354"),
    ("shakes", MAESTERS, ["asked greedy", "ucb"], LOSE | {"expected_rewards": True}, "cc05d525e3fdfc8d"),
    ("shakes", {"mode": "physician"}, ["random"], SELF, "e45b2e1f49b432ec"),
    ("thirties", PAIR, ["thirties:sixes", "thirties:beginner"], {}, "2ca741e3ba7eef73"),
    ("thirties", PAIR, ["asked thirties:beginner"], MIXED, "138c1a5db7af9a73"),
    ("thirties", {"num_players": 1}, ["random"], LOSE, "3c6cb11da43712a8"),
]


def digest(name, options, opponents, arguments):
    made = [ActsOnly(spec.removeprefix("asked ")) if spec.startswith("asked ") else spec for spec in opponents]
    pool = made[0] if len(made) == 1 else Mixture(made)
    found = hashlib.sha256()
    for array in played(configure(name, **options), pool, GAMES, TURNS, **arguments):
        found.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


# Those in the fast tests; the others have too much to compile.
FAST = (0, 1, 10)
ROWS = [pytest.param(row, marks=() if k in FAST else pytest.mark.thorough) for k, row in enumerate(PINNED)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[-1]}")
@pytest.mark.filterwarnings("ignore:an illegal action")
def test_long_runs_give_the_same(row):
    assert digest(*row[:-1]) == row[-1]
