"""Score sheets to print: one page with everything that the options ask for."""

import re
from html.parser import HTMLParser

import pytest

from dice_envs.core.options import option_texts
from dice_envs.games.shakes import TREATMENTS
from tests.support.commands import done
from tests.support.golden import FOLDER, SHEET

NAMED = ("<b>Ada", "Ł & Co", 'the "x"')


@pytest.fixture
def written(tmp_path):
    """A function that returns the sheet of some options as text."""

    def write(paper="a4", **options):
        given = [part for each in option_texts(options) for part in ("-o", each)]
        done("sheet", "shakes", tmp_path / "sheet.html", "--paper", paper, *given)
        return (tmp_path / "sheet.html").read_text(encoding="utf-8")

    return write


def words_of(text):
    parser, words = HTMLParser(), []
    parser.handle_data = words.append
    parser.feed(text)
    return " ".join("".join(words).split())


def test_it_says_what_the_options_say(written):
    text = written("letter", treatments="rules", maesters=NAMED, num_patients=9, goal=4)
    assert "@page { size: 8.5in 11in;" in text
    assert "<b>Ada" not in text
    said = words_of(text)
    assert all(name in said for name in (*NAMED, *TREATMENTS[:3]))
    assert "9 patients, the team wins with 4 saved or more" in said
    assert "efficacies 4, 1, 1 in secret" in said
    assert "Treatments to choose from" not in said
    assert "Allen Downey" in said
    assert "BY-NC-SA" in said
    blank = words_of(written(open_efficacies=True))
    assert all(name in blank for name in TREATMENTS)
    assert "for all to see" in blank
    assert "in secret" not in blank
    competitive = words_of(written(variation="competitive", efficacy=4))
    assert "Who first saves 3 wins." in competitive
    assert "a treatment that saves 4 patients in 6" in competitive


@pytest.mark.parametrize(("patients", "boxes"), [(12, 12), (18, 18), (25, 1)])
def test_there_is_a_box_for_each_patient(patients, boxes, written):
    lines = re.findall(r"<small>treated</small>(.*)</div>", written(num_players=2, num_patients=patients, goal=1))
    assert [line.count("<i") for line in lines] == [boxes, boxes]


def test_the_sheet_is_the_golden_one(written):
    assert written() == (FOLDER / SHEET).read_text(), "if that is meant, `make figures NAME=golden` writes it anew"
