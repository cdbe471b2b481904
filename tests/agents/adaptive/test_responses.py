"""Best responses from which the agent plays."""

import numpy as np
import pytest

from dice_envs import Uniform, configure
from dice_envs.agents.adaptive import responses
from dice_envs.agents.adaptive.beliefs import Claims, Composed, FixedReader, Lowest, Way
from dice_envs.agents.adaptive.responses import NOWHERE, respond_to, response_to
from dice_envs.agents.liars_dice import Numbers, Reader
from dice_envs.core.batch import Batch
from dice_envs.exact.liars_dice.measures import exploitability, winning_probability
from tests.agents.adaptive.cases import SMALL, TWO_DICE
from tests.support.subsets import few

pytestmark = pytest.mark.thorough


class Responding:
    """Plays a response, and reports positions that the response does not reach."""

    def __init__(self, response):
        self.response, self.lost = response, 0

    def probabilities(self, turn):
        actions = self.response.actions(turn.states)
        self.lost += int((actions == NOWHERE).sum())
        chances = np.zeros(turn.legal.shape)
        chances[np.arange(len(turn)), np.where(actions == NOWHERE, turn.legal.argmax(axis=1), actions)] = 1
        return chances


@few(1, "options", SMALL)
def test_a_response_wins_as_much_as_the_best_does(options):
    variant = configure("liars_dice", **options)
    mixed = Composed(Way(Claims(2), Uniform(), 0.5), Way(Numbers(), Lowest(), 0.3), Way(Lowest(0.0), Lowest(1.0), 0.4))
    reader = Composed(Way(Reader(nerve=0.25)), Way(FixedReader(0.75)), Way(Numbers(threshold=0.4)))
    agents = [Numbers(), Numbers(0.5), Numbers(1.0, preset="article"), Uniform(), mixed, reader]
    for agent in agents:
        response = respond_to(variant, agent)
        assert response.wins == pytest.approx((1 + exploitability(variant, agent)) / 2, abs=1e-12)
        assert winning_probability(variant, Responding(response), agent) == pytest.approx(response.wins, abs=1e-12)


def test_a_response_says_where_it_does_not_come():
    response = respond_to(TWO_DICE, Numbers())
    batch = Batch(TWO_DICE, 200, seed=1)
    batch.play(np.full(200, 4))  # one 5, which the numbers agent never bids: it opens with two of a face or more
    assert (response.actions(batch.states) == NOWHERE).all()


def test_responses_are_kept(tmp_path, monkeypatch):
    first = response_to(TWO_DICE, Numbers(), tmp_path)
    (file,) = (tmp_path / "responses").iterdir()
    with monkeypatch.context() as without:
        without.delattr(responses, "record_response")  # the second time nothing is computed
        again = response_to(TWO_DICE, Numbers(), tmp_path)
    for name, array in first.book._asdict().items():
        np.testing.assert_array_equal(array, getattr(again.book, name))
    assert first.wins == again.wins
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"PK no archive"):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(response_to(TWO_DICE, Numbers(), tmp_path).book.choice, first.book.choice)
        assert file.read_bytes() != damaged, "a damaged file is written again"
    with np.load(file) as kept:
        arrays = dict(kept)
    arrays["choice"] = np.zeros_like(arrays["choice"])
    np.savez(file, **arrays)
    np.testing.assert_array_equal(response_to(TWO_DICE, Numbers(), tmp_path).book.choice, first.book.choice)
    response_to(TWO_DICE, Numbers(0.9), tmp_path)
    assert len(list((tmp_path / "responses").iterdir())) == 2, "another agent has a file of its own"
    with pytest.raises(ValueError, match="the best response is kept to a memoryless agent only, not to Reader"):
        response_to(TWO_DICE, Reader(), tmp_path)
