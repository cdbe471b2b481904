"""How people name moves, and the answer to a mistaken word."""

import re

import numpy as np
import pytest

from dice_envs import Batch, configure
from dice_envs.core.game import names
from dice_envs.experiments.ui import console
from dice_envs.experiments.words import choose, explain_mistake, help_text, number_choices, say
from dice_envs.table.rules import rules_for_players, rules_text, sections
from tests.support.variants import MARKED


@pytest.mark.parametrize(("game", "options"), MARKED)
def test_numbers_choose_every_legal_action_and_mistakes_are_told_in_a_line(game, options):
    variant = configure(game, **options)
    batch = Batch(variant, 1, seed=2)
    rng = np.random.default_rng(2)
    for _ in range(10):
        if batch.seats[0] < 0:
            break
        legal = np.flatnonzero(batch.legal()[0]).tolist()
        numbers = number_choices(variant, legal)
        assert sorted(numbers.values()) == legal
        for number, action in rng.permutation(list(numbers.items()))[:10].tolist():
            for words in (str(number), f"#{action}", f" {variant.describe_action(action).upper()} "):
                assert choose(variant, legal, words) == action
        illegal = sorted(set(range(variant.facts.num_actions)) - set(legal))
        for action in rng.permutation(illegal)[:5].tolist():
            reason = variant.why_not(batch.states[0], action).reason
            assert reason
            assert choose(variant, legal, f"#{action}") is None
            assert reason in explain_mistake(variant, batch.states[0], legal, variant.describe_action(action))
        for words in ("", "?!", "x", "999", "#999", "not a move"):
            assert choose(variant, legal, words) is None
            assert len(explain_mistake(variant, batch.states[0], legal, words).splitlines()) == 1
        batch.play(np.array([rng.choice(legal)]))


def test_words_may_be_cut_short_at_their_end_and_no_number_is_a_beginning():
    dice, bids = configure("score_dice"), configure("liars_dice", num_players=3)
    assert [choose(dice, [0], words) for words in ("die 1", "ie 1")] == [0, None]
    assert [choose(bids, [68], words) for words in ("12 x", "12")] == [68, None], "twelve 3s are the only choice"


def test_a_number_that_is_no_choice_is_answered_with_those_that_are():
    variant = configure("score_dice", pool_a=(6, 6, 6, 6), pool_b=(6, 6, 6, 6))
    state = Batch(variant, 1, seed=1).states[0]
    for legal, pick in (([0, 1, 2, 3], "1 to 4"), ([0, 1, 3], "1 or 2 or 4"), ([1, 2], "2 or 3")):
        assert explain_mistake(variant, state, legal, "9") == f"there is no choice 9; pick {pick}"


def test_no_number_says_something_else_than_the_words():
    for game in names():
        variant = configure(game)
        for number, action in number_choices(variant, range(variant.facts.num_actions)).items():
            alone = re.fullmatch(r"\D*(\d+)\D*", variant.describe_action(action))
            assert alone is None or int(alone.group(1)) == number


@pytest.mark.parametrize(
    ("game", "options", "played", "words", "said"),
    [
        ("liars_dice", {}, [6], "2 x 3", "2 x 3 does not raise 2 x 1: the lowest bid on 3 is now 3 x 3"),
        ("liars_dice", {}, [8], "2x1", "2 x 1 does not raise 2 x 3: no bid on 1 is legal now"),
        ("liars_dice", {}, [8], "3 1", "3 x 1 does not raise 2 x 3: no bid on 1 is legal now"),
        ("liars_dice", {"raise_rule": "either"}, [8], "2 1", "2 x 1 does not raise 2 x 3: the lowest bid on 1 is now 3 x 1"),
        ("liars_dice", {}, [], "call", "there is no bid to call yet"),
        ("liars_dice", {}, [], "c", "there is no bid to call yet"),
        ("liars_dice", {}, [50], "21", "there is no choice 21; pick 1 to 5"),
        ("liars_dice", {}, [8], "rasie", "'rasie' is no move"),
        ("fatestones", {"dice": (333333,) * 6}, [1, 1], "3", "there is no die 3: you have 2 left, 1 to 2"),
        ("score_dice", {}, [1, 1], "2", "die 2 has been shown in this roll"),
        ("shakes", {"mode": "maesters"}, [0, 0], "yield", "all others have yielded"),
        ("thirties", {}, [1], "3", "at least one die goes aside: 1 die lies on the table, so at most 0"),
        ("thirties", {}, [], "throw", "could be throw the lowest again, throw the 2 lowest again"),
    ],
)
def test_a_mistaken_word_is_explained(game, options, played, words, said):
    variant = configure(game, **options)
    batch = Batch(variant, 1, seed=2)
    for action in played:
        batch.play(np.array([action]))
    legal = np.flatnonzero(batch.legal()[0]).tolist()
    assert choose(variant, legal, words) is None
    assert said in explain_mistake(variant, batch.states[0], legal, words)


@pytest.mark.parametrize("game", names())
def test_rules_have_every_word_of_the_docstring(game):
    import importlib

    def words(sections):
        return " ".join(text for heading, paragraphs in sections for text in (heading, *paragraphs)).split()

    game = configure(game).game
    text = importlib.import_module(game.deal.__module__).__doc__
    assert words(sections(game)) == text.split()
    assert rules_text(game).split() == [*game.title.upper().split(), *words(rules_for_players(game))]
    assert all(len(line) <= 130 for line in rules_text(game).splitlines())
    assert [section.heading for section in sections(game)][:2] == ["", "Play"]


@pytest.mark.parametrize("columns", [40, 57, 100])
def test_text_is_broken_between_words(columns, monkeypatch, capsys):
    monkeypatch.setattr(console, "width", columns)
    text = help_text(configure("liars_dice"))
    say(text)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert all(re.match(r"\S|  \S| {13}\S", line) for line in lines), "what continues a command stands below its meaning"
