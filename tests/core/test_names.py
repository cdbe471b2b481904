"""Names as options, which change words but not the game: treatments and maesters of The Shakes."""

import shlex
from xml.etree import ElementTree

import numpy as np
import pytest

from dice_envs import Batch, configure, measure
from dice_envs.agent import check_plays
from dice_envs.agent.specs import lineup, make_agent
from dice_envs.agents.ppo import load_policy, shipped
from dice_envs.core.options import option_texts, parse_options
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.ui import game_options
from dice_envs.games.shakes import TREATMENTS
from dice_envs.pictures.render import ansi, rgb_array, svg
from tests.support.policies import save_random_policy

ODD = ("<b>Ada", "Ł & Co", "the \"x\" 'y'")
NAMED = {"treatments": ("hot bath", "wall of fire", "my own"), "maesters": ODD}
TABLES = [{}, {"mode": "physician"}, {"variation": "competitive"}]


@pytest.mark.parametrize("options", TABLES)
def test_names_change_nothing_that_is_played(options):
    plain, named = configure("shakes", **options), configure("shakes", **options, **NAMED)
    assert named.params == plain.params
    assert named.facts == plain.facts
    assert [(block.name, block.size) for block in named.blocks] == [(block.name, block.size) for block in plain.blocks]


def test_policies_and_exact_answers_are_those_of_the_plain_game():
    plain = configure("shakes", mode="physician")
    named = configure("shakes", mode="physician", **NAMED)
    assert plain.same_rules(named)
    assert named.plain.options == plain.options
    assert plain.plain is plain
    assert plain.differences(named) == ("", "")
    assert not plain.same_rules(configure("shakes", mode="physician", goal=4, **NAMED))
    assert plain.differences(configure("shakes", mode="physician", goal=4, **NAMED)) == ("goal=none", "goal=4")
    for spec in ("ppo", "ppo:greedy=true", "bayes", "thompson"):
        check_plays(make_agent(spec), named)
        assert measure(named, spec).measures == measure(plain, spec).measures
    returns = [play_table(variant, [make_agent("ppo")], 200, 3) for variant in (plain, named)]
    assert (returns[0] == returns[1]).all()


def test_a_policy_that_was_trained_under_names_plays_without_them(tmp_path):
    named, plain = configure("shakes", **NAMED), configure("shakes")
    path = save_random_policy(tmp_path / "policy.npz", named)
    policy = load_policy(path)
    assert policy.options == {}
    check_plays(policy, plain)
    check_plays(policy, named)
    check_plays(policy, configure("shakes", treatments="rules"))
    with pytest.raises(ValueError, match="it cannot play goal=4"):
        check_plays(policy, configure("shakes", goal=4, **NAMED))
    found = lineup("shakes", {"treatments": "rules"}, [f"ppo:{path}"])
    assert found.variant.options.treatment_names == TREATMENTS[:3]
    assert all(policy.options == policy.variant.plain.changed_options() for policy in shipped().values())


def test_names_are_typed_as_other_options():
    typed = option_texts(NAMED)
    assert parse_options(typed) == NAMED
    assert configure("shakes", **game_options(typed)).options == configure("shakes", **NAMED).options
    assert configure("shakes", **game_options(["treatments=rules"])).options.treatment_names == TREATMENTS[:3]
    plain = configure("shakes", goal=4, **NAMED).plain
    assert option_texts(plain.changed_options()) == ["goal=4"], "a trained policy is that of the plain game"
    assert [part for text in typed for part in shlex.split(shlex.quote(text))] == typed


@pytest.mark.parametrize("option", ["treatments", "maesters"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((names, "must be 3 names, not") for names in (("a", "b"), "hot bath")),
        (("a", "b", "A"), "must all be different"),
        (("You", "b", "c"), "must be names other than nobody, the team, you, not 'You'"),
        *((names, "must be names without any of") for names in (("a,b", "c", "d"), ("a", "@b", "c"))),
        (("1", "b", "c"), "must be names that do not read as a number, true, false or none, not '1'"),
        ((1, 2, 3), "must be names that do not read as a number, true, false or none, not 1"),
        (("none", "b", "c"), "must be names that do not read as a number"),
        *(((name, "b", "c"), "must be names of 1 to 24 printable characters") for name in ("", "a" * 25)),
        *(((name, "c", "d"), f"with single blanks, not {name!r}") for name in ("a  b", " a")),
        *(((name, "c", "d"), "printable") for name in ("a\nb", "a\u202eb")),
    ],
)
def test_what_is_no_name_is_refused(option, value, message):
    with pytest.raises(ValueError, match=f"^{option} ") as problem:
        configure("shakes", **{option: value})
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("options", TABLES)
def test_pictures_and_words_have_the_names_and_escape_them(options):
    variant = configure("shakes", **options, **NAMED)
    batch = Batch(variant, 1, seed=3)
    for _ in range(variant.facts.num_seats):
        batch.play(np.ones(1, np.int64))
    for viewer in (None, 0):
        picture = variant.picture(batch.states[0], viewer)
        everybody = ODD[1:] if viewer == 0 and variant.facts.num_seats > 1 else ODD
        for said in (str(picture), ansi(picture)):
            assert all(name in said for name in (*everybody, *NAMED["treatments"]))
            assert "maester" not in said
            assert "treatment" not in said
        drawn = svg(picture)
        assert "<b>" not in drawn
        words = "".join(ElementTree.fromstring(drawn).itertext())
        assert all(name in words for name in everybody)
        rgb_array(picture)
    if options.get("mode") == "physician":
        assert [variant.describe_action(action) for action in range(3)] == list(NAMED["treatments"])
    else:
        assert [variant.seat_name(seat, 1) for seat in range(3)] == [ODD[0], "you", ODD[2]]
    assert configure("shakes").seat_name(2) == "maester 2"
