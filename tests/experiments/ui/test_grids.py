"""Tables on the terminal and in Markdown."""

import collections
import contextlib
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from dice_envs.experiments.ui import console
from dice_envs.experiments.ui.grids import Grid, figure_text, plus_minus

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


def test_without_headings_also_on_a_narrow_terminal(capsys, monkeypatch):
    Grid("", (), [("mean", "1"), ("median", "2")], words=(0, 1)).show()
    assert capsys.readouterr().out.splitlines()[1:3] == ["│ mean   │ 1 │", "│ median │ 2 │"]
    monkeypatch.setattr(console, "width", 14)
    Grid("", (), [("mean", "exactly", "1")], words=(0, 1)).show()
    assert capsys.readouterr().out.splitlines()[1::2] == ["│ mean │ 1 │", "mean: exactly"]


@given(
    rows=st.lists(st.lists(st.lists(st.text("abc.", min_size=1, max_size=12), max_size=6), min_size=4, max_size=4), min_size=1),
    width=st.integers(40, 100),
)
def test_no_word_is_broken_where_columns_of_words_can_stand_below(rows, width):
    cells = [[" ".join(words) for words in row] for row in rows]
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as out, contextlib.redirect_stdout(out):
        patch.setattr(console, "width", width)
        Grid("", ("name", "figure", "unit", "note"), cells, words=(0, 2, 3)).show()
        printed = out.getvalue()
    assert max(len(line) for line in printed.splitlines() if line[:1] in "┏┃┡│└") <= width
    shown = collections.Counter(re.sub("[^abc. ]", " ", printed).split())
    assert not collections.Counter(word for row in rows for cell in row for word in cell) - shown


def test_figures_stand_below_where_no_word_need_break_then(capsys, monkeypatch):
    rows = [("1", "thirties:heuristic", "0.5", "1.0", "0.06 / 0.2", "")]
    grid = Grid("", ("", "agent", "value (probability)", "score", "ms/move", "steps"), rows, words=(1, 5))
    monkeypatch.setattr(console, "width", 55)
    grid.show()
    shown = capsys.readouterr().out.splitlines()
    assert shown[-3] == "│ 1 │ thirties:heuristic │                0.5 │   1.0 │"
    assert shown[-1] == "thirties:heuristic: ms/move 0.06 / 0.2"


def test_in_markdown():
    assert GRID.markdown() == [
        "| name | figure | agrees |",
        "| :-- | --: | :-- |",
        "| a \\| b | 1.5 | no |",
        "| <b> | 12.5 | yes |",
    ]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("12.35 ± 0.46", (12.345678, 0.456)),
        ("12.3", (12.345678, None, 1)),
        ("49.9 ± 1.8", (0.49926, 0.01843, 1, True)),
        ("+0.1 ± 0.0", (0.1, 0.0, 1, False, True)),
        ("-5 ± 25", (-0.05, 0.25, 0, True, True)),
        ("0.00 ± 0.01", (-0.0001, 0.01)),  # nothing is minus nought
    ],
)
def test_a_figure_and_its_interval(text: str, arguments: tuple):
    assert plus_minus(*arguments) == text
    assert figure_text(-1e-9) == "0"
