"""The rules in a few sentences are those of the options in force."""

import contextlib
import dataclasses
import re
import typing
from typing import Annotated, Literal, get_args

import pytest

from dice_envs import configure, load, names
from dice_envs.core.options import Label, option_kinds
from dice_envs.table.rules import (
    known_as,
    option_words,
    rules_for_players,
    rules_in_short,
    sections,
    variant_words,
)
from tests.support.variants import MARKED

# Other values of options whose type does not list them, or that need other options.
MORE = {
    "liars_dice": [("num_dice", (5, 4), {})],
    "score_dice": [("pool_a", (8, 6), {}), ("pool_b", (4,), {})],
    "shakes": [("efficacy", 3, {"variation": "competitive"}), ("goal", 2, {"reward": "win"})],
    "thirties": [("goal", "optimal", {"num_players": 1})],
}
USUAL = {("num_patients", 12), ("reward", "saved")}  # of The Shakes, where the default is None
# What a player need not know before the first move: who begins is seen, and names and observations are no rules.
UNSAID = {"liars_dice": {"starter", "reward", "past_rounds"}, "shakes": {"treatments", "maesters"}}


@pytest.mark.parametrize(("game", "options"), MARKED)
def test_rules_are_a_few_sentences(game, options):
    lines = rules_in_short(configure(game, **options))
    assert 3 <= len(lines) <= 8
    for line in lines:
        assert line.endswith(".")
        assert line[0].isupper() or line[0].isdigit()
        assert len(line) <= 230


def other_values(name):
    """(option, value, options that it needs) of what can be chosen alone in place of the defaults, and of MORE."""
    for option, kinds in option_kinds(load(name).options).items():
        for kind in kinds:
            allowed = (False, True) if kind is bool else typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
            for value in range(*map(int, kind.__metadata__[0])) if typing.get_origin(kind) is Annotated else allowed:
                with contextlib.suppress(ValueError):
                    if configure(name, **{option: value}).options != configure(name).options and (option, value) not in USUAL:
                        yield option, value, {}
    yield from MORE.get(name, [])


@pytest.mark.parametrize("name", [name for name in names() if load(name).rules_in_short])
def test_every_rule_that_an_option_changes_is_said(name):
    changes = [each for each in other_values(name) if each[0] not in UNSAID.get(name, ())]
    assert {option for option, *_ in changes} | UNSAID.get(name, set()) == set(option_kinds(load(name).options))
    for option, value, needed in changes:
        usual, other = (rules_in_short(configure(name, **given)) for given in (needed, {**needed, option: value}))
        assert usual != other, (option, value)


def test_without_its_own_a_game_has_what_its_docstring_says():
    variant = configure("thirties")
    game = dataclasses.replace(variant.game, rules_in_short=None)
    (play,) = (section.paragraphs for section in sections(game) if section.heading == "Play")
    assert rules_in_short(game.configure()) == list(play)


@pytest.mark.parametrize("name", names())
def test_a_first_game_is_no_longer_than_the_usual_one(name):
    game = load(name)
    usual, first = game.configure(), game.configure(**game.first_game)
    assert first.facts.num_seats == usual.facts.num_seats
    assert first.facts.max_steps <= usual.facts.max_steps


@pytest.mark.parametrize(
    ("game", "options", "title", "words"),
    [
        ("liars_dice", {}, "Liar's Dice", ""),
        ("liars_dice", {"num_dice": 3}, "Liar's Dice", "3 dice each"),
        ("liars_dice", {"num_dice": (5, 3), "exact_call": True}, "Liar's Dice", "dice each: 5, 3, exact call"),
        ("liars_dice", {"rules": "perudo"}, "Perudo", ""),
        ("liars_dice", {"rules": "perudo", "num_players": 4}, "Perudo", "4 players"),
        ("liars_dice", {"raise_rule": "reset_quantity", "past_rounds": False}, "Liar's Dice", None),
        ("thirties", {"num_players": 1, "target": 28}, "The game of 30s", "1 player, target: 28"),
    ],
)
def test_a_variant_in_words(game, options, title, words):
    variant = configure(game, **options)
    assert known_as(variant) == title
    assert variant_words(variant) == ("raise rule: reset quantity, no past rounds" if words is None else words)


@pytest.mark.parametrize("game", names())
def test_players_read_no_code(game):
    rules = rules_for_players(load(game))
    assert "Play" in [section.heading for section in rules]
    texts = [each for section in rules for each in section.paragraphs]
    for words in option_words(load(game)).values():
        texts += [words.label, words.help, *words.meanings.values()]
    assert [text for text in texts if re.search(r"`|\w_\w|==|\w=\w|\*", text)] == []


def test_players_read_how_to_play_where_it_is_from_and_how_the_rules_are_read():
    assert [section.heading for section in rules_for_players(load("fatestones"))] == ["Play", "Source", "Readings"]
    assert {section.heading for section in sections(load("fatestones"))} >= {"", "In programs", "Actions"}


@pytest.mark.parametrize(("game", "options"), MARKED)
def test_short_rules_have_the_words_of_actions(game, options):
    variant = configure(game, **options)
    rules = " ".join(rules_in_short(variant)).lower()
    said = " ".join(map(variant.describe_action, range(variant.facts.num_actions))).lower()
    named = {name.lower() for name in vars(variant.options).get("treatments") or ()}
    words = set(re.findall(r"\b[a-z]{2,}\b", said)) - {"or", *(word for name in named for word in name.split())}
    assert [word for word in words if not re.search(rf"\b{word}s?\b", rules)] == []


def test_values_of_an_option_are_explained_one_by_one():
    words = option_words(load("liars_dice"))
    assert words["rounds"].meanings == {"elimination": "the whole game", "single": "the first call ends the game"}
    assert words["num_players"].help == "players at the table, 2 to 6"


@pytest.mark.parametrize("game", names())
def test_every_option_has_a_label_whose_meanings_are_of_its_values(game):
    found = load(game)
    kinds = option_kinds(found.options)
    assert list(found.labels) == [field.name for field in dataclasses.fields(found.options)]
    for name, label in found.labels.items():
        values = {value for kind in kinds[name] for value in get_args(kind)}
        assert label.help or label.meanings
        assert set(label.meanings) <= values, name
    with pytest.raises(TypeError, match="labels name no option: nothing"):
        dataclasses.replace(found, labels={"nothing": Label("x")})


def test_an_option_without_a_label_has_its_name():
    @dataclasses.dataclass(frozen=True)
    class Options(type(configure("thirties").options)):
        num_extra: int = 1

    game = dataclasses.replace(configure("thirties").game, options=Options)
    assert variant_words(configure(game, num_extra=2)) == "2 extra"
