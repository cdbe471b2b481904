"""Every game still plays its golden playthrough."""

import pytest

from tests.support.golden import FOLDER, PLAYTHROUGHS, RAISE_VARIANTS, RAISES, playthrough, raises_digest

pytestmark = pytest.mark.golden


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_golden_playthrough(name):
    path = FOLDER / f"{name}.txt"
    assert path.exists(), f"{name} has no golden playthrough; write it with `python -m tests.support.golden`"
    assert playthrough(name) == path.read_text(encoding="utf-8"), f"{name} plays differently from {path.name}"


@pytest.mark.parametrize(("number", "options"), enumerate(RAISE_VARIANTS))
def test_raises_of_liars_dice(number, options):
    lines = (FOLDER / f"{RAISES}.txt").read_text(encoding="utf-8").splitlines()
    assert f"{raises_digest(options)} {options}" == lines[number]
