"""Policies: files, in which any fault is reported in one line, what their headers say, and those of the package."""

import io
import json
import os
import re
import zipfile

import numpy as np
import pytest

from dice_envs import Batch, Uniform, configure, measure
from dice_envs.agent.specs import lineup, make_agent
from dice_envs.agents import ppo
from dice_envs.agents.liars_dice import Champion
from dice_envs.agents.ppo import NetworkPolicy, Ppo, block_inputs, in_half, load_policy, measures_as_dicts, save_policy, shipped
from dice_envs.experiments.arena import tournament
from tests.conftest import posix
from tests.support.commands import with_json
from tests.support.liars_dice_games import winning_probability
from tests.support.policies import random_policy
from tests.support.subsets import few
from tests.support.turns import turn_at

MOST_BYTES = 2**20
QUICK = 3.0  # seconds; policies that take longer to measure are measured by slow tests
TWO = configure("liars_dice", num_dice=2)
ABOUT = {
    "command": "dice-envs train liars_dice",
    "seed": 3,
    "steps": 1000,
    "minutes": 0.5,
    "measures": [{"name": "exploitability", "value": 0.1, "optimum": 0.0, "gap": 0.1, "error": 0.0, "unit": "return"}],
    "table": {"agents": ["ppo", "numbers"], "win_rate": [[None, 0.6], [0.4, None]], "ci95": 0.01},
    "note": "anything else",
}
HEADER = {"format": 1, "game": "liars_dice", "options": {"num_dice": 2}, "layers": 2}


@pytest.fixture(scope="module")
def layers():
    return random_policy(TWO).layers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.npz"


def turn_of(variant, n=500, plays=1):
    """A turn of positions after random moves."""
    batch = Batch(variant, n, seed=1)
    for play in range(plays):
        batch.play(Uniform().act(turn_at(variant, batch.states, play)))
        batch.deal(np.flatnonzero(batch.seats < 0))
    return turn_at(variant, batch.states, 3)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npy_with(header, body=b"", version=1):
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode("latin1") + body


FLOATS = "{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}\n"


def write(path, layers, header=HEADER, compression=zipfile.ZIP_DEFLATED, **replaced):
    """Write a policy file member by member; `replaced` maps members to other contents, None to leave one out."""
    members = {"header": npy(np.array(header if isinstance(header, str) else json.dumps(header)))}
    for i, (weights, biases) in enumerate(layers):
        members[f"weights_{i}"], members[f"biases_{i}"] = npy(weights), npy(biases)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {**members, **replaced}.items():
            if content is not None:
                archive.writestr(f"{name}.npy", content)


def reason(path):
    """The message with which the file is refused: a ValueError of one short line that names the file."""
    with pytest.raises(ValueError, match=".") as caught:
        load_policy(path)
    text = str(caught.value)
    assert repr(str(path)) in text
    assert len(text.splitlines()) == 1
    assert len(text) < 600
    return text


def test_files_written_by_the_first_version_load(path, layers):
    arrays = {"header": np.array(json.dumps(HEADER))}
    for i, (weights, biases) in enumerate(layers):
        arrays[f"weights_{i}"], arrays[f"biases_{i}"] = weights, biases
    for save in (np.savez_compressed, np.savez):
        save(path, **arrays)
        for (weights, biases), (ours, our_biases) in zip(load_policy(path).layers, layers, strict=True):
            np.testing.assert_array_equal(weights, ours)
            np.testing.assert_array_equal(biases, our_biases)


def test_a_policy_for_the_longest_options_can_be_saved(path):
    options = {"dice": (123456, 222555) * 16383, "hand_size": 1}
    facts = configure("fatestones", **options).facts
    shape = (facts.num_actions, facts.observation_size)
    save_policy(path, NetworkPolicy("fatestones", options, [(np.zeros(shape, np.float32), np.zeros(shape[0], np.float32))]))
    assert load_policy(path).options == options


@pytest.mark.filterwarnings("error")
def test_byte_flips_and_truncations(path, layers):
    """With any byte flipped, the file loads or is refused in one line."""
    save_policy(path, NetworkPolicy("liars_dice", {"num_dice": 2}, layers))
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for i in range(400):
        damaged = bytearray(whole)
        # Every other byte of the structure: the first member, and the directory at the end.
        at = int(rng.integers(len(whole)) if i % 2 else rng.choice([rng.integers(300), len(whole) - 1 - rng.integers(500)]))
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            load_policy(path)
        except ValueError:
            reason(path)
            refused += 1
    assert refused > 200
    for length in rng.integers(len(whole), size=50):
        path.write_bytes(whole[:length])
        reason(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy_with(FLOATS.format("(1000000000000,)"), b"\0" * 100), "weights_0 holds 100 bytes"),
        (npy_with(FLOATS.format("(-1, 4)"), b"\0" * 16), "weights_0 holds 16 bytes"),
        (npy_with(FLOATS.format("(-1, -4)"), b"\0" * 16), "one unknown dimension"),
        (npy_with(FLOATS.format("(0, 0)")), "[(0, 0), (16,), (25, 16), (25,)]"),
        (npy(np.array([object()], dtype=object)), "not (1,) of object"),
        (npy(np.zeros((16, 70))), "weights_0 is float64"),
        (npy(np.zeros((16, 70), ">f4")), "weights_0 is >f4"),
        (npy(np.zeros(16 * 70, np.float32)), "weights_0 is float32 of shape (1120,)"),
        *(
            (content, "weights_0 does not begin")
            for content in (
                *(b"", npy_with(FLOATS.format("(10**12,)"), b"\0" * 100), npy_with("['descr', '''\n", b"\0" * 16)),
                npy_with(FLOATS.format("(4L,)"), b"\0" * 16),  # as Python 2 wrote it
                *(npy_with("[" * deep + "]" * deep) for deep in (100, 30_000)),
                npy_with("[" * 10**5, version=2),
            )
        ),
        (npy_with(FLOATS.format("(16, 70)").replace("f4", "f2"), b"\0" * 2239), "weights_0 holds 2239 bytes"),
        (None, "its members are"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_members_that_lie(content, words, path, layers):
    write(path, layers, weights_0=content)
    assert words in reason(path)


NAN = float("nan")
LIES = {  # wrong values of a header's fields
    "format": (2, True, None),
    "game": (["liars_dice"], "chess"),
    "options": (None, [1], {"self": 1}, {"game": 1}, {"num_dice": [[[]]]}, {"num_dice": NAN}, {"wild": {"a": 1}}, {}),
    "layers": (1, 2.0, -1, 10**9),
    "floor": (-0.1, 1, "0.1", None, True, NAN, 10**400),
}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        *((header, "") for header in ("[" * 10**5, "1" * 10**5, "x", "", "null", "[]", {})),
        (json.dumps(HEADER).replace("1", "1" * 5000, 1), ""),
        *(({**HEADER, name: value}, name if name == "floor" else "") for name, values in LIES.items() for value in values),
    ],
)
def test_headers_that_lie(header, words, path, layers):
    write(path, layers, header)
    assert words in reason(path)


def test_a_bomb_is_refused_by_what_it_declares(path, layers):
    """A file of a megabyte can unpack to gigabytes, so sizes are read before contents."""
    write(path, layers, weights_0=npy_with(FLOATS.format("(50000000,)"), b"\0" * 200_000_000))
    assert path.stat().st_size < 10**6
    assert "unpack to 200," in reason(path)
    # The directory at the end now declares 1,000 bytes, and no more are unpacked.
    content = bytearray(path.read_bytes())
    at = content.rfind(b"weights_0.npy") - 46
    content[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    reason(path)
    with path.open("wb") as stream:
        stream.truncate(10**10)  # a sparse file, which takes no room on the disk
    assert "10,000,000,000 bytes" in reason(path)


def test_other_archives(path, layers):
    for compression in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):  # zipfile unpacks these without a limit
        write(path, layers, compression=compression)
        assert "compress" in reason(path)
    for count, words in {1: "its members are", 3000: "it has 3,005 members, more than 1,000"}.items():
        write(path, layers, **{f"weights_{i}": npy(np.zeros(1)) for i in range(2, 2 + count)})
        assert words in reason(path)
    write(path, layers)
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert "encrypted" in reason(path)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_numbers_that_are_not_finite(bad, place, path, layers):
    """Biases of −inf once made a greedy policy play illegal actions."""
    biases = layers[place][1].copy()
    biases[-1] = bad
    for kind in (np.float32, np.float16):
        write(path, layers, **{f"biases_{place}": npy(biases.astype(kind))})
        assert "finite" in reason(path)
    wrong = list(layers)
    wrong[place] = (layers[place][0], biases)
    with pytest.raises(ValueError, match="finite"):
        NetworkPolicy("liars_dice", {"num_dice": 2}, wrong)


def test_layers_that_do_not_fit(layers):
    (weights, biases), last = layers
    for wrong in ([], [last], [(weights, biases)], [last, last], [(weights.T, biases), last], [(weights, biases[:-1]), last]):
        with pytest.raises(ValueError, match="layers must lead from 70 inputs to 25 actions, not"):
            NetworkPolicy("liars_dice", {"num_dice": 2}, wrong)
    with pytest.raises(ValueError, match="float32"):
        NetworkPolicy("liars_dice", {"num_dice": 2}, [(weights.astype(float), biases), last])


@pytest.mark.parametrize("scale", [1e30, 3e38])
@pytest.mark.filterwarnings("error")
def test_weights_that_overflow_still_play_legal_actions(scale, path, layers):
    """Sums of finite weights can overflow to infinity, and sums of infinities to NaN."""
    rng = np.random.default_rng(2)
    huge = [(np.float32(scale) * rng.choice([-1, 1], size=w.shape).astype(np.float32), b) for w, b in layers]
    save_policy(path, NetworkPolicy("liars_dice", {"num_dice": 2}, huge))
    turn = turn_of(TWO)
    for greedy in (False, True):
        agent = Ppo(str(path), greedy)
        assert turn.legal[np.arange(len(turn)), agent.act(turn)].all()
        chances = agent.probabilities(turn)
        assert np.isfinite(chances).all()
        assert (chances[turn.legal == 0] == 0).all()
        np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_a_run_is_named_by_its_folder_too(tmp_path, layers):
    save_policy(tmp_path / "policy.npz", NetworkPolicy("liars_dice", {"num_dice": 2}, layers))
    assert Ppo(str(tmp_path)).promises.variant.changed_options() == {"num_dice": 2}


@posix
def test_what_is_no_file(tmp_path):
    (tmp_path / "run").mkdir()
    assert "is a folder without a policy.npz" in reason(tmp_path / "run")
    os.mkfifo(tmp_path / "pipe.npz")  # opening it would block forever
    for name in ("none.npz", "pipe.npz"):
        assert "there is no policy file" in reason(tmp_path / name)
    with pytest.raises(OSError, match="this is no plain file"):
        save_policy(tmp_path / "pipe.npz", random_policy(TWO))
    with pytest.raises(ValueError, match="there is no policy file"):
        load_policy("\0")
    with pytest.raises(ValueError, match=".") as caught:
        load_policy("x" * 10**6)
    assert len(str(caught.value)) < 1000


# --- what a policy says of itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", [False, True])
def test_what_a_policy_says_of_itself_is_kept(half, path):
    policy = random_policy(TWO, ABOUT, floor=0.05)
    save_policy(path, policy, half=half)
    found = load_policy(path)
    assert found.about == json.loads(json.dumps(ABOUT))
    assert found.floor == 0.05
    for ours, theirs in zip((in_half(policy) if half else policy).layers, found.layers, strict=True):
        for our, their in zip(ours, theirs, strict=True):
            assert their.dtype == np.float32
            np.testing.assert_array_equal(our, their)


def test_float16_takes_half_the_room_and_rounds(tmp_path):
    policy = random_policy(TWO)
    sizes = []
    for half in (False, True):
        save_policy(tmp_path / f"{half}.npz", policy, half=half)
        sizes.append((tmp_path / f"{half}.npz").stat().st_size)
    assert sizes[1] < 0.6 * sizes[0]
    rounded = in_half(policy).layers[0][0]
    assert 0 < np.abs(rounded - policy.layers[0][0]).max() < 2e-3
    policy.layers[0][1][0] = 1e6
    with pytest.raises(ValueError, match="float16 holds numbers up to 65,504, and the policy has 1,000,000"):
        save_policy(tmp_path / "large.npz", policy, half=True)
    assert not (tmp_path / "large.npz").exists()


WRONG = [
    ([], "about is []"),
    (None, "about is None"),
    ({"command": 1}, "about.command is 1"),
    ({"seed": 1.5}, "about.seed is 1.5"),
    ({"steps": "many"}, "about.steps is 'many'"),
    ({"steps": "many", "seed": "none", "command": 3}, "about.command is 3"),  # the first of several, whatever the order of sets
    ({"minutes": 10**400}, "about.minutes is a number of about 401 digits"),
    ({"measures": {}}, "about.measures is {}"),
    ({"measures": [{**ABOUT["measures"][0], "value": "0.1"}]}, "about.measures[0].value is '0.1'"),
    ({"greedy_measures": [{}]}, "about.greedy_measures[0].name is None"),
    ({"table": []}, "about.table is []"),
    ({"table": {"agents": "ppo"}}, "about.table.agents is 'ppo'"),
    ({"other": float("inf")}, "about cannot be written as JSON"),
    ({"other": "x" * 2**16}, "about has 65,"),
]


@pytest.mark.parametrize(("about", "words"), WRONG)
def test_what_a_policy_says_of_itself_is_not_trusted(about, words, path):
    write(path, random_policy(TWO).layers, {**HEADER, "about": about})
    assert words in reason(path)
    if about:
        with pytest.raises(ValueError, match=re.escape(words)):
            random_policy(TWO, about)


def test_actions_below_the_floor_are_never_taken():
    turn = turn_of(TWO, 4000)
    plain, cut = random_policy(TWO), random_policy(TWO, floor=0.2)
    wanted = plain.probabilities(turn)
    wanted[wanted < 0.2 * wanted.max(axis=1, keepdims=True)] = 0
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cut.probabilities(turn), wanted, atol=1e-12)
    assert (wanted == 0).sum() > (turn.legal == 0).sum()
    actions = cut.act(turn)
    assert (wanted[np.arange(len(turn)), actions] > 0).all()
    shares = np.bincount(actions, minlength=wanted.shape[1]) / len(turn)
    np.testing.assert_allclose(shares, wanted.mean(axis=0), atol=4 * 0.5 / np.sqrt(len(turn)))


def test_a_network_is_memoryless_if_it_does_not_see_how_a_position_came_about():
    history = block_inputs(TWO, lambda block: block.history)
    assert set(history) == set(block_inputs(TWO, lambda block: block.name in ("bids", "past_bids")))
    assert random_policy(TWO, blind=history).promises.memoryless
    for one in (history[0], history[-1]):
        assert not random_policy(TWO, blind=np.setdiff1d(history, one)).promises.memoryless
    goal = configure("thirties", num_players=1)
    assert len(block_inputs(goal, lambda block: block.history)) == 0
    assert not random_policy(goal).promises.memoryless, "not known to be: the game names no such inputs"


# --- without a path ---------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with three policies, one of them distilled."""
    policies = {
        "liars_dice_two": random_policy(
            TWO, {"measures": ABOUT["measures"]}, blind=block_inputs(TWO, lambda block: block.history)
        ),
        "shakes": random_policy(configure("shakes", mode="physician")),
        "three": random_policy(configure("liars_dice", num_dice=3), {"method": "distill"}),
    }
    for name, policy in policies.items():
        save_policy(tmp_path / f"{name}.npz", policy)
    monkeypatch.setattr(ppo, "POLICIES", tmp_path)
    return tmp_path


@pytest.mark.parametrize("greedy", ["", ",greedy=true"])
def test_without_a_path_ppo_plays_the_packages_policy(greedy, package):
    without, given = make_agent(f"ppo:{greedy[1:]}"), make_agent(f"ppo:{package / 'liars_dice_two.npz'}{greedy}")
    for question in ("act", "probabilities"):
        ours, theirs = (getattr(agent, question)(turn_of(TWO)) for agent in (without, given))
        np.testing.assert_array_equal(ours, theirs)
    ours, theirs = measure(TWO, without), measure(TWO, given)
    assert [each.value for each in ours.measures] == [each.value for each in theirs.measures]
    physician = configure("shakes", mode="physician")
    assert without.act(turn_of(physician, 5, 0)).shape == (5,)
    assert winning_probability(TWO, f"ppo:{greedy[1:]}", "random") == winning_probability(TWO, given, "random")


@pytest.mark.parametrize(
    ("game", "options", "there"),
    [
        ("liars_dice", {}, "liars_dice (num_dice=2)"),
        ("liars_dice", {"num_dice": 3}, "liars_dice (num_dice=2)"),
        ("shakes", {"mode": "maesters"}, "shakes (mode=physician)"),
        ("thirties", {}, "liars_dice (num_dice=2), shakes (mode=physician)"),  # none of its own, so all
    ],
)
def test_without_a_path_it_says_what_it_plays(game, options, there, package):
    variant = configure(game, **options)
    agent = Ppo()
    for question in (
        lambda: agent.check_variant(variant),
        lambda: agent.act(turn_of(variant, 2, 0)),
        lambda: lineup(game, options, ["ppo"]),
    ):
        with pytest.raises(ValueError, match=".") as caught:
            question()
        text = str(caught.value)
        assert f"ppo has no policy in the package for {variant}; " in text
        assert f"play {there}; " in text
        assert len(text.splitlines()) == 1


def test_without_a_path_it_brings_no_options(package):
    assert Ppo().promises.variant is None
    assert not Ppo().promises.memoryless
    assert lineup("liars_dice", {"num_dice": 2}, ["ppo", "numbers"]).policy == ""
    with_path = f"ppo:{package / 'liars_dice_two.npz'}"
    assert lineup("liars_dice", {}, [with_path, "ppo"]).variant.options.num_dice == 2
    assert Ppo().of_variant(TWO).promises.memoryless
    assert repr(Ppo().of_variant(TWO)) == repr(Ppo())


def test_an_empty_package_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "POLICIES", tmp_path)
    with pytest.raises(ValueError, match="; none comes with it; ppo:FILE plays one that `train` has saved"):
        Ppo().check_variant(TWO)
    with pytest.raises(ValueError, match="the package is not complete: there is no policy file liars_dice_champion.npz"):
        _ = Champion().policy


def test_the_command_lists_them(package, tmp_path):
    result, found = with_json(tmp_path, "agents", "--policies")
    rows = {row["file"]: row for row in found["policies"]}
    assert set(rows) == {"liars_dice_two.npz", "shakes.npz", "three.npz"}
    row = rows["liars_dice_two.npz"]
    assert (row["plays"], row["value"], row["optimum"]) == ("liars_dice (num_dice=2)", 0.1, 0.0)
    assert row["bytes"] == (package / "liars_dice_two.npz").stat().st_size
    assert "trained policies" in result


# --- those that are there ---------------------------------------------------------------------------------------------

FILES = sorted(ppo.POLICIES.glob("*.npz"))


def by_time(file):
    about = load_policy(file).about
    marks = [] if about.get("measuring_seconds", 1e9) <= QUICK else [pytest.mark.slow]
    return pytest.param(file, marks=marks, id=file.stem)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_of_the_package_is_small_and_says_how_it_was_made(file):
    assert file.stat().st_size <= MOST_BYTES
    about = load_policy(file).about
    assert about["command"].startswith("dice-envs ")
    assert f"--seed {about['seed']}" in about["command"]
    assert about.get("measures") or about.get("table")


def test_one_trained_policy_for_each_variant():
    trained = [policy.variant for policy in shipped().values() if policy.about.get("method") != "distill"]
    assert len({str(variant) for variant in trained}) == len(trained)
    for variant in trained:
        Ppo().check_variant(variant)


@few(1, "file", [by_time(file) for file in FILES])
def test_a_policy_of_the_package_is_as_good_as_it_says(file):
    """Exact figures must be the same when measured again, sampled ones within both intervals."""
    policy = load_policy(file)
    about = policy.about
    for field, greedy in (("measures", False), ("greedy_measures", True)):
        if about.get(field):
            found = measures_as_dicts(measure(policy.variant, Ppo(str(file), greedy), seed=about["seed"]))
            found = [each for each in found if each["name"] != "NashConv"]  # younger than the files
            assert [each["name"] for each in found] == [each["name"] for each in about[field]]
            for ours, said in zip(found, about[field], strict=True):
                for quantity in ("value", "optimum"):
                    assert ours[quantity] == pytest.approx(said[quantity], abs=1e-6 + ours["error"] + said["error"])
    if not about.get("measures"):
        table = about["table"]
        result = tournament(policy.variant, [f"ppo:{file}", *table["agents"][1:]], games=2000, seed=1)
        said = np.ravel(np.array(table["win_rate"], float))[0]
        ours = result.win_rate[0][0] if policy.variant.facts.num_seats > 2 else result.win_rate[0][1]
        assert abs(ours - said) < 0.05


def test_the_champion_plays_by_its_probabilities():
    turn = turn_of(configure("liars_dice"), 200, 3)
    chances = make_agent("champion").probabilities(turn)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances[np.arange(200), make_agent("champion").act(turn)] > 0).all()


def test_past_rounds_mean_nothing_to_the_champion():
    policy = Champion().policy
    assert not policy.layers[0][0][:, block_inputs(policy.variant, lambda block: block.name == "past_bids")].any()


@pytest.mark.thorough
def test_best_responses_win_little_from_the_champion():
    """By the figures of its file; the slow tests measure it again."""
    (wins,) = [each for each in Champion().policy.about["measures"] if each["name"] == "best response wins"]
    assert 0.5 < wins["value"] < 0.53
    assert wins["error"] == 0
