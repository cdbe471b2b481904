"""The agent that learns how its opponent plays: what it sees, what it believes, and what it wins."""

import numpy as np
import pytest

from dice_envs import Uniform, configure
from dice_envs.agent import Turn, ask, ask_probabilities, fresh_memory, resolve
from dice_envs.agents.adaptive import (
    CALLING,
    FIRST,
    KINDS,
    MEMORY,
    MOST_LOST,
    OPENING,
    RAISING,
    Adaptive,
    decisions_of,
    log_likelihoods,
    posterior,
)
from dice_envs.agents.liars_dice import Nash, Numbers, Reader
from dice_envs.agents.liars_dice_styles import PARTS, Claims, Composed, Lowest, Reading, Way
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.exact.liars_dice.measures import exploitability, winning_probability
from dice_envs.exact.liars_dice.responses import NOWHERE, respond_to, responses_to
from dice_envs.experiments.arena import play_table, tournament
from dice_envs.games.liars_dice import NO_BID
from tests.conftest import scaled

pytestmark = pytest.mark.thorough

TWO_DICE = configure("liars_dice", num_dice=2)
SMALL = [
    {"num_dice": 2},
    {"num_dice": (1, 2), "starter": "first"},
    {"num_dice": 2, "num_faces": 3, "wild": "ones"},
    {"num_dice": (3, 1), "num_faces": 4},
]


# --- best responses to play from ----------------------------------------------------------------------------------------


class Responding:
    """Plays a response, and says so where it does not come to a position."""

    def __init__(self, responses, number):
        self.responses, self.number, self.lost = responses, number, 0

    def probabilities(self, turn):
        actions = self.responses.actions(np.full(len(turn), self.number), turn.states)
        self.lost += int((actions == NOWHERE).sum())
        chances = np.zeros(turn.legal.shape)
        chances[np.arange(len(turn)), np.where(actions == NOWHERE, turn.legal.argmax(axis=1), actions)] = 1
        return chances


@pytest.mark.parametrize("options", [SMALL[1], *(pytest.param(each, marks=pytest.mark.slow) for each in SMALL[:1] + SMALL[2:])])
def test_a_response_wins_as_much_as_the_best_does(options):
    variant = configure("liars_dice", **options)
    mixed = Composed(Way(Claims(2), Uniform(), 0.5), Way(Numbers(), Lowest(), 0.3), Way(Lowest(0.0), Lowest(1.0), 0.4))
    reader = Composed(Way(Reader(nerve=0.25)), Way(Reading(0.75)), Way(Numbers(threshold=0.4)))
    agents = [Numbers(), Numbers(0.5), Numbers(1.0, preset="article"), Uniform(), mixed, reader]
    responses = respond_to(variant, agents)
    for number, agent in enumerate(agents):
        player = Responding(responses, number)
        assert responses.wins[number] == pytest.approx((1 + exploitability(variant, agent)) / 2, abs=1e-12)
        assert winning_probability(variant, player, agent) == pytest.approx(responses.wins[number], abs=1e-12)


def test_a_response_says_where_it_does_not_come():
    responses = respond_to(TWO_DICE, [Numbers()])
    batch = Batch(TWO_DICE, 200, seed=1)
    batch.play(np.full(200, 4))  # one 5, which the numbers agent never bids: it opens with two of a face or more
    rows = np.arange(200)
    assert (responses.actions(np.zeros(200, np.int64), batch.states[rows]) == NOWHERE).all()


def test_responses_are_kept(tmp_path):
    agents, told = [Numbers(), Numbers(1.0)], []
    first = responses_to(TWO_DICE, agents, tmp_path, told.append)
    (file,) = (tmp_path / "responses").iterdir()
    again = responses_to(TWO_DICE, agents, tmp_path, told.append)
    assert told == [0, 1], "the second time nothing is computed"
    for name, array in first.book._asdict().items():
        np.testing.assert_array_equal(array, getattr(again.book, name))
    np.testing.assert_array_equal(first.wins, again.wins)
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"PK no archive"):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(responses_to(TWO_DICE, agents, tmp_path, told.append).book.choice, first.book.choice)
        assert file.read_bytes() != damaged, "a damaged file is written again"
    with np.load(file) as kept:
        arrays = dict(kept)
    arrays["choice"] = np.zeros_like(arrays["choice"])
    np.savez(file, **arrays)
    np.testing.assert_array_equal(responses_to(TWO_DICE, agents, tmp_path).book.choice, first.book.choice)
    responses_to(TWO_DICE, [Numbers(), Numbers(0.9)], tmp_path)
    assert len(list((tmp_path / "responses").iterdir())) == 2, "other agents have a file of their own"
    with pytest.raises(ValueError, match="best responses are kept to memoryless agents only, not to Reader"):
        responses_to(TWO_DICE, [Reader()], tmp_path)


# --- what it sees -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", SMALL)
def test_it_sees_all_decisions_of_rounds_that_have_been_shown(options):
    """Each of the opponent's decisions, with the dice that it had, except in the last round of a game."""
    variant = configure("liars_dice", **options)
    seen, made = [], []

    def key(state, action):
        seat = int(state["seat"])
        bids = state["bids"][: int(state["num_bids"])].tolist()
        return (
            *state["dice"][:2].tolist(),
            int(state["starter"]),
            seat,
            *state["counts"][seat].tolist(),
            -1,
            *bids,
            int(action),
        )

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
        left.remove(each)  # it sees nothing that has not been, and nothing twice
    assert not [each for each in left if each in certain], "a round that is not a game's last is seen"
    assert len(seen) > 0.3 * len(made)


def positions_of_random_play(variant, games, seed):
    batch, streams = Batch(variant, games, seed=seed), new_streams(seed + 1, games)
    found = []
    for _ in range(4):
        going = np.flatnonzero(batch.seats != OVER)
        found.append(batch.states[going])
        batch.play(ask(Uniform(), variant, batch.states, going, streams), going)
    states = np.concatenate(found)
    return states, ask(Uniform(), variant, states, np.arange(len(states)), new_streams(seed + 2, len(states)))


def test_parts_make_the_players_that_they_are_of():
    states, _ = positions_of_random_play(TWO_DICE, scaled(100, 10), 5)
    turn = Turn(TWO_DICE, states, np.arange(len(states)), new_streams(1, len(states)))
    numbers = Way(Numbers())
    for bluff in (0.0, 0.3):
        parts = Composed(Way(Claims(1), Uniform(), 0.0), Way(Numbers(), Numbers(1.0), bluff), numbers)
        np.testing.assert_allclose(ask_probabilities(parts, turn), ask_probabilities(Numbers(bluff), turn), atol=1e-12)
        assert parts.memoryless
    fresh = states.copy()
    fresh["bids_shown"] = fresh["bids_honest"] = 0
    turn = Turn(TWO_DICE, fresh, np.arange(len(states)), new_streams(1, len(states)))
    parts = Composed(Way(Reader()), Way(Reading(0.5)), Way(Reading(0.5)))
    np.testing.assert_array_equal(ask_probabilities(parts, turn), ask_probabilities(Reader(), turn))
    assert not parts.memoryless, "it reads the bids of the round"
    lowest = ask_probabilities(Lowest(0.25), turn)
    may_do_both = turn.legal[:, -1].astype(bool) & turn.legal[:, :-1].any(axis=1)
    assert (lowest[may_do_both, -1] == 0.25).all()
    assert (lowest[may_do_both, turn.legal[may_do_both].argmax(axis=1)] == 0.75).all()
    for more in (0, 2):
        opens = states["bid"] == NO_BID
        claimed = ask_probabilities(Claims(more), turn)[opens].argmax(axis=1)
        most = states["counts"][opens, states["seat"][opens]].max(axis=1)
        np.testing.assert_array_equal(claimed // 6 + 1, np.clip(most + more, 1, states["in_play"][opens]))


@pytest.mark.slow
def test_likelihoods_are_those_of_the_agents():
    states, actions = positions_of_random_play(TWO_DICE, 150, 5)
    logs = log_likelihoods(TWO_DICE, Nash(), states, actions)
    assert logs.shape == (len(states), KINDS)
    turn = Turn(TWO_DICE, states, np.arange(len(states)), new_streams(1, len(states)))
    bids, call = turn.legal[:, :-1].sum(axis=1), TWO_DICE.params.call
    opens, calls = states["bid"] == NO_BID, actions == call
    told = {OPENING: opens, RAISING: ~opens & ~calls, CALLING: ~opens & (bids > 0)}
    for part, rows in told.items():
        own = logs[:, FIRST[part] : FIRST[part + 1]]
        assert (own[~rows] == 0).all(), "the decision is of another part"
        number = 0
        for style in PARTS[part]:
            for level in style.levels:
                for row in np.flatnonzero(rows)[:40]:
                    chance = 0.0
                    for agent, share in ((style.first, 1 - level), (style.second, level)):
                        if agent is None:
                            continue
                        chances = ask_probabilities(agent, turn)[row]
                        if part == CALLING:
                            chance += share * (chances[call] if calls[row] else 1 - chances[call])
                        elif chances[call] < 1:
                            chance += share * chances[actions[row]] / (1 - chances[call])
                        else:
                            chance += share / bids[row]
                    evenly = 0.5 if part == CALLING else 1 / bids[row]
                    assert own[row, number] == pytest.approx(np.log(0.95 * chance + 0.05 * evenly), abs=1e-9)
                number += 1
        assert number == own.shape[1] - 2, "and optimal play, and unknown"


# --- what it believes ---------------------------------------------------------------------------------------------------


def beliefs_after(opponent, match, tables=8, seed=1):
    """What it believes after a match, (tables, KINDS), and its records."""
    memories = {}

    class Watched(Adaptive):
        def act(self, turn):
            actions = super().act(turn)
            memories["last"] = turn.memory.copy() if len(turn) == tables else memories.get("last")
            return actions

    play_table(TWO_DICE, [Watched(), opponent], tables * match, seed, match=match)
    return posterior(memories["last"]["likelihoods"]), memories["last"]


def test_it_begins_undecided():
    beliefs = posterior(np.zeros((1, KINDS)))
    np.testing.assert_allclose(beliefs.known, 3 / 8)
    for part in range(len(PARTS)):
        kinds = beliefs.kinds[0, FIRST[part] : FIRST[part + 1]]
        assert kinds.sum() == pytest.approx(1)
        np.testing.assert_allclose(kinds[-2:], 5 / 16)


def test_one_part_tells_of_the_others_where_players_are_known_as_a_whole():
    likelihoods = np.zeros((1, KINDS))
    likelihoods[0, FIRST[RAISING] : FIRST[CALLING]] = -20
    likelihoods[0, FIRST[CALLING] - 3] = 0  # the reader's raises
    beliefs = posterior(likelihoods)
    assert beliefs.readers.sum() > 0.99
    assert (beliefs.known > 0.99).all()


@pytest.mark.slow
@pytest.mark.parametrize("bluff", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("preset", ["text", "article"])
def test_it_finds_out_how_its_opponent_plays(bluff, preset):
    beliefs, memory = beliefs_after(Numbers(bluff, preset=preset), match=scaled(200, 8))
    if scaled(1, 0):
        number = ["text", "article"].index(preset)
        levels = np.array(PARTS[RAISING][number].levels)
        own = beliefs.kinds[:, FIRST[RAISING] + number * len(levels) :][:, : len(levels)]
        assert (own.sum(axis=1) > 0.99).all()
        assert (beliefs.kinds[:, FIRST[CALLING] + number] > 0.99).all()
        if preset == "text":  # the article's program calls so much that its bluffs are rarely seen
            means = own @ levels / own.sum(axis=1)
            assert abs(means - bluff).max() < 0.25
            assert abs(means.mean() - bluff) < 0.1
    assert (memory["rounds"] > 0).all()


@pytest.mark.parametrize("opponent", [Nash(), Uniform()])
def test_it_leaves_others_alone(opponent):
    beliefs, memory = beliefs_after(opponent, match=scaled(100, 4))
    if scaled(1, 0):
        assert (beliefs.known[:, RAISING] < 0.1).all()
    assert not memory["response"].any()


@pytest.mark.slow
def test_it_notices_an_opponent_that_changes_its_ways():
    class Turncoat:
        remembers = np.dtype([("turns", np.int64)])

        def act(self, turn):
            turn.memory["turns"] += 1
            return np.where(turn.memory["turns"] > 400, Nash().act(turn), Numbers().act(turn))

    before, _ = beliefs_after(Numbers(), match=scaled(100, 4))
    after, _ = beliefs_after(Turncoat(), match=scaled(400, 8))
    if scaled(1, 0):
        assert (before.known[:, [OPENING, RAISING]] > 0.99).all()
        assert (after.known[:, [OPENING, RAISING]] < 0.01).all()


# --- what it does -----------------------------------------------------------------------------------------------------


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
    turns = [Turn(TWO_DICE, batch.states, np.arange(50), new_streams(3, 50)) for _ in range(2)]
    np.testing.assert_array_equal(Adaptive().act(turns[0]), Nash().act(turns[1]))
    np.testing.assert_array_equal(Adaptive().probabilities(turns[0]), Nash().probabilities(turns[0]))


class Simple:
    """Bids as low as it can; calls whatever it hears, or never unless it must."""

    memoryless = True

    def __init__(self, calls):
        self.calls = calls

    def act(self, turn):
        actions = turn.legal.argmax(axis=1)
        return np.where(turn.legal[:, -1] > 0, turn.params.call, actions) if self.calls else actions

    def probabilities(self, turn):
        chances = np.zeros(turn.legal.shape)
        chances[np.arange(len(turn)), self.act(turn)] = 1
        return chances


@pytest.mark.slow
@pytest.mark.parametrize("opponent", [Simple(calls=True), Simple(calls=False), Reader()], ids=["calls", "raises", "reader"])
def test_it_wins_half_of_what_there_is_to_win_from_players_of_other_kinds(opponent):
    """At three dice, over matches of 200 games, of a best response's edge over optimal play."""
    variant = configure("liars_dice", num_dice=scaled(3, 1))
    match, matches = scaled(200, 2), scaled(40, 2)
    games, names = match * matches, ["adaptive", "other"]
    own = tournament(variant, names, games, 1, match=match, agents=[Adaptive(), opponent])
    if isinstance(opponent, Reader):  # past rounds matter to it: nothing is exact
        result = tournament(variant, ["nash", "other"], games, 1, agents=[Nash(), opponent])
        optimal = result.win_rate[0][1] + result.ci95[0][1]
    else:
        optimal = winning_probability(variant, "nash", opponent)
    best = (1 + exploitability(variant, opponent)) / 2
    if scaled(1, 0):
        assert own.win_rate[0][1] - own.ci95[0][1] > optimal + 0.5 * (best - optimal)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["numbers:bluff=0", "numbers:bluff=1", "numbers:preset=article", "numbers:bluff=0.3,threshold=0.3"]
)
def test_it_wins_nearly_what_a_best_response_wins(spec):
    """At three dice optimal play wins 81 to 88 % of the best response's edge."""
    variant = configure("liars_dice", num_dice=scaled(3, 1))
    match, matches = scaled(200, 2), scaled(40, 2)
    own = tournament(variant, ["adaptive", spec], match * matches, 1, match=match)
    optimal, best = winning_probability(variant, "nash", spec), (1 + exploitability(variant, resolve(spec))) / 2
    if scaled(1, 0):
        assert own.win_rate[0][1] - own.ci95[0][1] > optimal + 0.5 * (best - optimal)


def test_it_loses_little_to_optimal_play():
    match, matches = scaled(100, 2), scaled(100, 2)
    result = tournament(TWO_DICE, ["adaptive", "nash"], match * matches, 1, match=match)
    assert result.win_rate[0][1] + result.ci95[0][1] > 0.49


@pytest.mark.parametrize("opponent", [Nash(), Numbers()])
def test_it_stops_when_best_responses_lose(opponent):
    """Without caution it takes everybody for somebody that it knows, until it has lost too many rounds."""
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
            ends = begins & (memory["dice"] == 1).all(axis=1) & (memory["response"] > 0)
            paid.extend(memory["credit"][ends])
            return actions

    result = play_table(TWO_DICE, [Watched(caution=0), opponent], match * matches, 1, match=match)
    assert (np.diff(np.maximum.accumulate(lost)) <= 1).all()
    assert max(lost) <= MOST_LOST + 1
    assert min(credit) > -MOST_LOST - 1
    assert min(paid, default=0) >= 0, "a round whose end nobody tells is paid for in advance"
    if scaled(1, 0) and isinstance(opponent, Nash):
        assert max(lost) > MOST_LOST
        late = result[:, 0].reshape(matches, match)[:, match // 2 :]
        assert (late.mean() + 1) / 2 > 0.46
    elif scaled(1, 0):
        assert len(paid) > matches


def test_it_risks_nothing_in_rounds_whose_end_it_is_not_told():
    """With one die each there are no others that could pay for them."""
    variant, played = configure("liars_dice", num_dice=1), []

    class Watched(Adaptive):
        def act(self, turn):
            actions = super().act(turn)
            played.extend(turn.memory["response"])
            return actions

    play_table(variant, [Watched(caution=0), Nash()], scaled(200, 8), 1, match=scaled(50, 4))
    assert played
    assert not any(played)


# --- what it does not play ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_players": 3}, "num_players must be 2 for adaptive play, not 3"),
        ({"reward": "dice"}, "reward must be 'win' for adaptive play, not 'dice'"),
        ({"rounds": "single"}, "rounds must be 'elimination' for adaptive play, not 'single'"),
        ({"raise_rule": "either", "num_dice": 1}, "raise_rule must be 'quantity' for adaptive play, not 'either'"),
        ({"num_dice": 6}, "num_dice=6 with num_faces=6 and raise_rule='quantity' makes a round of about"),
    ],
)
def test_it_refuses_what_it_cannot_play(options, words):
    variant = configure("liars_dice", **options)
    with pytest.raises(ValueError, match=words) as caught:
        Adaptive().check_variant(variant)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"caution": 1.5}, "caution must be a number from 0 to 1, not 1.5"),
        ({"precision": 0}, "precision must be a number from 1e-12 to 1, not 0"),
    ],
)
def test_wrong_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        Adaptive(**parameters)


def test_records_are_small():
    assert MEMORY.itemsize < 512


# --- five dice ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_five_dice_against_the_numbers():
    """Over a match of 200 games it wins at least 85 % of the best response's edge, and gives optimal play little."""
    variant = configure("liars_dice")
    best = (1 + exploitability(variant, Numbers(0.4))) / 2
    result = tournament(variant, ["adaptive", "numbers:bluff=0.4"], 4_000, 1, match=200)
    assert result.win_rate[0][1] - result.ci95[0][1] > 0.5 + 0.85 * (best - 0.5)
    assert result.win_rate[0][1] + result.ci95[0][1] > 0.954
    result = tournament(variant, ["adaptive", "nash"], 10_000, 1, match=200)
    assert result.win_rate[0][1] + result.ci95[0][1] > 0.49
