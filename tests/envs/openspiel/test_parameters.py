"""Options as OpenSpiel's parameters, and errors that name them."""

import importlib
import sys

import pyspiel
import pytest

from dice_envs.envs.openspiel import DiceGame, openspiel_game


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("liars_dice", {"num_dice": 1, "raise_rule": "either"}, "dice_envs_liars_dice(num_dice=1,raise_rule=either)"),
        ("liars_dice", {"num_dice": (2, 1), "wild": "ones"}, "dice_envs_liars_dice(more=num_dice:2/1,wild=ones)"),
        ("liars_dice", {"past_rounds": False}, "dice_envs_liars_dice(past_rounds=False)"),
        ("score_dice", {"pool_a": 6, "pool_b": (8, 6)}, "dice_envs_score_dice(pool_a=6/,pool_b=8/6)"),
        ("shakes", {"num_patients": 7}, "dice_envs_shakes(num_patients=7)"),
        ("shakes", {"treatments": ("hot bath", "<b> & Co", "meat")}, "dice_envs_shakes(treatments=hot bath/<b> & Co/meat)"),
        ("thirties", {"chance": "sampled", "rng_seed": 3}, "dice_envs_thirties(chance=sampled,rng_seed=3)"),
        ("fatestones", {"perfect_recall": False}, "dice_envs_fatestones(perfect_recall=False)"),
    ],
)
def test_games_have_names_that_load_them(name, options, text):
    game = openspiel_game(name, **options)
    assert str(game) == text
    loaded = pyspiel.load_game(text)
    assert isinstance(loaded, DiceGame)
    assert (loaded.variant.options, loaded.chance) == (game.variant.options, game.chance)


def test_wrong_options_and_settings_are_named():
    with pytest.raises(ValueError, match="chance must be one of None, 'explicit', 'sampled', not 'none'"):
        openspiel_game("liars_dice", chance="none")
    with pytest.raises(ValueError, match="rng_seed must be a whole number from -1"):
        openspiel_game("liars_dice", rng_seed=-2)
    with pytest.raises(ValueError, match="perfect_recall must be true or false, not 1"):
        openspiel_game("liars_dice", perfect_recall=1)
    with pytest.raises(ValueError, match="num_dice must be a whole number from 1 to 6, not 9"):
        pyspiel.load_game("dice_envs_liars_dice(num_dice=9)")
    with pytest.raises(ValueError, match="more must be words such as num_dice:2/1, not 'num_dice'"):
        pyspiel.load_game("dice_envs_liars_dice(more=num_dice)")
    with pytest.raises(ValueError, match="observers take no parameters"):
        openspiel_game("liars_dice").make_py_observer(None, {"a": 1})


def test_without_openspiel_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "dice_envs.envs.openspiel")
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ImportError, match=r"pip install 'dice-envs\[openspiel\]'"):
        importlib.import_module("dice_envs.envs.openspiel")
