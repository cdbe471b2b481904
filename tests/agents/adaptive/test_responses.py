"""Best responses from which the agent plays."""

import numpy as np
import pytest

from dice_envs import Uniform, configure
from dice_envs.agents import adaptive
from dice_envs.agents.adaptive import NOWHERE, FixedReader, Lowest, response_to
from dice_envs.agents.liars_dice import Numbers
from dice_envs.core.batch import Batch
from tests.agents.adaptive.cases import SMALL, TWO_DICE
from tests.support.liars_dice_games import exploitability, winning_probability
from tests.support.subsets import few


class Responding:
    """Plays a response, and reports positions that the response does not reach."""

    def __init__(self, response):
        self.response, self.lost = response, 0

    def probabilities(self, turn):
        actions = self.response.actions(turn.variant, turn.states)
        self.lost += int((actions == NOWHERE).sum())
        chances = np.zeros(turn.legal.shape)
        chances[np.arange(len(turn)), np.where(actions == NOWHERE, turn.legal.argmax(axis=1), actions)] = 1
        return chances


ROUND = {"num_dice": (2, 1), "num_faces": 3, "rounds": "single", "raise_rule": "either", "wild": "highest", "starter": "first"}


@few(1, "options", [*SMALL, ROUND])
def test_a_response_wins_as_much_as_the_best_does(options, tmp_path):
    variant = configure("liars_dice", **options)
    agents = [
        Numbers(),
        Numbers(0.5, threshold=0.4),
        Numbers(1.0, preset="article"),
        Uniform(),
        Lowest(0.4),
        FixedReader(0.25, 0.75),
    ]
    for agent in agents:
        best = (1 + exploitability(variant, agent)) / 2
        response = Responding(response_to(variant, agent, tmp_path))
        assert winning_probability(variant, response, agent) == pytest.approx(best, abs=1e-12)


@pytest.mark.thorough
def test_a_response_says_where_it_does_not_come(tmp_path):
    response = response_to(TWO_DICE, Numbers(), tmp_path)
    batch = Batch(TWO_DICE, 200, seed=1)
    batch.play(np.full(200, 4))  # one 5, which the numbers agent never bids: it opens with two of a face or more
    assert (response.actions(TWO_DICE, batch.states) == NOWHERE).all()


@pytest.mark.thorough
def test_responses_are_kept(tmp_path, monkeypatch):
    first = response_to(TWO_DICE, Numbers(), tmp_path)
    (file,) = (tmp_path / "responses").iterdir()
    with monkeypatch.context() as without:
        without.delattr(adaptive, "record_response")  # the second time nothing is computed
        again = response_to(TWO_DICE, Numbers(), tmp_path)
    for name, array in vars(again).items():
        np.testing.assert_array_equal(array, getattr(first, name))
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"PK no archive"):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(response_to(TWO_DICE, Numbers(), tmp_path).choices, first.choices)
        assert file.read_bytes() != damaged, "a damaged file is written again"
    with np.load(file) as kept:
        arrays = dict(kept)
    arrays["choices"] = np.zeros_like(arrays["choices"])
    np.savez(file, **arrays)
    np.testing.assert_array_equal(response_to(TWO_DICE, Numbers(), tmp_path).choices, first.choices)
    response_to(TWO_DICE, Numbers(0.9), tmp_path)
    assert len(list((tmp_path / "responses").iterdir())) == 2, "another agent has a file of its own"
    response_to(TWO_DICE, FixedReader(), tmp_path)
    assert len(list((tmp_path / "responses").iterdir())) == 2, "one that is not memoryless has none"
