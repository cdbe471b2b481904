"""Levels of opponents that people choose from."""

import pytest

from dice_envs import agents, configure, make_agent, names


@pytest.mark.parametrize("name", names())
def test_every_level_plays_the_game(name):
    variant = configure(name)
    for words, spec in agents.levels(variant).items():
        assert words
        assert make_agent(spec)
        assert spec.partition(":")[0] in agents.for_game(name)


def test_levels_that_do_not_play_a_variant_are_left_out():
    assert list(agents.levels(configure("liars_dice")))[-1] == "optimal player"
    assert "optimal player" not in agents.levels(configure("liars_dice", rules="perudo"))


@pytest.mark.parametrize("name", names())
def test_a_usual_opponent_is_known_in_words(name):
    variant = configure(name)
    assert agents.usual(variant) == list(agents.levels(variant).values())[1]
    assert agents.in_words(variant, agents.usual(variant)) in agents.levels(variant)
    assert agents.in_words(variant, "mcts:50") == "mcts:50"
