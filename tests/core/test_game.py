"""Games by name, and the options of `reset`."""

import dataclasses

import pytest

import dice_envs
from dice_envs import configure, load, names
from dice_envs.envs.gym import SeatEnv, SeatVectorEnv


@pytest.mark.parametrize("game", [5, None, b"liars_dice", ["liars_dice"]])
def test_a_game_is_named_by_a_string(game):
    with pytest.raises(TypeError, match="a game is a name, a Game or a Variant, not "):
        configure(game)


@pytest.mark.parametrize(
    ("game", "known"),
    [
        ("fatestones", "dice"),
        ("liars_dice", "dice"),
        ("score_dice", "dice"),
        ("shakes", "efficacies"),
        ("thirties", "dice, aside"),
    ],
)
def test_a_mistyped_reset_option_is_refused_by_name(game, known):
    for env in (SeatEnv(game), SeatVectorEnv(game, 2), getattr(dice_envs, f"{game}_v0").env()):
        env.reset(seed=1)
        with pytest.raises(ValueError, match=f"^{game} has no reset option 'dise'; it has: {known}$"):
            env.reset(options={"dise": [[1]]})
    assert game in names()


def test_a_game_without_reset_options_refuses_all_but_the_one_of_pettingzoos_tests():
    plain = dataclasses.replace(load("thirties"), reset_options=(), arrange=None)
    plain.arrange(None, None, {"options": 1})
    with pytest.raises(ValueError, match="^thirties has no reset option 'dice'; it has: none$"):
        plain.arrange(None, None, {"dice": [1]})


def test_reset_options_and_arrange_come_together():
    with pytest.raises(TypeError, match="thirties: reset_options name what arrange takes, so a game has both or neither"):
        dataclasses.replace(load("thirties"), arrange=None)
