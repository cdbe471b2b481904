"""Tables on the terminal, on a page and in Markdown."""

from xml.etree import ElementTree

from rich.text import Text

from dice_envs.experiments.ui.grids import Grid

ROWS = [("a | b", "1.5", Text("no", "red")), ("<b>", "12.5", Text("yes", "green"))]
GRID = Grid("both & one", ("name", "figure", "agrees"), ROWS, words=(0, 2), rules=(0,))


def test_on_the_terminal(capsys):
    GRID.show()
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "both & one",
        "┏━━━━━━━┳━━━━━━━━┳━━━━━━━━┓",
        "┃ name  ┃ figure ┃ agrees ┃",
        "┡━━━━━━━╇━━━━━━━━╇━━━━━━━━┩",
        "│ a | b │    1.5 │ no     │",
        "├───────┼────────┼────────┤",
        "│ <b>   │   12.5 │ yes    │",
        "└───────┴────────┴────────┘",
    ]


def test_without_headings_on_the_terminal(capsys):
    Grid("", (), [("mean", "1"), ("median", "2")], words=(0, 1)).show()
    assert capsys.readouterr().out.splitlines()[1:3] == ["│ mean   │ 1 │", "│ median │ 2 │"]


def test_on_a_page():
    table = ElementTree.fromstring(GRID.html())
    assert table.findtext("caption") == "both & one"
    assert [(each.text, each.get("class")) for each in table.iter("th")] == [
        ("name", "w"), ("figure", None), ("agrees", "w")
    ]  # fmt: skip
    assert [(each.text, each.get("class")) for each in table.iter("td")] == [
        ("a | b", "w"), ("1.5", None), ("no", "w no"), ("<b>", "w"), ("12.5", None), ("yes", "w")
    ]  # fmt: skip


def test_in_markdown():
    assert GRID.markdown() == [
        "| name | figure | agrees |",
        "| :-- | --: | :-- |",
        "| a \\| b | 1.5 | no |",
        "| <b> | 12.5 | yes |",
    ]
