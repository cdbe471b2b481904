"""Any input is accepted and works, or is refused in one line that says what is wrong, without a change.

At the end, random play with random options through every interface, checked at every move.
FUZZ=100 in the environment tries a hundred times the usual number of examples. Memory is limited, so large requests fail.
"""

import functools
import itertools
import types
import typing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dice_envs import Batch, IllegalActionError, configure
from dice_envs.agent.specs import factories, make_agent, parameters_of
from dice_envs.core.game import load, names
from dice_envs.core.options import option_texts, parse_options
from dice_envs.experiments.sweep import parse_settings
from dice_envs.experiments.ui import game_options
from dice_envs.experiments.words import choose
from dice_envs.games.fatestones.log import read_log
from dice_envs.games.liars_dice.exact.solver import solve
from dice_envs.learn.presets import PRESETS
from tests.conftest import FUZZ
from tests.games.test_conformance import check_facts, check_illegal_actions, check_rerolls
from tests.support.interfaces import CALLERS, play, plays, refused

pytestmark = pytest.mark.thorough  # compiles all games

resource = pytest.importorskip("resource", reason="only POSIX limits a process's memory")
GIBIBYTE = 2**30
every_game = pytest.mark.parametrize("name", names())


@pytest.fixture(autouse=True, scope="module")
def little_memory():
    """Limit memory to one GiB more than is used already."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + GIBIBYTE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# --- what is typed ----------------------------------------------------------------------------------------------------

WORDS = [
    "none", "true", "False", "nan", "inf", "-inf", "1e400", "-0", "0", "1", "2", "6", "5,4", "(5,4)", "[]", "[1,]", "1_0", "½",
    "٣", "0x10", "1e5", "1.5", "win", "ones", "standard", "openspiel", "single", "either", "fair", "maesters", "physician",
    "1000000000", "123456,222555", "6,6,6", "@", "=", "best", "last", "64x64", "x", "-1x2", "10**9", "\0", "\n", " ", "\ud800",
    "9" * 50, "9" * 5000,
]  # fmt: skip
typed = st.one_of(
    st.sampled_from(WORDS),
    st.text(max_size=30),
    st.text(alphabet="0123456789.eE+-_[](),= x", max_size=20),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(",".join),
    st.integers().map(str),
    st.floats().map(str),
)


def pairs_of(known):
    """KEY=VALUE with known and unknown keys, and texts that are not such pairs."""
    return st.lists(st.one_of(st.tuples(st.one_of(known, known, typed), typed).map("=".join), typed), max_size=4)


@every_game
@given(st.data())
def test_game_options(name, data):
    pairs = data.draw(pairs_of(st.sampled_from(list(load(name).options.__dataclass_fields__))))
    pairs = [pair for pair in pairs if not pair.partition("=")[2].strip().startswith("@")]  # files: below
    message, variant = refused(lambda: configure(name, **game_options(pairs)))
    if variant is None:
        assert message
        return
    changed = variant.changed_options()
    assert str(variant).startswith(name)
    if all(len(str(value)) < 80 for value in changed.values()):
        again = configure(name, **parse_options(option_texts(changed)))
        assert again.options == variant.options
    assert variant.facts.observation_size > 0


text_files = st.one_of(typed, st.text(max_size=200)).map(lambda text: text.encode("utf-8", "replace"))


@given(content=st.one_of(st.binary(max_size=200), text_files), path=st.one_of(st.none(), st.text(max_size=20)))
def test_options_in_files(tmp_path_factory, content, path):
    file = tmp_path_factory.getbasetemp() / "dice.txt"
    file.write_bytes(content)
    name = str(file) if path is None else path
    refused(lambda: configure("fatestones", **game_options([f"dice=@{name}"])), (ValueError, OSError))


@functools.cache
def agent_parameters():
    return {name: list(parameters_of(factory)) for name, factory in factories().items()}


@given(st.data())
def test_agent_specs(data):
    name = data.draw(st.one_of(st.sampled_from(sorted(agent_parameters())), typed))
    known = agent_parameters().get(name) or ["sims"]
    parts = data.draw(pairs_of(st.sampled_from(known)))
    _, agent = refused(lambda: make_agent(f"{name}:{','.join(parts)}" if parts else name))
    if agent is not None:
        assert callable(agent.act)
        assert repr(agent)


@given(st.data())
def test_settings(data):
    preset = PRESETS[""]["quick"]
    given_ = data.draw(pairs_of(st.sampled_from(sorted(preset.__dataclass_fields__))))
    _, found = refused(lambda: parse_settings(given_, preset))
    for name, values in (found or {}).items():
        kind = type(getattr(preset, name))
        assert all(isinstance(value, (kind, float, int)) for value in values)


@given(words=typed, seed=st.integers(0, 50))
def test_what_people_say_at_the_terminal(words, seed):
    batch = Batch("liars_dice", 1, seed=seed)
    legal = np.flatnonzero(batch.legal()[0]).tolist()
    assert choose(batch.variant, legal, words) in (None, *legal)


# --- files ------------------------------------------------------------------------------------------------------------


arrays = st.one_of(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.uint16, np.int64, np.bool_, np.complex128]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=8),
    ),
    st.just(np.array("words")),
)
ROUNDS = {"num_dice": 2, "rounds": "single"}


@pytest.fixture(scope="module")
def solution_file(tmp_path_factory):
    """A folder with one solved round, its file, and the file's contents without the checksum, as earlier versions wrote it."""
    folder = tmp_path_factory.mktemp("solution")
    solve(configure("liars_dice", **ROUNDS), 1e-2, folder=folder)
    (path,) = folder.rglob("*.npz")
    with np.load(path) as file:
        return folder, path, {name: file[name] for name in file.files if name != "checksum"}


def solves(folder):
    """Assert that the solution is as precise as asked, whatever the cache contains."""
    found = solve(configure("liars_dice", **ROUNDS), 1e-2, folder=folder, resume=True)
    assert found.exploitability <= 1e-2
    assert -1e-9 <= found.upper - found.lower <= 0.02 + 1e-9
    assert abs(found.value) <= 1


@given(st.data())
def test_kept_solutions_that_lie(solution_file, data):
    folder, path, held = solution_file
    changed = dict(held)
    for name in data.draw(st.lists(st.sampled_from(sorted(held)), min_size=1, max_size=3)):
        like = hnp.arrays(held[name].dtype, held[name].shape)
        changed[name] = data.draw(st.one_of(arrays, like) if held[name].size < 10 else st.one_of(
            arrays, st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).random(len(held["numbers"]))),
            st.floats(width=32).map(lambda number: np.full(len(held["numbers"]), number, np.float32)),
        ))  # fmt: skip
    np.savez(path, **changed)
    solves(folder)


LINES = b"111222,333444,111222,333444,555666,111222,0,1,1,3\n111222,333444,,333444,555666,,1,0,4,5\n"
lines = st.text(alphabet="0123456789,\n\r -", max_size=80).map(str.encode)
places = st.integers(0, len(LINES))
# Bytes changed, put in, doubled, or left out.
damaged = st.builds(lambda end, between, begin: LINES[:end] + between + LINES[begin:], places, st.binary(max_size=16), places)


@given(content=st.one_of(damaged, st.binary(max_size=100), lines))
def test_logs(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "log.csv"
    path.write_bytes(content)
    message, log = refused(lambda: read_log(path))
    if log is None:
        assert "log.csv" in message
    else:
        assert sum(log.record()) == len(log.sizes)
        log.edge_share()


# --- random play with random options ------------------------------------------------------------------------------------

NAMES = ("Ada", "meat", "hot bath", "<b>", "Ł & Co", "x" * 24, '"', "drug 1")  # for options that take names
NUMBERS = st.integers(1, 8) | st.integers(1, 200)


def values_of(hint):
    """Values of an option's type. Most numbers are small."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return st.one_of(map(values_of, typing.get_args(hint)))
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        faces = st.integers(1, 6) | st.lists(st.integers(1, 6), min_size=6, max_size=6).map(
            lambda each: int("".join(map(str, each)))
        )
        entries = st.sampled_from(NAMES) if typing.get_args(hint)[0] is str else faces
        return st.lists(entries, min_size=1, max_size=8).map(tuple)
    return {bool: st.booleans(), int: NUMBERS}.get(hint, st.none())


@st.composite
def variants(draw, game):
    """The game with random options of the types that their hints allow; those that it refuses are drawn again."""
    hints = typing.get_type_hints(load(game).options)
    chosen = draw(st.fixed_dictionaries({}, optional={name: values_of(hint) for name, hint in hints.items()}))
    try:
        return load(game).configure(**chosen)
    except ValueError:
        assume(False)


# NextStep ignores some actions.
PAIRS = [each for each in itertools.product(CALLERS, names()) if plays(*each) and "NextStep" not in each[0]]


@pytest.mark.parametrize(("way", "name"), PAIRS)
@pytest.mark.filterwarnings("ignore:an illegal action has ended a game")
@settings(max_examples=5 * FUZZ, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_play_with_mistakes(way, name, data):
    """Random variants keep the contract in every interface, which refuse all mistakes or take them for a loss."""
    variant, rng = data.draw(variants(name)), np.random.default_rng(data.draw(st.integers(0, 2**32)))
    caller = CALLERS[way]
    lose = caller.loses and (caller.mode == "SameStep" or data.draw(st.booleans()))
    play(caller(variant, **({"illegal_action": "lose" if lose else "raise"} if caller.loses else {})), 64, rng, lose=lose)


@every_game
@settings(max_examples=5 * FUZZ, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_variants_keep_the_contract(name, data):
    variant, numbers = data.draw(variants(name)), st.integers(0, 10**6)
    check_facts(variant, games=50)
    check_illegal_actions(variant)
    check_rerolls(variant, data.draw(numbers), data.draw(st.integers(0, 40)), data.draw(numbers))


@functools.cache
def caller_of(way, name):
    return CALLERS[way](name, **({} if way == "Batch" else {"illegal_action": "raise"}))


class Odd:
    """An object that is neither a number nor an array."""


plain = st.one_of(
    *(st.none(), st.booleans(), st.integers(-3, 100), st.integers(), st.floats(), st.complex_numbers(), st.builds(Odd)),
    *(st.text(max_size=5), st.binary(max_size=5), st.just(len)),
    st.sampled_from([2**31, 2**63, 2**64, -(2**63) - 1, 10**4000]),
    st.sampled_from([np.int8, np.uint64, np.float32, np.bool_, np.str_]).map(lambda kind: kind(1)),
    st.sampled_from([np.datetime64("NaT"), np.timedelta64(1, "s"), np.array(3), np.array([[1]]), np.ma.masked]),
)
odd = st.one_of(
    plain,
    st.recursive(plain, lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner), st.dictionaries(st.text(max_size=3), inner, max_size=2)), max_leaves=6),
    hnp.arrays(
        st.sampled_from([np.int8, np.int64, np.uint64, np.float64, np.bool_, np.complex64, "U3", "O", "M8[s]"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    ),
)  # fmt: skip
REFUSED = (ValueError, TypeError, gymnasium.error.Error)


def accepted(call, thing, errors=REFUSED):
    return refused(call, errors, thing)[0] is None


@pytest.mark.parametrize(("way", "name"), PAIRS)
@given(data=st.data())
def test_actions(way, name, data):
    """Anything instead of all actions, or of one of them: it is refused, or each is a legal action."""
    caller = caller_of(way, name)
    caller.reset(1)
    masks = caller.masks()
    one = st.builds(lambda key, wrong: caller.form({**dict.fromkeys(masks, 0), key: wrong}), st.sampled_from(list(masks)), odd)
    sent = data.draw(odd | one)
    if accepted(lambda: caller.send(sent), caller.inner, (IllegalActionError, AssertionError)):
        each = sent if isinstance(sent, dict) else dict(zip(masks, [sent] if len(masks) == 1 else sent, strict=True))
        assert all(mask[int(np.asarray(each[key]).item())] for key, mask in masks.items())


@pytest.mark.parametrize("way", ["SeatEnv", "SeatVectorEnv, NextStep", "raw_env"])
@every_game
@given(seed=odd, data=st.data())
def test_seeds_and_options_of_resets(way, name, seed, data):
    known = st.sampled_from([*load(name).reset_options, "dise", "reset_mask"])
    dice = st.lists(st.lists(st.integers(-1, 7), max_size=6), max_size=3)
    options = data.draw(st.one_of(odd, st.dictionaries(known, st.one_of(odd, dice), max_size=2)))
    env = caller_of(way, name).env
    env.reset(seed=1)
    accepted(lambda: env.reset(seed=seed), env)
    accepted(lambda: env.reset(options=options), env)
    if accepted(lambda: env.reset(seed=seed, options=options), env) and type(seed) is int:
        assert seed >= 0


@every_game
@given(index=odd, seats=odd)
def test_games_and_seats_of_a_batch(name, index, seats):
    batch = caller_of("Batch", name).env
    batch.deal()
    legal = batch.legal().argmax(axis=1)
    accepted(lambda: batch.observe(seats), batch, (ValueError, TypeError))
    if accepted(lambda: batch.play(legal, index), batch, (ValueError, TypeError)):
        batch.deal()
    accepted(lambda: batch.deal(index), batch, (ValueError, TypeError))
