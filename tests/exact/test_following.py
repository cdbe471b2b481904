"""Progress of what is solved while people wait."""

import threading

import pytest

from dice_envs import action_values, configure
from dice_envs.core.batch import Batch
from dice_envs.exact.liars_dice import solver
from dice_envs.exact.progress import followed, is_followed, say


class Stop(Exception):
    pass


def test_lines_go_to_the_listener_of_their_thread(capsys):
    heard = []
    with followed(heard.append):
        assert is_followed()
        say("one")
        other = threading.Thread(target=say, args=("two",))
        other.start()
        other.join()
    say("three")
    assert heard == ["one"]
    assert capsys.readouterr().err == "two\nthree\n"


def test_a_solver_can_be_followed_and_stopped(tmp_path, monkeypatch):
    """What it has solved is kept, and it goes on from there."""
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    monkeypatch.setattr(solver, "_FOLLOWED_EVERY", 0.0)
    variant = configure("liars_dice", num_dice=2, num_faces=5)
    state = Batch(variant, 1, seed=1).states[0]
    heard = []

    def listen(line):
        heard.append(line)
        if "solved 1 of 3" in line:
            raise Stop

    with followed(listen), pytest.raises(Stop):
        action_values(variant, state)
    assert heard[-1].startswith("nash: solved 1 of 3 rounds; 1 against 1 dice")
    del heard[:]
    with followed(heard.append):
        action_values(variant, state)
    assert "solved 3 of 3 rounds" in heard[-1]
