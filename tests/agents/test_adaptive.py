"""The agent that learns how its opponent plays: what it sees and believes, its best responses, what it does and wins."""

import numpy as np
import pytest

from dice_envs import Uniform, configure
from dice_envs.agent import Promises, Turn, ask, ask_probabilities, fresh_memory
from dice_envs.agent.specs import resolve
from dice_envs.agents.liars_dice import LiarsDiceNash, Numbers, Reader, adaptive
from dice_envs.agents.liars_dice.adaptive import (
    ANSWERED,
    KINDS,
    KNOWN,
    MOST_LOST,
    NOWHERE,
    READERS,
    Adaptive,
    FixedReader,
    Lowest,
    decisions_of,
    log_likelihoods,
    posterior,
    response_to,
)
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.exact.intervals import t95
from dice_envs.experiments.arena import play_table, tournament
from tests.conftest import scaled
from tests.support.liars_dice_games import exploitability, winning_probability
from tests.support.subsets import covering, few
from tests.support.turns import turn_at
from tests.support.variants import random_states

TWO_DICE = configure("liars_dice", num_dice=2)
SMALL = [
    {"num_dice": 2},
    {"num_dice": (1, 2), "starter": "first"},
    {"num_dice": 2, "num_faces": 3, "wild": "ones"},
    {"num_dice": (3, 1), "num_faces": 4},
]


@pytest.mark.thorough
@few(1, "options", SMALL)
def test_it_sees_all_decisions_of_rounds_that_have_been_shown(options):
    """All decisions of the opponent with the dice that it had, except in the last round of a game."""
    variant = configure("liars_dice", **options)
    seen, made = [], []

    def key(state, action):
        seat = int(state["seat"])
        held, bids = state["counts"][seat].tolist(), state["bids"][: int(state["num_bids"])].tolist()
        return (*state["dice"][:2].tolist(), int(state["starter"]), seat, *held, -1, *bids, int(action))

    class Watching(Adaptive):
        def act(self, turn):
            positions, actions, _ = decisions_of(variant, turn.states, turn.memory)
            seen.extend(key(*each) for each in zip(positions, actions, strict=True))
            for position in positions:
                assert position["in_play"] == position["dice"].sum()
                assert position["bid"] == (position["bids"][position["num_bids"] - 1] if position["num_bids"] else -1)
            return super().act(turn)

    class Opponent:
        def act(self, turn):
            actions = Numbers(0.5, threshold=0.2).act(turn)
            for state, action in zip(turn.states, actions, strict=True):
                last = state["dice"][:2].max() == 1 or state["dice"][:2].min() == 1
                made.append((key(state, action), bool(last)))
            return actions

    play_table(variant, [Watching(), Opponent()], scaled(60, 4), seed=3, match=scaled(20, 2))
    certain = sorted(each for each, may_be_last in made if not may_be_last)
    left = sorted(each for each, _ in made)
    for each in seen:
        left.remove(each)  # it sees only decisions that were made, each once
    assert not [each for each in left if each in certain], "a round that is not a game's last is seen"
    assert len(seen) > 0.3 * len(made)


# --- beliefs ----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_known_players_play_as_they_say():
    states = random_states(TWO_DICE, scaled(100, 10), 5)
    turn = turn_at(TWO_DICE, states)
    lowest = ask_probabilities(Lowest(0.25), turn)
    may_do_both = turn.legal[:, -1].astype(bool) & turn.legal[:, :-1].any(axis=1)
    assert (lowest[may_do_both, -1] == 0.25).all()
    assert (lowest[may_do_both, turn.legal[may_do_both].argmax(axis=1)] == 0.75).all()
    fresh = states.copy()
    fresh["bids_shown"] = fresh["bids_honest"] = 0
    for nerve in (0.25, 0.5):
        fixed = ask_probabilities(FixedReader(nerve, 0.5), turn)
        np.testing.assert_array_equal(fixed, ask_probabilities(Reader(nerve=nerve), turn_at(TWO_DICE, fresh)))
    assert KNOWN[:READERS] == ANSWERED[:READERS], "the same number names a player and the answer to it"
    assert [each.nerve for each in KNOWN[READERS:] for _ in range(5)] == [each.nerve for each in ANSWERED[READERS:]]


@pytest.mark.thorough
def test_likelihoods_are_those_of_the_agents():
    states = random_states(TWO_DICE, 150, 5)
    turn, call = turn_at(TWO_DICE, states), TWO_DICE.params.call
    actions = Uniform().act(turn)
    logs = log_likelihoods(TWO_DICE, LiarsDiceNash(), states, actions)
    assert logs.shape == (len(states), KINDS)
    kinds = [*((agent, 0.05) for agent in (*KNOWN, LiarsDiceNash())), (Numbers(0.5), 0.5)]
    for (agent, slip), found in zip(kinds, logs.T, strict=True):
        chances = ask_probabilities(agent, turn)
        for row, action in [*enumerate(actions)][:: len(actions) // 60]:
            bids, may_call = int(turn.legal[row, :call].sum()), bool(turn.legal[row, call])
            evenly = 1.0 if action == call else 1.0 / bids
            if may_call and bids:
                evenly /= 2
            assert found[row] == pytest.approx(np.log((1 - slip) * chances[row, action] + slip * evenly), abs=1e-9)


def beliefs_after(opponent, match, tables=8, seed=1):
    """Its beliefs after a match, (tables, KINDS), and its records."""
    memories = {}

    class Watched(Adaptive):
        def act(self, turn):
            actions = super().act(turn)
            memories["last"] = turn.memory.copy() if len(turn) == tables else memories.get("last")
            return actions

    play_table(TWO_DICE, [Watched(), opponent], tables * match, seed, match=match)
    return posterior(memories["last"]["likelihoods"]), memories["last"]


@pytest.mark.thorough
def test_it_begins_undecided():
    (beliefs,) = posterior(np.zeros((1, KINDS)))
    assert beliefs.sum() == pytest.approx(1)
    np.testing.assert_allclose(beliefs[-2:], 1 / 5)
    assert beliefs[READERS:-2].sum() == pytest.approx(1 / 5)


@pytest.mark.thorough
@covering(("bluff", "preset"), [0.0, 0.25, 1.0], ["text", "article"])
def test_it_finds_out_how_its_opponent_plays(bluff, preset):
    beliefs, memory = beliefs_after(Numbers(bluff, preset=preset), match=scaled(200, 8))
    if scaled(1, 0):
        alike = [getattr(each, "preset", None) == preset and each.threshold is None for each in KNOWN]
        own = beliefs[:, np.flatnonzero(alike)]
        assert (own.sum(axis=1) > 0.99).all()
        if preset == "text":  # the article's program calls so often that its bluffs are rarely shown
            assert (own.argmax(axis=1) == [0.0, 0.25, 0.5, 1.0].index(bluff)).mean() > 0.7
    assert memory["likelihoods"].any(axis=1).all()


@pytest.mark.thorough
@few(1, "opponent", [LiarsDiceNash(), Uniform()])
def test_it_leaves_others_alone(opponent):
    beliefs, memory = beliefs_after(opponent, match=scaled(100, 4))
    if scaled(1, 0):
        assert (beliefs[:, -2:].sum(axis=1) > 0.9).all()
    assert not memory["response"].any()


@pytest.mark.thorough
def test_it_notices_an_opponent_that_changes_its_ways():
    class Turncoat:
        promises = Promises(remembers=np.dtype([("turns", np.int64)]))

        def act(self, turn):
            turn.memory["turns"] += 1
            return np.where(turn.memory["turns"] > 400, LiarsDiceNash().act(turn), Numbers().act(turn))

    before, _ = beliefs_after(Numbers(), match=scaled(100, 4))
    after, _ = beliefs_after(Turncoat(), match=scaled(400, 8))
    if scaled(1, 0):
        assert (before[:, -2:].sum(axis=1) < 0.01).all()
        assert (after[:, -2:].sum(axis=1) > 0.99).all()


# --- best responses ---------------------------------------------------------------------------------------------------


class Responding:
    """Plays a response, and reports positions that the response does not reach."""

    def __init__(self, response):
        self.response, self.lost = response, 0

    def probabilities(self, turn):
        actions = self.response.actions(turn.variant, turn.states)
        self.lost += int((actions == NOWHERE).sum())
        return np.eye(turn.legal.shape[1])[np.where(actions == NOWHERE, turn.legal.argmax(axis=1), actions)]


ROUND = {"num_dice": (2, 1), "num_faces": 3, "rounds": "single", "raise_rule": "either", "wild": "highest", "starter": "first"}


@few(1, "options", [*SMALL, ROUND])
def test_a_response_wins_as_much_as_the_best_does(options, tmp_path):
    variant = configure("liars_dice", **options)
    numbers = Numbers(), Numbers(0.5, threshold=0.4), Numbers(1.0, preset="article")
    for agent in (*numbers, Uniform(), Lowest(0.4), FixedReader(0.25, 0.75)):
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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
        return np.eye(turn.legal.shape[1])[self.act(turn)]


SPECS = ["numbers:bluff=0", "numbers:bluff=1", "numbers:preset=article", "numbers:bluff=0.3,threshold=0.3"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "opponent",
    [Simple(calls=True), Simple(calls=False), *map(resolve, ["reader", *SPECS])],
    ids=["calls", "raises", "reader", *SPECS],
)
def test_it_wins_half_of_what_there_is_to_win(opponent):
    """Half of a best response's edge over optimal play, with three dice, over matches of 200 games, none of them given up."""
    variant = configure("liars_dice", num_dice=scaled(3, 1))
    match, matches = scaled(200, 2), scaled(40, 2)
    games = match * matches
    won = (
        1 + play_table(variant, [Adaptive(), opponent], games, 1, match=match)[:, 0].reshape(matches, match).mean(axis=1)
    ) / 2
    if isinstance(opponent, Reader):  # past rounds matter to it, so there is no exact value
        result = tournament(variant, ["nash", "other"], games, 1, agents=[LiarsDiceNash(), opponent])
        optimal = result.win_rate[0][1] + result.ci95[0][1]
    else:
        optimal = winning_probability(variant, "nash", opponent)
    best = (1 + exploitability(variant, opponent)) / 2
    if scaled(1, 0):
        assert won.mean() - t95(matches - 1) * won.std(ddof=1) / matches**0.5 > optimal + 0.5 * (best - optimal)


@pytest.mark.thorough
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
