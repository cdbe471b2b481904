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


@pytest.mark.thorough
def test_cached_kernels_run_without_all_of_numba(run_python, tmp_path):
    """Its implementations of NumPy take most of the time until a first step. Compiling needs them, running does not."""
    (tmp_path / "library.py").write_text(LIBRARY)
    code = (
        "import sys\nimport numpy as np\nfrom library import total\n"
        "print(total(np.arange(1, 4)), 'numba.np.arraymath' in sys.modules)"
    )
    assert [run_python(code), run_python(code)] == ["9 True\n", "9 False\n"]


@pytest.mark.thorough
def test_cached_kernels_find_the_symbols_that_numba_makes_late(run_python, tmp_path):
    (tmp_path / "library.py").write_text(LIBRARY)
    code = "from library import hashed\nprint(hashed('word') == hash('word'), hashed.stats.cache_hits.total())"
    assert [run_python(code), run_python(code)] == ["True 0\n", "True 1\n"]


@pytest.mark.thorough
def test_an_untried_numba_does_without(run_python, tmp_path):
    (tmp_path / "library.py").write_text(LIBRARY)
    code = (
        "import numba, numpy as np\nnumba.version_info = numba.version_info._replace(short=(99, 0))\n"
        "from library import third, total\nprint(total(np.arange(1, 4)), len(third.signatures))"
    )
    assert [run_python(code), run_python(code)] == ["9 1\n", "9 0\n"], "compiled, then from the cache"
