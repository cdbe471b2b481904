"""Agents: specs, the numbers agent checked by hand, policies, and the arena."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dice_envs import configure, names
from dice_envs.agent.specs import (
    aliases,
    check_harmless,
    factories,
    for_game,
    in_words,
    levels,
    make_agent,
    parameters_of,
    resolve,
    usual,
)
from dice_envs.agents.liars_dice.players import Numbers, believe, chance_blind, chance_most
from dice_envs.core.batch import Batch
from dice_envs.experiments.arena import elo, play_table, tournament
from tests.games.liars_dice.test_rules import bid, table
from tests.support.chance import assert_distributed
from tests.support.turns import turn_at


def turn_after(dice, bids=(), **options):
    """The turn after these bids in the first round, with these dice."""
    env = table(dice, num_dice=len(dice[0]), **options)
    for action in bids:
        env.step(action)
    return turn_at(env.variant, env._states)


def test_specs():
    assert make_agent("numbers") == Numbers()
    assert make_agent("numbers:0.25") == Numbers(bluff=0.25)
    assert make_agent("numbers:bluff=0.25,threshold=0.2") == Numbers(bluff=0.25, threshold=0.2)
    assert make_agent("numbers:preset=article,bluff=1") == Numbers(bluff=1, preset="article")
    assert resolve("numbers:bluff=1") == Numbers(bluff=1), "importing agents makes specs known to environments"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nobody", "unknown agent 'nobody'; known: "),
        ("numbers:bluff=2", "bluff must be a number from 0 to 1, not 2"),
        ("numbers:bluff=high", "bluff"),
        ("numbers:cheat=1", "numbers has no parameter 'cheat'; it has: bluff, threshold"),
        ("numbers:bluff=0,threshold", "KEY=VALUE, not 'threshold'"),
        ("numbers:preset=book", "preset must be one of 'text', 'article', not 'book'"),
        ("random:1", "random takes no parameters"),
        ("ppo:greedy=maybe", "greedy must be true or false, not 'maybe'"),
        ("ppo:/nowhere/policy.npz", "no policy file '/nowhere/policy.npz'"),
        ("ppo:007", "no policy file '007'"),
        ("ppo:path=1e3,greedy=true", "no policy file '1e3'"),
        ("ppo:none", "no policy file 'none'"),
        ("mcts:0", "simulations must be a whole number from 1"),
        ("mcts:seconds=0", "seconds must be a number from 0.001 to 3600, not 0"),
        ("mcts:10,select=joint", "select must be one of 'uct', 'regret', not 'joint'"),
        ("mcts:10,select=regret,exploration=2", "exploration must be a number from 0 to 1"),
        ("mcts:10,opponent=nash", "opponent must be one of"),
        *((spec, "rollout must be one of") for spec in ("mcts:10,rollout=clever", "mcts:rollout=1")),
        *((f"mcts:memory={memory}", "memory must be a number from 0.01 to 1000, not ") for memory in (0, 0.009, 1001, "much")),
        ("greedy:flat", "posterior must be one of 'beta', 'permutations', not 'flat'"),
        ("thompson:flat", "posterior must be one of"),
        ("ucb:-1", "exploration must be a number from 0 to 1000000.0, not -1"),
        ("best_response:nobody", "unknown agent 'nobody'"),
        *(("best_response:" * times + "random", "opponent must nest best_response at most 8 times") for times in (10, 10_000)),
        ("bayes:lives", "goal must be one of None, 'saved', 'win', not 'lives'"),
        ("chat", "'chat' needs model; it is written chat:model=…"),
    ],
)
def test_wrong_specs_say_what_is_allowed(spec, words):
    with pytest.raises(ValueError, match=".") as caught:
        make_agent(spec)
    assert words in str(caught.value)


def test_every_agent_explains_its_parameters():
    for name, factory in factories().items():
        assert factory.__doc__, name
        for parameter in parameters_of(factory):
            assert parameter in factory.__doc__, f"{name} does not explain {parameter}"


@given(
    own=st.lists(st.integers(1, 6), min_size=3, max_size=3),
    last=st.none() | st.tuples(st.integers(1, 6), st.integers(1, 6)),
    rule=st.sampled_from(["quantity", "either"]),
    wild=st.sampled_from([None, "ones"]),
    bluff=st.sampled_from([0.0, 0.3, 1.0]),
    threshold=st.sampled_from([None, 0.3, 0.9]),
    article=st.booleans(),
)
def test_numbers_by_the_rules_text(own, last, rule, wild, bluff, threshold, article):
    """Compared with the whole distribution, computed here from the text of the rules. Of equal faces it names the lowest."""
    hands, bids = ([own, [1, 1, 1]], []) if last is None else ([[1, 1, 1], own], [bid(*last)])
    held = {f: own.count(f) + (own.count(1) if wild and f > 1 else 0) for f in range(1, 7)}
    expected = np.zeros(37)
    if last is None:
        best = max(held, key=lambda f: (held[f], -f))
        expected[bid(held[best] + 1, best)] = 1
    else:
        quantity, face = last
        holds = binom.sf(quantity - held[face] - 1 + article, 3, 1 / 3 if wild and face > 1 else 1 / 6)
        if rule == "quantity":
            raises = {f: quantity + 1 for f in held if f >= face or (face == 6 and f == 1)}
        else:
            raises = {f: quantity if f > face else quantity + 1 for f in held}
        raises = {f: most for f, most in raises.items() if most <= 6}
        calls = 1 - holds if threshold is None else float(holds < threshold)
        expected[36] = calls if raises else 1
        best = max(raises, key=lambda f: (held[f], -f), default=None)
        weights = {f: held[f] + 1e-5 if article else 1.0 for f in raises}
        for f, most in raises.items():
            expected[bid(most, f)] = (1 - calls) * (bluff * weights[f] / sum(weights.values()) + (1 - bluff) * (f == best))
    agent = Numbers(bluff=bluff, threshold=threshold, preset="article" if article else "text")
    ours = agent.probabilities(turn_after(hands, bids, raise_rule=rule, wild=wild))[0]
    np.testing.assert_allclose(ours, expected, atol=1e-12)


@pytest.mark.parametrize("spec", ["random", "numbers:bluff=0.4", "numbers:preset=article,bluff=0.6"])
def test_actions_are_drawn_from_the_probabilities(spec):
    agent = make_agent(spec)
    n = 20_000
    batch = Batch("liars_dice", 1, seed=8)
    batch.play(np.array([bid(2, 3)]))
    states = np.repeat(batch.states, n)
    turn = turn_at(batch.variant, states, 9)
    chances = agent.probabilities(turn_at(batch.variant, states[:1]))[0]
    assert chances.sum() == pytest.approx(1)
    assert_distributed(np.bincount(agent.act(turn), minlength=len(chances)), chances)


@pytest.mark.parametrize("faces", [2, 4, 6])
def test_chance_of_holding_most_by_enumeration(faces):
    for n in (1, 3, 4):
        throws = np.array(list(itertools.product(range(faces), repeat=n)))
        counts = (throws[:, :, None] == np.arange(faces)).sum(axis=1)
        own, others = counts[:, 0], counts[:, 1:].max(axis=1)
        hits = (np.sign(own - others) + 1) / 2  # a tie counts as half
        for k in range(n + 1):
            assert chance_most(faces)[n, k] == pytest.approx(hits[own == k].mean())
        assert chance_blind(faces, n) == pytest.approx((own >= others).mean())


def test_reader_believes_an_honest_bidder_and_not_a_bluffer():
    """In the same position; only what past calls have shown of the bidder differs."""
    turn = turn_after([[1, 2, 3], [2, 4, 6]], [bid(2, 5)])
    state = turn.states.copy()
    beliefs = {}
    for name, honest in (("honest", 20), ("bluffer", 0)):
        state["bids_shown"][0, 0], state["bids_honest"][0, 0] = 20, honest
        total = np.empty((8, 37))
        believe(turn.params, state[0], 1, True, chance_most(6), chance_blind(6, 3), np.empty(6, np.int64), total)
        assert total[:6].sum(axis=1) == pytest.approx(np.ones(6))
        beliefs[name] = total[4, 1:].sum()  # at least one five over there
    fair = 1 - (5 / 6) ** 3
    assert beliefs["bluffer"] == pytest.approx(fair, abs=0.03)
    assert beliefs["honest"] > fair + 0.3


@pytest.mark.slow
def test_reader_beats_the_numbers_and_learning_helps():
    variant = configure("liars_dice")
    reader, numbers = make_agent("reader"), make_agent("numbers")
    assert (play_table(variant, [reader, numbers], 4000, 3)[:, 0] > 0).mean() > 0.6
    # Against a player that never bluffs, shown dice are informative: by 5 standard errors.
    games = 60_000
    learns = (play_table(variant, [reader, numbers], games, 4)[:, 0] > 0).mean()
    does_not = (play_table(variant, [make_agent("reader:learn=false"), numbers], games, 4)[:, 0] > 0).mean()
    assert learns - does_not > 5 * np.sqrt(0.5 / games)


def test_elo_of_known_odds():
    # Wins of 10 to 1 are 400 points, whatever the sample size.
    games = 10**7
    ratings = elo([[None, 10 / 11], [1 / 11, None]], games)
    assert ratings[0] - ratings[1] == pytest.approx(400, abs=0.1)
    assert sum(ratings) == pytest.approx(3000)
    weak, strong = tournament(configure("liars_dice", num_dice=2), ["random", "numbers"], 1000, 5).elo
    assert weak < 1500 < strong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bluffs", "preset", "expected"),
    [
        ((1, 0), "article", (49.3, 50.7)),
        ((1, 0), "text", (42.4, 57.6)),
        ((1, 0.75, 0.25, 0), "article", (23.3, 25.1, 25.6, 26.0)),
    ],
)
def test_the_reference_figures_of_the_article(bluffs, preset, expected):
    games = 1_000_000  # the number of games behind the figures
    players = [make_agent(f"numbers:preset={preset},bluff={b}") for b in bluffs]
    variant = configure("liars_dice", num_dice=6, num_players=len(bluffs))
    wins = 100 * (play_table(variant, players, games, 11) > 0).mean(axis=0)
    np.testing.assert_allclose(wins, expected, atol=0.3)


def test_a_name_stands_for_one_agent(monkeypatch):
    monkeypatch.setattr("dice_envs.agent.specs.by_module", lambda name: {"one": {"same": Numbers}, "other": {"same": Numbers}})
    with pytest.raises(TypeError, match="two modules of agents offer 'same'"):
        factories.__wrapped__()


@pytest.mark.parametrize("name", names())
def test_levels_and_other_names(name):
    """A game's other name of an agent may be one of that agent's own parameters, as `heuristic` is of `thirties`."""
    variant = configure(name)
    listed = levels(variant)
    for words, spec in listed.items():
        assert in_words(variant, spec) == words
        assert spec.partition(":")[0] in for_game(name)
    assert usual(variant) == list(listed.values())[1]
    assert in_words(variant, "mcts:50") == "mcts:50"
    assert not any(check_harmless(spec, name) for spec in (*listed.values(), *aliases(name)))


def test_levels_that_do_not_play_a_variant_are_left_out():
    assert list(levels(configure("liars_dice")))[-1] == "optimal player"
    assert "optimal player" not in levels(configure("liars_dice", rules="perudo"))
