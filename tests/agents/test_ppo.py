"""Policy files: today's stay readable, and any fault is reported in one line."""

import io
import json
import zipfile

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.agents.ppo import NetworkPolicy, Ppo, load_policy, save_policy
from dice_envs.core.batch import Batch
from tests.support.policies import random_policy
from tests.support.turns import turn_at

HEADER = {"format": 1, "game": "liars_dice", "options": {"num_dice": 2}, "layers": 2}


@pytest.fixture(scope="module")
def layers():
    return random_policy(configure("liars_dice", num_dice=2)).layers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.npz"


def npy(array):
    """An array as a .npy file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npy_with(header, body=b"", version=1):
    """A .npy file with the given header."""
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
    assert str(path) in text
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
        (npy_with(FLOATS.format("(10**12,)"), b"\0" * 100), "weights_0 does not begin"),
        (npy_with(FLOATS.format("(4L,)"), b"\0" * 16), "weights_0 does not begin"),  # as Python 2 wrote it
        (npy_with("['descr', '''\n", b"\0" * 16), "weights_0 does not begin"),
        (npy_with("[" * 30000 + "]" * 30000), "weights_0 does not begin"),
        (npy_with("[" * 10**5, version=2), "weights_0 does not begin"),
        (npy_with("[" * 100 + "]" * 100), "weights_0 does not begin"),
        (b"", "weights_0 does not begin"),
        (npy_with(FLOATS.format("(16, 70)").replace("f4", "f2"), b"\0" * 2239), "weights_0 holds 2239 bytes"),
        (None, "its members are"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_members_that_lie(content, words, path, layers):
    write(path, layers, weights_0=content)
    assert words in reason(path)


@pytest.mark.parametrize(
    "header",
    [
        "[" * 10**5,
        "1" * 10**5,
        "x",
        "",
        "null",
        "[]",
        {},
        {**HEADER, "format": 2},
        {**HEADER, "format": True},
        {**HEADER, "format": None},
        {**HEADER, "game": ["liars_dice"]},
        {**HEADER, "game": "chess"},
        {**HEADER, "options": None},
        {**HEADER, "options": [1]},
        {**HEADER, "options": {"self": 1}},
        {**HEADER, "options": {"game": 1}},
        {**HEADER, "options": {"num_dice": [[[]]]}},
        {**HEADER, "options": {"num_dice": float("nan")}},
        {**HEADER, "options": {"wild": {"a": 1}}},
        {**HEADER, "options": {}},
        {**HEADER, "layers": 1},
        {**HEADER, "layers": 2.0},
        {**HEADER, "layers": -1},
        {**HEADER, "layers": 10**9},
        json.dumps(HEADER).replace("1", "1" * 5000, 1),
    ],
)
def test_headers_that_lie(header, path, layers):
    write(path, layers, header)
    reason(path)


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


def test_a_file_too_large_is_not_opened(path):
    with path.open("wb") as stream:
        stream.truncate(10**10)  # a sparse file, which takes no room on the disk
    assert "10,000,000,000 bytes" in reason(path)


def test_other_archives(path, layers):
    for compression in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):  # zipfile unpacks these without a limit
        write(path, layers, compression=compression)
        assert "compress" in reason(path)
    write(path, layers, other=b"")
    assert "its members are" in reason(path)
    write(path, layers, **{f"weights_{i}": b"" for i in range(2, 3000)})
    assert "its members are" in reason(path)
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
    batch = Batch("liars_dice", 1000, seed=1, num_dice=2)
    batch.play(np.full(1000, 7))
    turn = turn_at(batch.variant, batch.states)
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


def test_what_is_no_file(tmp_path):
    import os

    (tmp_path / "run").mkdir()
    with pytest.raises(ValueError, match="is a folder without a policy.npz"):
        load_policy(tmp_path / "run")
    with pytest.raises(ValueError, match="there is no policy file"):
        load_policy(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="there is no policy file"):
        load_policy("\0")
    os.mkfifo(tmp_path / "pipe.npz")  # opening it would block forever
    with pytest.raises(ValueError, match="there is no policy file"):
        load_policy(tmp_path / "pipe.npz")
    with pytest.raises(ValueError, match=".") as caught:
        load_policy("x" * 10**6)
    assert len(str(caught.value)) < 1000
