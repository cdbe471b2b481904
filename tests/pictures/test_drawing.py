"""Pictures as SVG and text: their contents, and the same layout for SVG and image."""

from xml.etree import ElementTree

import numpy as np
import pytest

from dice_envs import Batch, configure
from dice_envs.core.game import OVER, names
from dice_envs.core.view import Bar, Die, Group, Picture, Row, Tone
from dice_envs.pictures import drawing
from dice_envs.pictures.drawing import NARROW_WIDTH, PIPS, WIDTH, Circle, Polygon, Rect, Text, layout
from dice_envs.pictures.render import ansi, frame_size, in_words, rgb_array, svg
from tests.games.test_conformance import played_on
from tests.support.liars_dice_tables import position
from tests.support.variants import IDS, MARKED

every_game = pytest.mark.parametrize("name", names())
NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(drawn):
    """All texts of an SVG; a text of several lines counts as one."""
    return [" ".join("".join(text.itertext()).split()) for text in ElementTree.fromstring(drawn).iter(f"{NAMESPACE}text")]


def test_a_picture_in_a_line_is_in_words():
    own = Row("you", (1, 4), mark="to move")
    other = Row("player 1", (None, None), groups=(Group("2 ×", (4,)),))
    dice = Row("dice", groups=(Group("1", (3, 4), strip=True), Group("2", (5,), strip=True, tone=Tone.BRIGHT)))
    words = "you (to move): 1 4. player 1: 2 hidden dice; 2 × 4. dice: 1 = 3 4, * 2 = 5. no bid yet"
    assert in_words(Picture("A game", (own, other, dice), ("no bid yet",))) == words
    assert in_words(Picture("", (Row("B", (Die(None, label="1"), Die(5, label="2"))),))) == "B: die 1: ?, die 2: 5"


@pytest.mark.parametrize(("name", "options"), MARKED, ids=IDS)
def test_every_picture_is_a_well_formed_svg_with_all_its_words(name, options):
    variant = configure(name, **options)
    for state in played_on(variant, 3, (0, 2, 5, 400)).states:
        for viewer in (None, 0):
            picture = variant.picture(state, viewer)
            drawn = svg(picture)
            root = ElementTree.fromstring(drawn)
            assert root.tag == f"{NAMESPACE}svg"
            assert root.get("role") == "img"
            assert root.findtext(f"{NAMESPACE}title") == picture.title
            said = texts(drawn)
            for words in (picture.title, *(row.caption for row in picture.rows), *picture.notes):
                assert " ".join(words.split()) in said
            for row in picture.rows:
                assert row.mark in ("", *said)
                assert row.detail in ("", *said)
            described = root.findtext(f"{NAMESPACE}desc")
            assert all(row.caption in described for row in picture.rows)
            hidden = sum(not isinstance(die, Die) and die is None for row in picture.rows for die in row.dice)
            hidden += sum(isinstance(die, Die) and die.face is None for row in picture.rows for die in row.dice)
            assert said.count("?") == hidden
            narrow = svg(picture, narrow=True)
            assert int(ElementTree.fromstring(narrow).get("width")) == NARROW_WIDTH
            assert sorted(texts(narrow)) == sorted(said)


@pytest.mark.parametrize(("name", "options"), MARKED, ids=IDS)
@pytest.mark.parametrize("width", [WIDTH, NARROW_WIDTH])
def test_all_that_is_drawn_lies_within_the_picture(name, options, width):
    variant = configure(name, **options)
    for picture in (variant.full_picture(), *(variant.picture(state) for state in played_on(variant, 4, (0, 4, 400)).states)):
        diagram = layout(picture, width=width)
        assert diagram.width == width
        for shape in diagram.shapes:
            if isinstance(shape, Rect):
                corners = [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
            elif isinstance(shape, Circle):
                corners = [(shape.cx - shape.r, shape.cy - shape.r), (shape.cx + shape.r, shape.cy + shape.r)]
            else:
                corners = list(shape.points) if isinstance(shape, Polygon) else [(shape.x, shape.y)]
            assert all(0 <= x <= diagram.width and 0 <= y <= diagram.height for x, y in corners), shape


@every_game
def test_svg_and_image_have_one_size(name):
    variant = configure(name)
    (state,) = played_on(variant, 5, [1]).states
    picture = variant.picture(state)
    for size in (None, frame_size(variant), (200, 320)):
        root = ElementTree.fromstring(svg(picture, size))
        assert (int(root.get("height")), int(root.get("width")), 3) == rgb_array(picture, size).shape
        left, top, width, height = map(float, root.get("viewBox").split())
        assert (left, top) == (0, 0)
        assert width == pytest.approx(height * int(root.get("width")) / int(root.get("height")), abs=0.02)
        assert width >= WIDTH - 0.01, "all of it can be seen"
        assert height >= layout(picture).height - 0.01


def test_a_row_of_a_caption_and_dice_is_enough():
    picture = Picture("Plain", (Row("one", (1, 4, None)), Row("two", (20, 100)), Row("a line of text")), ("a note",))
    drawn = svg(picture)
    assert texts(drawn) == ["Plain", "one", "?", "two", "20", "100", "a line of text", "a note"]
    assert len(list(ElementTree.fromstring(drawn).iter(f"{NAMESPACE}circle"))) == 1 + 4
    assert rgb_array(picture).std() > 0
    assert {"one", "two", "a line of text", "a note"} <= set(ansi(picture).splitlines())
    assert picture._repr_svg_() == drawn
    assert str(picture) == ansi(picture)


def test_a_mark_points_at_the_middle_of_its_row():
    panel, mark = (
        next(shape for shape in layout(Picture("", (Row("one", (1, 2), mark="to move"),))).shapes if isinstance(shape, kind))
        for kind in (Rect, Polygon)
    )
    left, tip, right = mark.points
    assert tip[1] == (left[1] + right[1]) / 2 == panel.y + panel.height / 2


def test_a_caption_and_dice_keep_their_columns_and_dice_stand_in_the_middle_of_their_line():
    shapes = layout(Picture("", (Row("n" * 40, (Die(1, label="12"), 2)),))).shapes
    (caption,) = (shape for shape in shapes if isinstance(shape, Text) and shape.lines[0].startswith("n"))
    assert all(drawing.text_width(line, drawing.CAPTION_SIZE, bold=True) < drawing.CAPTION for line in caption.lines)
    labelled, plain = (shape for shape in shapes if isinstance(shape, Rect) and shape.width == shape.height)
    assert labelled.x == pytest.approx(drawing.MARGIN + drawing.INDENT + drawing.CAPTION, abs=1)
    assert plain.y - labelled.y == pytest.approx(drawing.LABEL_SIZE * drawing.LEADING / 2)


def test_words_are_escaped():
    title = '<b> & "quotes" \x00\x1b'
    root = ElementTree.fromstring(svg(Picture(title, (Row("</svg>", (1,), detail="a < b"),), ("&amp;",))))
    assert root.get("aria-label") == root.findtext(f"{NAMESPACE}title") == '<b> & "quotes" '
    assert [text.text for text in root.iter(f"{NAMESPACE}text")][1:] == ["</svg>", "a < b", "&amp;"]


def test_every_face_has_its_pips():
    for face in PIPS:
        shapes = layout(Picture("", (Row("", (face,)),))).shapes
        assert sum(isinstance(shape, Circle) for shape in shapes) == face


def test_no_two_dice_lie_on_each_other():
    """In groups, labels, strips and opposite rows, with too many dice for one line."""
    for count in (1, 8, 9, 10, 19, 60):
        dice = (Die(3, label="12"),) * count
        rows = (
            Row("dice", dice, groups=(Group("10 ×", (5,)),) * count),
            Row("above", dice, facing=True),
            Row("below", dice),
            Row("rest", (1,), outcomes=(True, False) * count, groups=(Group("a:", (2,) * count),), bar=Bar(20, 30, 36)),
        )
        boxes = [s for s in layout(Picture("", rows)).shapes if isinstance(s, Rect) and s.width == s.height]
        assert len(boxes) == 5 * count + 1
        corners = sorted((box.y, box.x, box.width) for box in boxes)
        for i, (y, x, width) in enumerate(corners):
            for below, right, _ in corners[i + 1 :]:
                assert below >= y + width or right >= x + width or right + width <= x


def test_rows_that_face_each_other_stay_in_columns():
    for count in (3, 24):
        rows = (Row("A", (Die(6, Tone.BRIGHT),) * count, facing=True), Row("B", (1,) * count))
        boxes = [s for s in layout(Picture("", rows)).shapes if isinstance(s, Rect) and s.width == s.height]
        gold = [box for box in boxes if box.fill != "#ffffff"]
        plain = [box for box in boxes if box.fill == "#ffffff"]
        assert [box.x for box in gold] == [box.x for box in plain]
        down = [below.y - above.y for above, below in zip(gold, plain, strict=True)]
        assert down == pytest.approx([down[0]] * count)
        assert down[0] > 0


def test_text_tells_which_dice_count():
    rows = (
        Row("hand", groups=(Group("10 ×", (5,)), Group("shown:", (Die(5, Tone.BRIGHT), Die(2, Tone.FADED), None)))),
        Row("stones", groups=(Group("A", (1, 2, 3, 3, 5, 6), strip=True),)),
        Row("patients", outcomes=(True, True, False), mark="to speak"),
        Row("score", bar=Bar(17, 30, 36)),
        Row("many", tuple(range(1, 21))),
    )
    lines = ansi(Picture("Text", rows)).splitlines()[3:]
    assert lines[:5] == [
        "hand: 10 × 5, shown: [5] (2) ?",
        "stones",
        "  A  1 2 3 3 5 6",
        "patients: ●●○ <- to speak",
        "score: 17 of 30",
    ]
    assert " ".join(lines[6:]).split() == [str(face) for face in range(1, 21)]


def test_liars_dice_brightens_what_counts_for_the_bid():
    variant = configure("liars_dice", num_dice=3, wild="ones")
    state = position(variant, [[1, 5, 6], [3, 3, 5]], [2 * 6 + 4, variant.params.call])  # 3 x 5
    picture = variant.picture(state, 1)
    call = next(row for row in picture.rows if row.caption == "the last call")
    bright = [[die.face for die in group.dice if die.tone is Tone.BRIGHT] for group in call.groups]
    assert bright == [[1, 5], [5]]
    assert any("there were 3, so you lose a die" in note for note in picture.notes)


def test_the_die_that_a_maester_keeps_is_bright():
    """Also in the last picture, in which its patient has been saved."""
    variant = configure("shakes", num_players=2, num_patients=6)
    batch = Batch(variant, 20, seed=9)
    kept = last = 0
    while len(playing := np.flatnonzero(batch.seats != OVER)):
        batch.play(np.ones(len(playing), int), playing)
        for state in batch.states:
            rows = variant.picture(state).rows
            for seat in np.flatnonzero(state["argued"]):
                dice = rows[seat].groups[0].dice
                bright = [die.face for die in dice if die.tone is Tone.BRIGHT]
                assert bright == ([state["strength"][seat]] if state["strength"][seat] else [])
                kept += len(bright)
                last += state["seat"] == OVER and state["last_recovered"] == 1
    assert kept > 100
    assert last > 0


def test_what_is_marked_in_a_strip_lies_within_its_cell():
    dice = tuple(Die(face, Tone.BRIGHT if face in (2, 6) else Tone.PLAIN) for face in range(1, 7))
    drawn = layout(Picture("", (Row("strip", groups=(Group("", dice, strip=True),)),))).shapes
    strip, *parts = [shape for shape in drawn if isinstance(shape, Rect) and shape.stroke][-3:]
    assert len(parts) == 2
    for cell, mark in zip((1, 5), parts, strict=True):
        assert mark.width == mark.height == strip.height
        assert (mark.x - strip.x, mark.y) == (pytest.approx(cell * (strip.width - strip.height) / 5), strip.y)
