"""Every game keeps the contract. A new game needs no change here."""

import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import os
import pickle
import warnings
import zlib

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test
from pettingzoo.utils.conversions import aec_to_parallel
from scipy.stats import chi2

import dice_envs
from dice_envs.agent import Turn, Uniform, ask
from dice_envs.core.batch import Batch, IllegalActionError
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, configure, load, names
from dice_envs.envs import aec
from dice_envs.envs.gym import SeatEnv, SeatVectorEnv
from dice_envs.envs.learner import Mixture
from dice_envs.envs.sb3 import make_vec_env
from tests.conftest import python, scaled
from tests.support.chance import assert_distributed
from tests.support.interfaces import CALLERS, moves, plays, remember
from tests.support.variants import IDS, MARKED, MARKED_ONCE, VARIANTS, played, rerolled

every_variant = pytest.mark.parametrize(("name", "options"), MARKED, ids=IDS)
every_learner = pytest.mark.parametrize(("name", "options"), MARKED_ONCE, ids=IDS)  # compiled anew for each variant
every_game = pytest.mark.parametrize("name", names())
every_table = pytest.mark.parametrize("name", [name for name in names() if configure(name).facts.num_seats > 1])


def gym_options(name, options):
    return {**load(name).gym_options, **options}


def played_on(variant, seed, moves):
    """Games of random play, each stopped after its number of moves if it has not ended."""
    batch, streams, moves = Batch(variant, len(moves), seed=seed), new_streams(seed + 1, len(moves)), np.asarray(moves)
    for made in range(moves.max()):
        playing = np.flatnonzero((batch.seats != OVER) & (moves > made))
        if not len(playing):
            break
        batch.play(ask(Uniform(), variant, batch.states, playing, streams), playing)
    return batch


def same(one, other):
    """Whether two arrays of states are equal, field by field: padding bytes between fields are undefined."""
    return all(np.array_equal(one[field], other[field]) for field in one.dtype.names)


def check_facts(variant, games, check_states=lambda states: None):
    """Random games keep what `Facts` promises, and show numbers from 0 to 1."""
    facts = variant.facts
    batch = Batch(variant, games, seed=1)
    streams = new_streams(2, games)
    returns = np.zeros((games, facts.num_seats))
    steps = np.zeros(games, int)
    while True:
        playing = np.flatnonzero(batch.seats != OVER)
        assert (batch.seats < facts.num_seats).all(), "the seat to move must exist"
        check_states(batch.states)
        observations = batch.observe()
        assert observations.min() >= 0, "observations must not fall below 0"
        assert observations.max() <= 1, "observations must not exceed 1"
        if not len(playing):
            break
        masks = batch.legal()[playing]
        assert (masks <= 1).all(), "a mask has entries 0 and 1"
        assert masks.any(axis=1).all(), "a seat to move must have a legal action"
        batch.play(ask(Uniform(), variant, batch.states, playing, streams), playing)
        steps[playing] += 1
        returns[playing] += batch.rewards[playing]
        assert steps.max() <= facts.max_steps, "a game outlasted Facts.max_steps"
        if facts.zero_sum and facts.num_seats == 2:
            np.testing.assert_allclose(batch.rewards[playing].sum(axis=1), 0, atol=1e-5, err_msg="rewards must sum to 0")
    assert returns.min() >= facts.min_return - 1e-5, "a return fell below Facts.min_return"
    assert returns.max() <= facts.max_return + 1e-5, "a return exceeded Facts.max_return"
    if facts.zero_sum:
        np.testing.assert_allclose(returns.sum(axis=1), 0, atol=1e-5, err_msg="returns must sum to 0")
    if facts.cooperative:
        np.testing.assert_array_equal(returns, returns[:, :1].repeat(facts.num_seats, axis=1), "a team is paid alike")
    assert not batch.legal().any(), "nothing is legal once the game is over"


@every_variant
def test_facts_hold_over_random_games(name, options):
    check_facts(configure(name, **options), scaled(300, 30))


def check_illegal_actions(variant):
    """Every legal action is playable, and every other one is refused and changes nothing."""
    batch = played_on(variant, 3, [2])
    if batch.seats[0] == OVER:
        batch.deal()
    before = batch.states.copy()
    mask = batch.legal()[0]
    for action in range(-2, variant.facts.num_actions + 2):
        batch.states[:] = before
        if 0 <= action < len(mask) and mask[action]:
            batch.play(np.array([action]))
            assert not same(batch.states, before), "a legal action must change the state"
        else:
            with pytest.raises(IllegalActionError, match="action"):
                batch.play(np.array([action]))
            assert same(batch.states, before), "a refused action must change nothing"


@every_variant
def test_every_legal_action_is_playable_and_every_illegal_one_refused(name, options):
    check_illegal_actions(configure(name, **options))


@every_variant
def test_random_action_is_uniform_over_the_legal_ones(name, options):
    variant = configure(name, **options)
    if variant.game.random_action is None:
        pytest.skip("the game leaves it to the mask")
    for seed in range(4):
        batch = played_on(variant, seed, [seed])
        if batch.seats[0] == OVER:
            continue
        mask = batch.legal()[0].astype(bool)
        state = batch.states.copy()
        draws = 400 * mask.sum()
        counts = np.bincount([variant.game.random_action(variant.params, state[0]) for _ in range(draws)], minlength=len(mask))
        assert_distributed(counts, mask / mask.sum())


def check_rerolls(variant, seed, length, reroll):
    """What is hidden from a seat, drawn again, changes nothing that it sees or may do."""
    batch = played_on(variant, seed, [length])
    for seat in range(variant.facts.num_seats):
        view = batch.observe(np.array([seat]))
        again, kernels = rerolled(variant, batch.states, seat, reroll), variant.kernels
        seen = np.empty_like(view)
        kernels.observe(again, np.arange(1), np.array([seat]), seen)
        np.testing.assert_array_equal(view, seen, err_msg=f"seat {seat} saw the reroll")
        assert again["seat"] == batch.states["seat"]
        if batch.seats[0] == seat:
            masks = np.empty((1, variant.facts.num_actions), np.int8)
            kernels.legal(again, np.arange(1), masks)
            np.testing.assert_array_equal(masks, batch.legal(), err_msg="the mover's legal actions changed")


@every_variant
@given(seed=st.integers(0, 10**6), length=st.integers(0, 40), reroll=st.integers(0, 10**6))
def test_rerolling_what_is_hidden_changes_nothing_that_the_seat_sees(name, options, seed, length, reroll):
    check_rerolls(configure(name, **options), seed, length, reroll)


@every_variant
def test_asking_an_agent_changes_no_game_and_shows_no_dice_to_come(name, options):
    variant = configure(name, **options)
    batch = Batch(variant, 5, seed=4)
    before = batch.states.copy()
    turn = Turn(variant, batch.states, np.arange(5), new_streams(5, 5))
    assert not (turn.states["rng"] == batch.states["rng"]).any(), "the agent sees the game's own stream"
    assert same(turn.states, rerolled(variant, batch.states, batch.seats, 5)), "the agent sees what is hidden from its seat"
    _ = turn.observations, turn.legal, turn.rng.random()
    assert same(batch.states, before)


@every_variant
def test_commitments_can_be_taken_back_for_search(name, options):
    variant = configure(name, **options)
    if variant.game.retract is None:
        assert not variant.facts.simultaneous, "search in a simultaneous game wants `retract`"
        pytest.skip("nothing is committed unseen")
    batch = Batch(variant, 1, seed=12)
    before = batch.states.copy()
    variant.game.retract(variant.params, batch.states[0])
    assert same(batch.states, before), "there was nothing to take back"
    batch.play(batch.legal().argmax(axis=1))
    variant.game.retract(variant.params, batch.states[0])
    assert same(batch.states, before)


@every_variant
def test_words_and_pictures(name, options):
    variant = configure(name, **options)
    words = [variant.describe_action(a) for a in range(variant.facts.num_actions)]
    assert len(set(words)) == len(words), "two actions have the same description"
    for length in (0, 1, 3, 1000):
        batch = played_on(variant, 6, [length])
        for viewer in (None, *range(variant.facts.num_seats)):
            assert dice_envs.pictures.render.ansi(variant.picture(batch.states[0], viewer))


@every_variant
def test_an_observation_is_what_its_blocks_say(name, options):
    variant = configure(name, **options)
    blocks = variant.blocks
    assert sum(block.size for block in blocks) == variant.facts.observation_size
    assert len({block.name for block in blocks}) == len(blocks), "two blocks have the same name"
    assert all(block.meaning for block in blocks)
    for block in blocks:
        labels = list(itertools.product(*block.labels))
        assert not block.labels or len(labels) == len(set(labels)) == block.size, f"{block.name}: one label for each entry"
    for length in (0, 3, 1000):
        for view in played_on(variant, 7, [length]).observe():
            description = dice_envs.describe(variant, view)
            assert [reading.name for reading in description] == [block.name for block in blocks]
            np.testing.assert_array_equal(np.concatenate([reading.values for reading in description]), view)
            for block, reading in zip(blocks, description, strict=True):
                assert not block.flags or set(reading.values) <= {0, 1}, f"{block.name}: flags are 0 or 1"
                assert reading.text


# --- these checks find broken promises ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "facts", "fault"),
    [
        ("fatestones", {}, {"max_steps": 1}, "a game outlasted"),
        ("fatestones", {}, {"max_return": 0.5}, "a return exceeded"),
        ("fatestones", {}, {"min_return": -0.5}, "a return fell below"),
        ("fatestones", {}, {"num_seats": 1}, "the seat to move must exist"),
        ("thirties", {"num_players": 1}, {"zero_sum": True}, "returns must sum to 0"),
    ],
)
def test_a_broken_promise_is_found(name, options, facts, fault):
    variant = configure(name, **options)
    variant.facts = dataclasses.replace(variant.facts, **facts)
    with pytest.raises(AssertionError, match=fault):
        check_facts(variant, 50)


# --- secrets ------------------------------------------------------------------------------------------------------


def courses(variant, games, seed):
    """States of games of random play, each stopped after a random number of moves, from 0 to a whole game's."""
    moves = np.random.default_rng(seed).geometric(1 / 6, games) - 1
    return played_on(variant, seed, np.minimum(moves, variant.facts.max_steps)).states


def columns(states):
    """All entries of all fields except the random stream as columns, (n, entries) int64, and their names."""
    names = [name for name in states.dtype.names if name != "rng"]
    parts = [states[name].reshape(len(states), -1) for name in names]
    labels = [f"{name}[{i}]" for name, part in zip(names, parts, strict=True) for i in range(part.shape[1])]
    return np.hstack([np.unique(part, return_inverse=True)[1].reshape(part.shape) for part in parts]), labels


def differ(one, other):
    """The p-value of a chi-square test that two samples of whole numbers come from one distribution."""
    size = max(one.max(), other.max()) + 1
    counts = np.array([np.bincount(one, minlength=size), np.bincount(other, minlength=size)], float)
    rare = counts.sum(axis=0) < 20
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return chi2.sf(((table - expected) ** 2 / expected).sum(), max(table.shape[1] - 1, 1)) if table.shape[1] > 1 else 1.0


@every_learner
def test_states_drawn_again_are_distributed_as_the_true_ones(name, options):
    """The joint distribution of each hidden entry with any two other entries, public ones included, is the true one."""
    variant = configure(name, **options)
    games, most_triples = scaled(10_000, 200), scaled(300, 20)
    states = courses(variant, games, 11)
    true, again = np.arange(games) < games // 2, np.arange(games) >= games // 2
    rng = np.random.default_rng(12)
    for seat in {0, variant.facts.num_seats - 1}:
        drawn = rerolled(variant, states, seat, 13 + seat)
        table, labels = columns(np.concatenate([states, drawn]))
        hidden = np.flatnonzero((table[:games] != table[games:]).any(axis=0))
        sample = np.where(true[:, None], table[:games], table[games:])
        whole = np.array([zlib.crc32(row.tobytes()) % 64 for row in sample])
        assert differ(whole[true], whole[again]) > 1e-10, f"seat {seat}: the state as a whole"
        varied = np.flatnonzero(sample.max(axis=0) > sample.min(axis=0))
        for _ in range(most_triples if len(hidden) else 0):
            entries = rng.choice(hidden), *rng.choice(varied, 2)
            cells = np.zeros(games, np.int64)
            for entry in entries:
                cells = cells * (sample[:, entry].max() + 1) + sample[:, entry]
            named = ", ".join(labels[entry] for entry in entries)
            assert differ(cells[true], cells[again]) > 1e-10, f"seat {seat}: {named}"


@every_variant
def test_pictures_show_a_viewer_nothing_that_is_hidden_from_it(name, options):
    variant = configure(name, **options)
    states = courses(variant, scaled(100, 10), 13)
    for seat in range(variant.facts.num_seats):
        drawn = rerolled(variant, states, seat, 14 + seat)
        for true, again in zip(states, drawn, strict=True):
            assert variant.picture(true, seat) == variant.picture(again, seat)


# --- batch = single, compiled = interpreted ------------------------------------------------------------------------


@every_variant
def test_a_games_course_depends_on_its_seed_alone(name, options):
    variant = configure(name, **options)
    many, few = Batch(variant, 17, seed=9), Batch(variant, 5, seed=9)
    assert same(many.states[:5], few.states)
    streams = new_streams(10, 17)
    for _ in range(60):
        playing = np.flatnonzero(few.seats != OVER)
        if not len(playing):
            break
        own = streams.copy()
        actions = ask(Uniform(), variant, many.states, playing, streams)
        np.testing.assert_array_equal(actions, ask(Uniform(), variant, few.states, playing, own))
        many.play(actions, playing)
        few.play(actions, playing)
        assert same(many.states[:5], few.states)


@functools.cache
def played_interpreted():
    """The same for all variants, from a process in which kernels run as plain Python."""
    program = (
        "import json, warnings; import numpy as np; warnings.simplefilter('ignore'); np.seterr(over='ignore')\n"
        "from tests.support.variants import VARIANTS, played\n"
        "print(json.dumps([played(*variant) for variant in VARIANTS]))"
    )
    run = python("-c", program, env={"NUMBA_DISABLE_JIT": "1"}, timeout=None, check=True)
    return dict(zip(IDS, json.loads(run.stdout), strict=True))


@every_variant
def test_compiled_equals_interpreted(name, options, request):
    compiled, interpreted = played(name, options), played_interpreted()[request.node.callspec.id]
    assert len(compiled) == len(interpreted) >= 1
    for one, other in zip(compiled, interpreted, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1e-6)
        assert one[1:] == other[1:]


# --- the ecosystem's own checks -------------------------------------------------------------------------------------


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.library("pettingzoo", "api_test, seed_test")
@every_variant
def test_pettingzoo_api_and_seeds(name, options):
    if configure(name, **options).facts.num_seats == 1:
        pytest.skip("one seat")
    with quiet():
        api_test(aec.env(name, **options), num_cycles=200)
        api_test(aec.raw_env(name, **options), num_cycles=200)
        seed_test(lambda: aec.env(name, **options), num_cycles=100)


@pytest.mark.library("pettingzoo", "render_test")
@every_table
def test_pettingzoo_render(name):
    with quiet():
        render_test(lambda render_mode=None: aec.env(name, render_mode=render_mode))


SIMULTANEOUS = [each for each, (name, options) in zip(MARKED, VARIANTS) if configure(name, **options).facts.simultaneous]


@pytest.mark.library("pettingzoo", "aec_to_parallel plays simultaneous games")
@pytest.mark.parametrize(("name", "options"), SIMULTANEOUS)
def test_a_parallel_environment_is_what_pettingzoo_makes_of_the_aec_environment(name, options):
    """Observations, masks, rewards and ends are the same."""
    with quiet():
        parallel_api_test(aec.parallel_env(name, **options), num_cycles=200)
    ours, theirs = aec.parallel_env(name, **options), aec_to_parallel(aec.raw_env(name, **options))
    rng = np.random.default_rng(1)
    for seed in range(20):
        told = [env.reset(seed=seed) for env in (ours, theirs)]
        while ours.agents:
            assert remember(told[0]) == remember(told[1])
            actions = {agent: int(rng.choice(np.flatnonzero(info["action_mask"]))) for agent, info in told[1][-1].items()}
            told = [env.step(actions) for env in (ours, theirs)]
        assert told[0][1:4] == told[1][1:4]
        assert not theirs.agents


@pytest.mark.parametrize("name", [name for name in names() if not configure(name).facts.simultaneous])
def test_a_game_of_turns_has_no_parallel_environment(name):
    with pytest.raises(ValueError, match="not simultaneous"):
        aec.parallel_env(name)


@pytest.mark.library("gymnasium", "check_env")
@pytest.mark.library("stable-baselines3", "check_env")
@every_learner
def test_gymnasium_and_sb3_check_env(name, options):
    from stable_baselines3.common.env_checker import check_env as sb3_check_env

    options = gym_options(name, options)
    with quiet():
        gymnasium_check_env(SeatEnv(name, **options), skip_render_check=False)
        sb3_check_env(SeatEnv(name, **options))


@every_learner
def test_a_restored_environment_goes_on_as_the_first_one_did(name, options):
    options = {"opponents": Mixture(["random", "random"]), **gym_options(name, options)}
    caller, other = (CALLERS["SB3VecEnv"](name, **options) for _ in range(2))
    caller.reset(3)
    other.reset(4)
    moves(caller, 20, seed=1)
    kept = caller.env.games.snapshot()
    seen = []
    for each in (caller, caller, other):
        observations = each.env.games.restore(kept).observations
        seen.append([observations.tobytes(), *moves(each, 40, seed=1)])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.library("torchrl", "check_env_specs")
@every_table
def test_torchrl_check_env_specs(name):
    pytest.importorskip("torchrl")
    from torchrl.envs import PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    for seed in range(50):
        try:
            with quiet():
                check_env_specs(PettingZooWrapper(aec.env(name), use_mask=True), seed=seed)
            return
        except RuntimeError as problem:
            # The checker draws an action after its three steps even if the game is over and nothing is legal, so
            # a short game needs a seed with which it lasts longer.
            if "multinomial" not in str(problem):
                raise
    pytest.fail("no game lasted for the checker's three steps")


@pytest.mark.library("torchrl", "GymEnv")
@every_game
def test_torchrl_gym_env(name):
    """By its id. It tries an argument that no game has, and takes masks from the infos."""
    pytest.importorskip("torchrl")
    import torch
    from torchrl.data import Binary
    from torchrl.envs import ActionMask, GymEnv, TransformedEnv, default_info_dict_reader
    from torchrl.envs.utils import check_env_specs

    identifier = f"dice_envs/{load(name).env_name}-v0"
    with quiet():
        check_env_specs(GymEnv(identifier))
        env = GymEnv(identifier, illegal_action="raise", categorical_action_encoding=True)
        masks = Binary(env.action_spec.n, dtype=torch.int8)
        env.set_info_dict_reader(default_info_dict_reader(["action_mask"], spec=[masks]))
        played = TransformedEnv(env, ActionMask()).rollout(60, break_when_any_done=False)
    assert played.batch_size == (60,)


@every_game
def test_an_option_that_is_not_there(name):
    for make in (SeatEnv, SeatVectorEnv, make_vec_env):
        with pytest.raises(TypeError, match=rf"unexpected keyword argument 'frameskip': {name} has no option 'frameskip'; its"):
            make(name, frameskip=1)
    with pytest.raises(ValueError, match=f"^{name} has no option 'frameskip'; its options are: "):
        configure(name, frameskip=1)


@pytest.mark.library("gymnasium", "make_vec")
@every_game
def test_registered_ids(name):
    game = load(name)
    env = gymnasium.make(f"dice_envs:dice_envs/{game.env_name}-v0")
    env.reset(seed=0)
    assert env.unwrapped.variant.game is game
    vector = gymnasium.make_vec(f"dice_envs/{game.env_name}-v0", num_envs=4)
    assert isinstance(vector.unwrapped, SeatVectorEnv)
    assert vector.reset(seed=0)[0].shape == vector.observation_space.shape
    module = getattr(dice_envs, f"{name}_v0")
    assert str(module.raw_env()) == f"{name}_v0"
    if hasattr(pettingzoo, "make"):
        assert str(pettingzoo.make("aec", f"dice_envs/{name}-v0").unwrapped) == f"{name}_v0"


@every_game
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])
def test_a_copy_of_a_game_in_play_goes_on_exactly_where_it_was(name, copied):
    assert copied(configure(name)).options == configure(name).options
    for way in (way for way in CALLERS if plays(way, name)):
        caller = CALLERS[way](name, **({"max_cycles": 10_000} if way.endswith("env") else {}))  # more than are played
        for env, counts in ((caller.env, (0, 1, 2)), (copied(caller.env), (7,))):  # also before its first game
            caller.hold(env)
            caller.reset(5)
            for count in counts:
                moves(caller, count, seed=count)
                other = copy.copy(caller)
                other.hold(copied(env))
                before = remember(other.inner)
                assert not way.endswith("env") or other.inner.max_cycles == 10_000
                expected = moves(caller, 30, seed=1)
                assert remember(other.inner) == before, "the copy shares its state with the first one"
                assert moves(other, 30, seed=1) == expected


@every_game
@pytest.mark.parametrize("make", [aec.raw_env, aec.env], ids=["raw_env", "env"])
def test_plain_observations(name, make):
    """`observation="box"`: no dictionary, and the mask in the infos, where PettingZoo's tests look for it."""
    plain, usual = (make(name, observation=kind) for kind in ("box", "dict"))
    assert plain.observation_space("player_0") == usual.observation_space("player_0")["observation"]
    for env in (plain, usual):
        env.reset(seed=1)
    for _ in range(10):
        if not plain.agents:
            break
        (seen, *_, info), (theirs, *_) = plain.last(), usual.last()
        assert remember({"observation": seen, "action_mask": info["action_mask"]}) == remember(theirs)
        for env in (plain, usual):
            env.step(int(info["action_mask"].argmax()) if info["action_mask"].any() else None)
    if configure(name).facts.simultaneous:
        (plain, infos), (usual, theirs) = (aec.parallel_env(name, observation=kind).reset(seed=1) for kind in ("box", "dict"))
        assert remember(infos) == remember(theirs)
        assert remember(plain) == remember({agent: each["observation"] for agent, each in usual.items()})
    if configure(name).facts.num_seats > 1:
        with quiet():
            api_test(make(name, observation="box"), num_cycles=50)
    with pytest.raises(ValueError, match="observation must be"):
        make(name, observation="image")
