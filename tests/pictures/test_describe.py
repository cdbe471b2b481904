"""Observations in words: one position of each game, described block by block."""

import numpy as np
import pytest

from dice_envs import Batch, configure, describe, layout
from dice_envs.core.view import Block, offsets
from dice_envs.games.fatestones import DIE_OF_CODE, GONE
from dice_envs.games.score_dice import DROPPED, HELD, OUT, PLAYED


def read(game, seat, fields, **options):
    """The description of a seat's observation where fields of a state hold these values, and other entries of arrays 0."""
    batch = Batch(game, 1, seed=1, **options)
    for name, values in fields.items():
        field = batch.states[name]
        field[...] = 0
        field[0, *map(slice, np.shape(values))] = values
    described = describe(batch.variant, batch.observe(np.array([seat]))[0])
    return " | ".join(f"{reading.name}: {reading.text}" for reading in described)


def test_liars_dice():
    fields = {"counts": [[0, 2, 0], [1, 0, 1], [0, 0, 1]], "dice": [2, 2, 1], "in_play": 5, "seat": 2}
    fields |= {"bids": [1, 5], "num_bids": 2, "bid": 5, "bids_shown": [0, 2, 0], "bids_honest": [0, 1, 0]}
    options = {"num_players": 3, "num_dice": 2, "num_faces": 3, "raise_rule": "either", "starter": "first"}
    assert read("liars_dice", 1, fields, **options) == (
        "own_dice: face 1: 1, face 3: 1 | dice_left: you: 2, seat +1: 1, seat +2: 2 | bids: you 2 x 3, seat +2 1 x 2 | "
        "to_move: seat +1 | bid_face: face 3 | bid_quantity: 2 | "
        "bid_chance: 0.7037 | "  # one of the three other dice: 1 − (2/3)³
        "past_bids: you honest: 0.5, you seen: 0.2, seat +1 honest: 0.5, seat +2 honest: 0.5"
    )


def test_fatestones():
    fields = {"hands": [[DIE_OF_CODE[111666], GONE], [DIE_OF_CODE[222555], GONE]], "left": 1}
    seen = "own_dice: die 0 face 2: 3, die 0 face 5: 3 | other_dice: die 0 face 1: 3, die 0 face 6: 3"
    assert read("fatestones", 1, fields, hand_size=2) == seen


def test_score_dice():
    status = [[HELD, PLAYED, DROPPED], [PLAYED, HELD, OUT]]
    fields = {"faces": [[5, 2, 1], [2, 4, 0]], "status": status, "shown": [[1], [0]], "column": 1, "score": 1}
    options = {"pool_a": (8, 6, 4), "pool_b": (6, 6), "ties": "reroll"}
    assert read("score_dice", 0, {**fields, "score": 0}, **options) == (
        "own_faces: die 0: 5 | own_sizes: die 0: 8 | other_sizes: die 1: 6 | other_faces: none | other_dropped: none | "
        "own_tied: die 1 | other_tied: die 0 | columns: column 0 own: 2, column 0 other: 2 | score: 0 | is_a: yes"
    )
    assert read("score_dice", 1, fields, **options, open_hands=True) == (
        "own_faces: die 1: 4 | own_sizes: die 1: 6 | other_sizes: die 0: 8 | other_faces: die 0: 5 | other_dropped: die 2: 1 | "
        "own_tied: die 0 | other_tied: die 1 | columns: column 0 own: 2, column 0 other: 2 | score: -1 | is_a: no"
    )


def test_shakes():
    fields = {"treated": [2, 0, 3], "saved": [1, 0, 0], "patients": 5}
    fields |= {"strength": [4, 0, 0], "opener": 0, "spoken": 2, "seat": 2}
    table = "treated: you: 3, seat +1: 2 | saved: seat +1: 1 | kept: seat +1: 4 | spoken: seat +1, seat +2 | to_move: you"
    assert read("shakes", 2, fields) == f"{table} | left: 7"
    assert read("shakes", 2, fields, variation="competitive") == f"{table} | left: 195"
    physician = "treated: treatment 0: 2, treatment 2: 3 | saved: treatment 0: 1 | left: 7"
    assert read("shakes", 0, {**fields, "seat": 0}, mode="physician") == physician


def test_thirties():
    fields = {"counts": [1, 0, 2], "aside": [0, 1, 2], "thrown": 3, "score": 8, "round": 2, "points": [7, 0, 30], "seat": 1}
    dice = (
        "on_table: face 1: 1, face 3: 2 | aside: face 2: 1, face 3: 2 | each_die: die 0 shows 1, die 1 shows 3, die 2 shows 3"
    )
    alone = f"{dice} | thrown: 3 | score: 8"
    table = f"{alone} | to_move: seat +1 | place: 0 | points: you: 7, seat +2: 30 | round: 2"
    assert read("thirties", 0, fields, num_players=3) == table
    assert read("thirties", 0, {**fields, "seat": 0}, num_players=1) == alone


def test_text_and_layout():
    variant = configure("shakes", mode="physician", num_players=2)
    view = Batch(variant, 1, seed=1).observe()[0]
    assert str(describe(variant, view)) == "treated  none\nsaved    none\nleft     12"
    assert layout(variant).splitlines() == [
        "0 … 1  treated  patients treated / num_patients",
        "2 … 3  saved    patients saved / num_patients",
        "4      left     patients left / num_patients",
    ]
    assert layout("shakes").count("\n") == 5


def test_a_number_beyond_the_precision_of_an_observation_reads_as_infinite():
    variant = configure("thirties")
    view = Batch(variant, 1, seed=1).observe()[0]
    view[54] = 1
    assert describe(variant, view)[7].text == "you: inf"


def test_offsets_count_absent_blocks_as_empty():
    blocks = Block("one", 3, "three"), Block("none", 0, "absent"), Block("two", 2, "two")
    assert offsets(blocks) == (0, 3, 3)


@pytest.mark.parametrize(
    ("observation", "words"),
    [
        (np.zeros(3), r"must have shape \(36,\), not \(3,\)"),
        ("dice", "observation must be 36 numbers, not 'dice'"),
        (np.zeros(36, "m8[ns]"), "observation must be 36 numbers, not array"),
        (np.full(36, 2), r"observation must lie in \[0, 1\], not "),
        (np.full(36, np.nan), r"observation must lie in \[0, 1\], not "),
    ],
    ids=["short", "words", "time", "large", "nan"],
)
def test_what_is_no_observation_is_refused(observation, words):
    with pytest.raises(ValueError, match=words):
        describe("fatestones", observation)
