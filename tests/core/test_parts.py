"""Kernels as parts of others: compiled once, without machine code, and found again in the cache."""

import numba
import pytest

from dice_envs.core.kernel import kernel, parts

pytestmark = [
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="kernels run as plain Python"),
    pytest.mark.skipif(parts is None, reason="parts were not tried with this version of numba"),
]

LIBRARY = """
from dice_envs.core.kernel import kernel

@kernel
def third(values, at):
    if at > 2:
        raise ValueError("at most 2")
    return values[at] * 3

@kernel
def total(values):
    return third(values, len(values) - 1)

@kernel
def last(values, at):
    return third(values, at) + 1

@kernel
def hashed(word):
    return hash(word)
"""


def test_only_what_python_calls_becomes_machine_code(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # nothing is cached yet

    @kernel
    def part(x):
        return x + 1

    @kernel
    def whole(x):
        return part(x) * 2

    assert whole(1) == 4
    assert (part.signatures, len(part.part.signatures), len(whole.signatures)) == ([], 1, 1)
    assert part(1) == 2
    assert len(part.signatures) == 1


def test_an_error_of_a_part_reaches_python():
    @kernel
    def part(x):
        if x > 1:
            raise ValueError("at most 1")
        return x

    @kernel
    def whole(x):
        return part(x)

    with pytest.raises(ValueError, match="at most 1"):
        whole(2)


@pytest.mark.thorough
def test_parts_are_found_in_the_cache(run_python, tmp_path):
    """By another kernel that calls them, in a later process."""
    (tmp_path / "library.py").write_text(LIBRARY)
    first = (
        "import numpy as np\nfrom library import third, total\n"
        "print(total(np.arange(1, 4)), third.part.stats.cache_hits.total())"
    )
    assert run_python(first) == "9 0\n"
    later = (
        "import numpy as np\nfrom library import last, third\n"
        "print(last(np.arange(1, 4), 2), third.part.stats.cache_hits.total())\n"
        "try:\n    last(np.arange(9), 7)\nexcept ValueError as error:\n    print(error)"
    )
    assert run_python(later) == "10 1\nat most 2\n"


SUMMED = "import numba, sys, numpy as np\n{}from library import third, total\nprint(total(np.arange(1, 4)), {})"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "printed"),
    [
        # Numba's implementations of NumPy take most of the time until a first step. Compiling needs them, running does not.
        (SUMMED.format("", "'numba.np.arraymath' in sys.modules"), ["9 True\n", "9 False\n"]),
        # Symbols that numba makes late are found.
        (
            "from library import hashed as f\nprint(f('word') == hash('word'), f.stats.cache_hits.total())",
            ["True 0\n", "True 1\n"],
        ),
        # A version of numba that was not tried does without parts.
        (
            SUMMED.format("numba.version_info = numba.version_info._replace(short=(99, 0))\n", "len(third.signatures)"),
            ["9 1\n", "9 0\n"],
        ),
    ],
)
def test_kernels_are_compiled_and_then_come_from_the_cache(code, printed, run_python, tmp_path):
    (tmp_path / "library.py").write_text(LIBRARY)
    assert [run_python(code), run_python(code)] == printed
