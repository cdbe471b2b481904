"""Games by name, and the options of `reset`."""

import dataclasses

import pytest

from dice_envs import Game, configure, load
from dice_envs.core.batch import Batch
from dice_envs.core.kernel import kernel
from dice_envs.games import thirties


@pytest.mark.parametrize("game", [5, None, b"liars_dice", ["liars_dice"]])
def test_a_game_is_named_by_a_string(game):
    with pytest.raises(TypeError, match="a game is a name, a Game or a Variant, not "):
        configure(game)


@kernel
def play_without_action(params, state):
    """Not a game's `play`."""


def test_a_game_has_the_parts_that_its_module_names():
    game = load("thirties")
    assert (game.play, game.options, game.state) == (thirties.play, thirties.Options, thirties.STATE)
    assert game.picture is thirties._picture
    assert game.retract is None
    other = Game.of(vars(thirties), name="other", env_name="Other", title="Other", reset_options=("dice",), is_legal=None)
    assert other.play is thirties.play


@pytest.mark.parametrize(("without", "has"), [({}, "dice, aside"), ({"reset_options": (), "arrange": None}, "none")])
def test_a_part_of_a_game_can_be_replaced(without, has):
    """Also of one without reset options, which takes that of PettingZoo's tests; a learner of expected rewards plays it."""
    game = dataclasses.replace(load("thirties"), **without)
    other = dataclasses.replace(game, name="other", play=thirties.play).configure()
    if without:
        other.arrange(None, {"options": 1})
    with pytest.raises(ValueError, match=f"^other has no reset option 'cards'; it has: {has}$"):
        other.arrange(None, {"cards": 1})


def test_a_game_with_missing_or_wrong_parts_is_refused():
    module = {name: part for name, part in vars(thirties).items() if name not in ("legal", "_facts")}
    with pytest.raises(TypeError, match="the game pig lacks facts, legal"):
        Game.of(module, name="pig", env_name="Pig", title="Pig")
    with pytest.raises(TypeError, match=r"thirties: play must take \(params, state, action\), not \(params, state\)"):
        dataclasses.replace(load("thirties"), play=play_without_action)
    with pytest.raises(TypeError, match="thirties: reset_options name what arrange takes, so a game has both or neither"):
        dataclasses.replace(load("thirties"), arrange=None)
    with pytest.raises(TypeError, match="liars_dice: hold gives a seat one of its hands, so a game has both or neither"):
        dataclasses.replace(load("liars_dice"), hold=None)


@pytest.mark.parametrize("game", ["liars_dice", "thirties", "shakes"])
def test_players_have_their_names_in_words_and_pictures(game):
    people, plain = ("Ada", "Ben", "Cleo", "Dan", "Emma", "Finn"), configure(game, num_players=3)
    named, state = plain.named(people), Batch(plain, 1, seed=1).states[0]
    assert all(name in str(named.picture(state, 0)) for name in ("you", "Ben", "Cleo"))
    assert [named.seat_name(seat, 0) for seat in range(3)] == ["you", "Ben", "Cleo"]
    assert named.named(people) is named
    assert "Ben" not in str(plain.picture(state, 0)), "the game itself is as before"
    with pytest.raises(ValueError, match=r"players must have 3 names, one for each seat, not \['Ada'\]"):
        plain.named(["Ada"])
