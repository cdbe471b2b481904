"""Cached kernels: compiled once, and never with old rules."""

import contextlib
import dataclasses
import gc
import importlib
import os
import sys
import time

import numba
import numpy as np
import pytest

from dice_envs import load
from dice_envs.core.dice import choose_from_mask, new_streams, next_u64, roll_counts, uniform
from dice_envs.core.game import compile_kernels
from dice_envs.core.kernel import identity, kernel
from tests.support.chance import assert_distributed, assert_even

FILE = "import enum, json, numba, numpy as np\nfrom typing import NamedTuple\nfrom dice_envs.core.kernel import kernel\n"
# A user's own file with `play`, another one that it reads in some way, and an edit of the other one.
FROZEN = {
    "a constant": ("@kernel\ndef play(): return N", "N = 1", "1", "2"),
    "of a third file": ("import between as b\n@kernel\ndef play(): return b.rules.N", "N = 1", "1", "2"),
    "read from JSON": ("N = json.load(open(TEXT))[0]\n@kernel\ndef play(): return N", "[1]", "1", "2"),
    "a kernel": (
        "@kernel\ndef play(): return f()",
        "N = 1\n@kernel\ndef g(): return N\n@kernel\ndef f(): return g()",
        "1",
        "2",
    ),
    "numba's function": ("import rules\n@kernel\ndef play(): return rules.f()", "@numba.njit\ndef f(): return 1", "1", "2"),
    "an array": ("@kernel\ndef play(): return N[0]", "N = np.arange(1, 4)", "(1, 4)", "(2, 5)"),
    "a data type": ("@kernel\ndef play(): return np.sqrt(N[0])", "N = np.array([3], np.float64)", "float64", "float32"),
    "a field": ("@kernel\ndef play(): return N.b[1]", "class T(NamedTuple): a: int; b: tuple\nN = T(3, (4, 1))", "1)", "2)"),
    "fields": (
        "@kernel\ndef play(t): return t.a\ndef given(): return (T(1, 2),)",
        "class T(NamedTuple): a: int; b: int",
        "a: int; b: int",
        "b: int; a: int",
    ),
    "an enumeration": ("@kernel\ndef play(): return T.a.value", "class T(enum.IntEnum): a = 1", "1", "2"),
    "a closure": ("play = made(N)", "N = 1\ndef made(n):\n @kernel\n def f(): return n\n return f", "1", "2"),
    "a default": ("@kernel\ndef play(a=N): return a", "N = 1", "1", "2"),
    "an inner function": ("@kernel\ndef play():\n f = lambda x: x + N\n return f(0)", "N = 1", "1", "2"),
    "an option": (
        "@kernel\ndef play(): return f(2**24 + 1)",
        "@numba.njit(locals={'x': numba.float64})\ndef f(a):\n x = a\n return x",
        "float64",
        "float32",
    ),
}
compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels run as plain Python")


@pytest.fixture
def import_anew(tmp_path, monkeypatch):
    """Write a user's own modules `play` and `rules`, and import them as a new process does."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def anew(play, rules):
        text = f"TEXT = {str(tmp_path / 'rules.txt')!r}\n"
        (tmp_path / "rules.txt").write_text(rules)
        for name, content in (("rules", rules), ("between", "import rules"), ("play", f"{text}from rules import *\n{play}")):
            (tmp_path / f"{name}.py").write_text(f"{FILE}{content}\n")
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("play")

    return anew


def _hits(kernel):
    return sum(kernel.stats.cache_hits.values())


@compiled
@pytest.mark.parametrize("name", FROZEN)
def test_what_machine_code_freezes_is_never_stale(name, import_anew, tmp_path):
    """Edited, run, taken back and run again: each time by what is written, and from the cache where nothing has changed.

    Damaged files are as good as none.
    """
    play, rules, old, new = FROZEN[name]
    results, hits = [], []
    for text in (rules, rules.replace(old, new), rules, f"\n{rules}"):
        module = import_anew(play, text)
        results.append(module.play(*getattr(module, "given", tuple)()))
        hits.append(_hits(module.play))
    assert results[0] == results[2] == results[3] != results[1]
    assert hits[:2] == [0, 0]
    assert hits[3] == 1
    kept = [*tmp_path.rglob("play-*.nbc"), *tmp_path.rglob("f-*.nbc")]
    assert len(kept) <= 4, "what is stale is removed"
    for file in kept:
        file.write_bytes(b"garbage")
    module = import_anew(play, rules)
    assert (module.play(*getattr(module, "given", tuple)()), _hits(module.play)) == (results[0], 0)


@compiled
@pytest.mark.parametrize("play", ["x + N", "x + g()"])
def test_a_value_that_changes_in_a_running_process_is_not_kept(play, import_anew):
    rules, play = (
        "N = 1\n@kernel\ndef g(): return N",
        f"import rules\n@kernel\ndef play(x): return {play.replace('N', 'rules.N')}",
    )
    module = import_anew(play, rules)
    assert module.play(1) == 2
    module.rules.N = 7
    module.play(1.0)  # by either value, as numba does it
    module = import_anew(play, rules)
    assert (module.play(1), module.play(1.0)) == (2, 2.0)


@compiled
@pytest.mark.parametrize(
    ("play", "rules"),
    [
        ("@kernel\ndef play(): return f()", "def f(): pass\n@numba.extending.overload(f)\ndef g(): return lambda: 1"),
        ("@kernel\ndef play(g): return g()\ndef given(): return (f,)", "@kernel\ndef f(): return 1"),
    ],
    ids=["numba calls another function than the one that is named", "a kernel as an argument"],
)
def test_what_cannot_be_hashed_is_compiled_anew_without_a_word(play, rules, import_anew, recwarn):
    for number in (1, 2, 1):
        module = import_anew(play, rules.replace("1", str(number)))
        assert module.play(*getattr(module, "given", tuple)()) == number
        assert _hits(module.play) == 0
    assert not recwarn.list


@compiled
def test_code_that_has_not_been_used_for_long_is_removed(import_anew, tmp_path):
    play, day = "@kernel\ndef play(x): return x", 86400

    def files():
        return set(tmp_path.rglob("play-*.nbc"))

    import_anew(play, "").play(1)
    (first,) = files()
    for days, argument in ((20, 1), (20, 1.0), (31, True)):
        os.utime(first, (time.time() - days * day,) * 2)
        import_anew(play, "").play(argument)
        assert (first in files()) == (days < 30)
        if type(argument) is int:  # it was used
            assert first.stat().st_mtime > time.time() - day
    assert len(files()) == 2


def test_kernels_are_told_apart_by_what_they_close_over():
    """Two games with the same name and different rules must not share loops."""

    @kernel
    def play(params, state, action):
        state["seat"] = -1

    @kernel
    def legal(params, state, mask):
        mask[0] = 1

    game = load("thirties")
    others = [dataclasses.replace(game, play=play), dataclasses.replace(game, legal=legal), dataclasses.replace(game)]
    loops = [compile_kernels(one) for one in (game, *others)]
    played = [identity(loop.play) for loop in loops]
    assert played[0] == played[2] == played[3] != played[1]
    checked = [identity(loop.first_illegal) for loop in loops]  # it calls `legal` through another kernel
    assert checked[0] == checked[1] == checked[3] != checked[2]


@pytest.mark.thorough
def test_kernels_of_main_and_without_docstrings(run_python, tmp_path):
    """A NamedTuple of __main__ is another class in each process, so cached code would never match. -OO has code of its own."""
    script = tmp_path / "script.py"
    script.write_text(
        "from typing import NamedTuple\nfrom dice_envs.core.kernel import kernel\n"
        "class P(NamedTuple):\n    a: int\n"
        "@kernel\ndef f(p):\n    return p.a + 1\n@kernel\ndef g(x):\n    'Add one.'\n    return x + 1\n"
        "print(f(P(1)), g(1), *(sum(each.stats.cache_hits.values()) for each in (f, g)))\n"
    )
    for level, hits in (("", 0), ("2", 0), ("", 1), ("2", 1)):
        code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
        assert run_python(code, PYTHONOPTIMIZE=level) == f"2 2 0 {hits}\n"


@compiled
def test_without_numbas_internals_kernels_still_run_with_one_warning(monkeypatch):
    monkeypatch.setattr("dice_envs.core.kernel.CompileResultCacheImpl", None)
    monkeypatch.setattr("dice_envs.core.files.NOT_KEPT", set())
    with pytest.warns(RuntimeWarning, match="dice_envs computes anew in every process what it cannot keep: ") as seen:
        assert [kernel(lambda x: x + 1)(1), kernel(lambda x: x + 2)(1)] == [2, 3]
    assert len(seen) == 1


@compiled
@pytest.mark.parametrize("short", [False, True])
def test_compiling_leaves_pythons_collector_as_it_was(short):
    """Also where the code does not compile. Short loops are not vectorised, and give the same."""
    total = kernel(lambda a: a.sum() + (a * a).sum(), short_loops=short)
    wrong = kernel(lambda a: a + "text", short_loops=short)
    for collects in (False, True):
        (gc.enable if collects else gc.disable)()
        assert total(np.arange(9, dtype=np.float64 if collects else np.int64)) == 36 + 204
        with pytest.raises(numba.TypingError):
            wrong(1.0 if collects else 1)
        assert gc.isenabled() == collects


@compiled
def test_code_from_two_processes_is_not_mixed_up(run_python, tmp_path):
    """Two kernels of one source with different closures, kept by processes that compiled nothing before, beside each other.

    Each calls a part that is too long to be copied into it.
    """
    loop = "  for i in range(len(a)):\n   if a[i] > K:\n    total += a[i] * x + n\n   else:\n    a[i] += 1\n"
    body = "".join(loop.replace("K", str(k)) for k in range(12))
    (tmp_path / "made.py").write_text(
        f"{FILE}def made(n):\n @kernel\n def part(a, x):\n  total = 0\n{body}  return total\n"
        " @kernel\n def whole(a):\n  return part(a, 1) + part(a, 2) * part(a, 3)\n return whole\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from made import *; "
    alone = [run_python(f"{code}print(made({n})(np.arange(20)))").strip() for n in (2, 3)]
    assert alone[0] != alone[1]
    together = f"{code}two = made(2), made(3); print(*(f(np.arange(20)) for f in two), *(len(f.stats.cache_hits) for f in two))"
    assert run_python(together).split() == [*alone, "1", "1"]


@pytest.mark.parametrize("colour", ["", "\x1b[1m\x1b[1m"])
def test_helpers_for_one_record_are_used_for_others_without_a_warning(colour, run_python):
    code = (
        "import warnings\nimport dice_envs.core.kernel\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        f"    warnings.warn({colour + 'Record(rng[type=uint64;offset=0];8;True) has been considered a subtype'!r})\n"
        "print(len(seen))"
    )
    assert run_python(code) == "0\n"


RECORD = np.zeros(1, [("first", np.float64, (2,)), ("second", np.float64, (6,))])[0]


@compiled
@pytest.mark.parametrize(
    ("play", "short"),
    [
        ("@kernel\ndef play(a): return a[5]", np.zeros(8)[:2]),
        ("@kernel(allocates=False)\ndef play(a): return a['first'][5]", RECORD),
    ],
    ids=["array", "field"],
)
def test_bounds_checking_never_runs_cached_kernels_without_it(play, short, import_anew, monkeypatch):
    for checked, hits in ((0, 0), (0, 1), (1, 0), (1, 1), (0, 1)):
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", checked)
        kernel = import_anew(play, "").play
        with pytest.raises(IndexError) if checked else contextlib.nullcontext():
            kernel(short)
        assert _hits(kernel) == hits


def test_stream_is_splitmix64():
    """Against splitmix64 written with Python's integers."""
    mask = 2**64 - 1

    def splitmix(state):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return state, z ^ (z >> 31)

    streams = new_streams(1, 1)
    state = int(streams["rng"][0])
    for _ in range(100):
        state, expected = splitmix(state)
        assert next_u64(streams[0]) == expected
        assert streams["rng"][0] == state


@pytest.mark.parametrize("faces", range(2, 9))
def test_roll_counts_is_multinomial(faces):
    streams = new_streams(faces, 1)
    counts = np.zeros(8, np.int8)
    total = np.zeros(8)
    pairs = np.zeros((8, 8))
    for _ in range(4000):
        roll_counts(streams[0], 21, faces, counts)  # dice are rolled in pairs, and the last one alone
        assert counts.sum() == 21
        total += counts
        pairs += np.outer(counts, counts)
    assert_even(total[:faces])
    assert not total[faces:].any()
    # Covariance of two faces' counts is -n/faces^2.
    covariance = pairs[0, 1] / 4000 - (total[0] / 4000) * (total[1] / 4000)
    assert covariance == pytest.approx(-21 / faces**2, abs=0.35 + 2 / faces)


def test_uniform_and_choice():
    streams = new_streams(3, 1)
    draws = np.array([uniform(streams[0]) for _ in range(20_000)])
    assert 0 <= draws.min() < draws.max() < 1
    assert abs(draws.mean() - 0.5) < 0.01
    mask = np.array([0, 1, 0, 1, 1], np.int8)
    counts = np.bincount([choose_from_mask(streams[0], mask) for _ in range(9000)], minlength=5)
    assert_distributed(counts, mask / 3)
    assert choose_from_mask(streams[0], np.zeros(5, np.int8)) == -1


def test_streams_are_those_of_numpys_seed_sequence():
    sequences = [np.random.SeedSequence(0), np.random.SeedSequence(2**200 + 7), np.random.SeedSequence(5).spawn(3)[2]]
    for sequence in sequences:
        for count in (1, 2, 7, 100):
            expected = sequence.generate_state(count, np.uint64)
            np.testing.assert_array_equal(new_streams(sequence, count)["rng"], expected)
