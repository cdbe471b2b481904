"""The agent that learns how its opponent plays: what it does, and what it wins."""

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.agent import Promises, Turn, ask, fresh_memory, resolve
from dice_envs.agents.adaptive import MOST_LOST, Adaptive
from dice_envs.agents.liars_dice import LiarsDiceNash, Numbers, Reader
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.experiments.arena import play_table, tournament
from tests.agents.adaptive.cases import TWO_DICE
from tests.conftest import scaled
from tests.support.liars_dice_games import exploitability, winning_probability
from tests.support.turns import turn_at

pytestmark = pytest.mark.thorough


def test_probabilities_are_of_what_it_plays_and_change_nothing():
    games = scaled(400, 20)
    batch, streams, others = Batch(TWO_DICE, games, seed=1), new_streams(1, games), new_streams(2, games)
    agent = Adaptive(caution=0.5)
    memory = fresh_memory(agent, games)
    sure = 0
    for _ in range(40):
        mine, theirs = (np.flatnonzero(batch.seats == seat) for seat in (0, 1))
        if len(theirs):
            batch.play(ask(Numbers(), TWO_DICE, batch.states, theirs, others), theirs)
        if len(mine):
            turn = Turn(TWO_DICE, batch.states, mine, streams[mine], memory[mine])
            held = turn.memory.copy()
            chances = agent.probabilities(turn)
            assert (turn.memory == held).all()
            actions = ask(agent, TWO_DICE, batch.states, mine, streams, memory)
            assert (chances[np.arange(len(mine)), actions] > 0).all()
            responding = memory["response"][mine] > 0
            sure += int((chances[responding].max(axis=1) == 1).sum())
            batch.play(actions, mine)
    assert sure > 0
    assert (memory["response"] > 0).any()


def test_without_a_record_it_plays_as_optimal_play_does():
    batch = Batch(TWO_DICE, 50, seed=1)
    turns = [turn_at(TWO_DICE, batch.states) for _ in range(2)]
    np.testing.assert_array_equal(Adaptive().act(turns[0]), LiarsDiceNash().act(turns[1]))
    np.testing.assert_array_equal(Adaptive().probabilities(turns[0]), LiarsDiceNash().probabilities(turns[0]))


class Simple:
    """Makes the lowest bid; calls every bid, or never calls unless it must."""

    promises = Promises(memoryless=True)

    def __init__(self, calls):
        self.calls = calls

    def act(self, turn):
        actions = turn.legal.argmax(axis=1)
        return np.where(turn.legal[:, -1] > 0, turn.params.call, actions) if self.calls else actions

    def probabilities(self, turn):
        chances = np.zeros(turn.legal.shape)
        chances[np.arange(len(turn)), self.act(turn)] = 1
        return chances


SPECS = ["numbers:bluff=0", "numbers:bluff=1", "numbers:preset=article", "numbers:bluff=0.3,threshold=0.3"]


@pytest.mark.parametrize(
    "opponent",
    [Simple(calls=True), Simple(calls=False), *map(resolve, ["reader", *SPECS])],
    ids=["calls", "raises", "reader", *SPECS],
)
def test_it_wins_half_of_what_there_is_to_win(opponent):
    """Half of a best response's edge over optimal play, with three dice, over matches of 200 games."""
    variant = configure("liars_dice", num_dice=scaled(3, 1))
    match, matches = scaled(200, 2), scaled(40, 2)
    games, names = match * matches, ["adaptive", "other"]
    own = tournament(variant, names, games, 1, match=match, agents=[Adaptive(), opponent])
    if isinstance(opponent, Reader):  # past rounds matter to it, so there is no exact value
        result = tournament(variant, ["nash", "other"], games, 1, agents=[LiarsDiceNash(), opponent])
        optimal = result.win_rate[0][1] + result.ci95[0][1]
    else:
        optimal = winning_probability(variant, "nash", opponent)
    best = (1 + exploitability(variant, opponent)) / 2
    if scaled(1, 0):
        assert own.win_rate[0][1] - own.ci95[0][1] > optimal + 0.5 * (best - optimal)


def test_it_loses_little_to_optimal_play():
    match, matches = scaled(100, 2), scaled(100, 2)
    result = tournament(TWO_DICE, ["adaptive", "nash"], match * matches, 1, match=match)
    assert result.win_rate[0][1] + result.ci95[0][1] > 0.49


@pytest.mark.thorough
@pytest.mark.parametrize("opponent", [LiarsDiceNash(), Numbers()])
def test_it_stops_when_best_responses_lose(opponent):
    """Without caution it takes every opponent for a known kind, until it has lost too many rounds."""
    match, matches = scaled(100, 2), 10
    lost, credit, paid = [], [], []

    class Watched(Adaptive):
        def act(self, turn):
            actions = super().act(turn)
            memory = turn.memory
            lost.append(memory["lost"].max())
            credit.append(memory["credit"].min())
            begins = memory["num_bids"] <= 1
            assert not memory["response"][(memory["lost"] >= MOST_LOST) & begins].any()
            ends = begins & (memory["dice"][:, :2] == 1).all(axis=1) & (memory["response"] > 0)
            paid.extend(memory["credit"][ends])
            return actions

    result = play_table(TWO_DICE, [Watched(caution=0), opponent], match * matches, 1, match=match)
    assert (np.diff(np.maximum.accumulate(lost)) <= 1).all()
    assert max(lost) <= MOST_LOST + 1
    assert min(credit) > -MOST_LOST - 1
    assert min(paid, default=0) >= 0, "a round whose end nobody tells is paid for in advance"
    if scaled(1, 0) and isinstance(opponent, LiarsDiceNash):
        assert max(lost) > MOST_LOST
        late = result[:, 0].reshape(matches, match)[:, match // 2 :]
        assert (late.mean() + 1) / 2 > 0.46
    elif scaled(1, 0):
        assert len(paid) > matches


@pytest.mark.thorough
def test_it_risks_nothing_in_rounds_whose_end_it_is_not_told():
    """With one die each there are no other rounds to make up for a loss."""
    variant, played = configure("liars_dice", num_dice=1), []

    class Watched(Adaptive):
        def act(self, turn):
            actions = super().act(turn)
            played.extend(turn.memory["response"])
            return actions

    play_table(variant, [Watched(caution=0), LiarsDiceNash()], scaled(200, 8), 1, match=scaled(50, 4))
    assert played
    assert not any(played)
