"""Score sheets to print: one page with everything that the options ask for, without overlaps."""

import re
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from dice_envs import configure
from dice_envs.experiments.__main__ import app
from dice_envs.experiments.sheets import PAPERS, write_sheet
from dice_envs.experiments.sheets.shakes import sheet
from dice_envs.games.shakes import TREATMENTS
from dice_envs.pictures.drawing import LEADING, Circle, Rect, Text, text_width
from tests.support.golden import FOLDER, SHEET
from tests.support.subsets import covering

NAMED = ("<b>Ada", "Ł & Co", 'the "x"')
TABLES = [
    {},
    {"treatments": "rules", "maesters": NAMED},
    {"num_players": 6, "open_efficacies": True},
    {"num_players": 6, "num_patients": 40, "ties": "random"},
    {"num_players": 6, "num_patients": 200},
    {"num_players": 2, "num_patients": 1, "goal": 1},
    {"num_players": 6, "variation": "competitive", "efficacy": 5, "num_patients": 100},
    {"variation": "competitive", "goal": 30},
    {"mode": "physician", "num_players": 5},
    {"mode": "physician", "num_players": 6, "num_patients": 40, "maesters": tuple("abcdef"), "open_efficacies": True},
    {"treatments": tuple(letter * 24 for letter in "WMX"), "maesters": tuple(letter * 24 for letter in "WMX")},
]


def words_of(shapes):
    return " ".join(" ".join(shape.lines) for shape in shapes if isinstance(shape, Text))


@covering(("paper", "options"), PAPERS, TABLES)
def test_all_fits_on_one_page(options, paper):
    size = PAPERS[paper]
    shapes = sheet(configure("shakes", **options), size).shapes
    texts = []
    for shape in shapes:
        if isinstance(shape, Rect):
            box = shape.x, shape.y, shape.x + shape.width, shape.y + shape.height
        elif isinstance(shape, Circle):
            box = shape.x - shape.radius, shape.y - shape.radius, shape.x + shape.radius, shape.y + shape.radius
        else:
            width = max(text_width(line, shape.size, shape.bold) for line in shape.lines)
            left = shape.x - (width / 2 if shape.anchor == "middle" else 0)
            box = left, shape.y - 0.75 * shape.size, left + width, shape.y + shape.size * LEADING * (len(shape.lines) - 1)
            texts.append((box, shape))
        assert 30 <= box[0] <= box[2] <= size.width - 30, shape
        assert 30 <= box[1] <= box[3] <= size.height - 30, shape
    for i, (box, shape) in enumerate(texts):
        for other, beside in texts[:i]:
            apart = box[0] >= other[2] or other[0] >= box[2] or box[1] >= other[3] or other[1] >= box[3]
            assert apart, (shape, beside)


def test_it_says_what_the_options_say():
    said = words_of(sheet(configure("shakes", treatments="rules", maesters=NAMED, num_patients=9, goal=4), PAPERS["a4"]).shapes)
    assert all(name in said for name in (*NAMED, *TREATMENTS[:3]))
    assert "9 patients, the team wins with 4 saved or more" in said
    assert "efficacies 4, 1, 1 in secret" in said
    assert "Treatments to choose from" not in said
    assert "Allen Downey" in said
    assert "BY-NC-SA" in said
    blank = words_of(sheet(configure("shakes", open_efficacies=True), PAPERS["a4"]).shapes)
    assert all(name in blank for name in TREATMENTS)
    assert "for all to see" in blank
    assert "in secret" not in blank
    competitive = words_of(sheet(configure("shakes", variation="competitive", efficacy=4), PAPERS["a4"]).shapes)
    assert "The first to save 3 wins." in competitive
    assert "Every treatment has efficacy 4." in competitive


@pytest.mark.parametrize(("patients", "boxes"), [(12, 12), (18, 18), (25, 1)])
def test_there_is_a_box_for_each_patient(patients, boxes):
    shapes = sheet(configure("shakes", num_players=2, num_patients=patients, goal=1), PAPERS["a4"]).shapes
    first = next(shape for shape in shapes if isinstance(shape, Text) and shape.lines == ("treated",))
    line = [shape for shape in shapes if isinstance(shape, Rect) and abs(shape.y + shape.height / 2 - first.y + 3.5) < 1e-6]
    assert len([shape for shape in line if shape.x > first.x]) == boxes


def run(*words):
    return CliRunner().invoke(app, ["sheet", *map(str, words)])


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_the_command_writes_a_well_formed_page(ending, tmp_path):
    path = tmp_path / f"sheet.{ending}"
    done = run("shakes", path, "-o", "maesters=<b>Ada,Ł & Co,Cleo", "-o", "treatments=rules", "--paper", "letter")
    assert done.exit_code == 0, done.output
    text = path.read_text(encoding="utf-8")
    assert "<b>" not in text
    svg = re.search(r"<svg.*</svg>", text, re.S)[0]
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("8.5in", "11in")
    assert "<b>Ada" in "".join(root.itertext())
    assert ("@page { size: 8.5in 11in; margin: 0 }" in text) == (ending == "html")


def test_what_cannot_be_written_is_named(tmp_path):
    for words, message in (
        (("liars_dice", tmp_path / "a.svg"), "liars_dice has no score sheet; those that have: shakes"),
        (("shakes", tmp_path / "a.png"), "a score sheet is written as .svg or .html, not 'a.png'"),
        (("shakes", tmp_path / "a.svg", "--paper", "a5"), "paper must be one of 'a4', 'letter', not 'a5'"),
        (("shakes", tmp_path / "a.svg", "-o", "maesters=a,b"), "maesters must be 3 names"),
        (("shakes", tmp_path), "a score sheet is written as .svg or .html"),
    ):
        done = run(*words)
        assert done.exit_code != 0
        assert message in " ".join(done.output.split()), done.output
    assert not list(tmp_path.iterdir())
    (tmp_path / "b.svg").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_sheet(tmp_path / "b.svg", configure("shakes"))


def test_the_sheet_is_the_golden_one(tmp_path):
    write_sheet(tmp_path / SHEET, configure("shakes"))
    assert (tmp_path / SHEET).read_text() == (FOLDER / SHEET).read_text(), "if that is meant, `make golden` writes it anew"
