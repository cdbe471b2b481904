"""A unit says how its values are read, wherever they go."""

import copy
import json
import pickle

import pytest

from dice_envs.exact import GAMES_WON, RETURN, Unit
from dice_envs.exact.contract import plus_minus


@pytest.mark.parametrize("sent", [copy.deepcopy, lambda unit: pickle.loads(pickle.dumps(unit))])
def test_a_unit_is_the_same_in_another_process_and_its_name_in_a_file(sent):
    for unit in (GAMES_WON, RETURN, Unit("rounds won", True, "chance to win", "rounds")):
        there = sent(unit)
        assert (there, vars(there)) == (unit, vars(unit))
        assert json.loads(json.dumps({"unit": unit})) == {"unit": str(unit)}


def test_figures_of_shares_are_in_percent():
    assert (GAMES_WON.heading, RETURN.heading) == ("% of games won", "return")
    assert GAMES_WON.figure(0.123456, 0.01) == "12.35 ± 1.00"
    assert RETURN.figure(-0.0001, digits=2, sign=True) == "+0.00"
    assert RETURN.figure(0.123456) == plus_minus(0.123456, None, 3) == "0.123"
    assert GAMES_WON.text("12.3") == "12.3 %"
    assert (GAMES_WON.meaning, RETURN.meaning) == ("chance to win", "return")
