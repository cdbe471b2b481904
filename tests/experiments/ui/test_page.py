"""Pages are complete, well-formed and self-contained."""

import functools
import re
from xml.etree import ElementTree

import pytest

from dice_envs.experiments.reproduce import Chapter, Finding, fatestones, liars_dice, sections_of
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.pages import About, Section, command_line, plots_noted, render, saved_plot, write_page
from tests.experiments.ui.test_grids import GRID
from tests.support.commands import with_json


def parsed(text):
    """Parse the page, which is XML except for its first line, and refers to nothing outside."""
    first, _, rest = text.partition("\n")
    assert first == "<!DOCTYPE html>"
    tree = ElementTree.fromstring(rest)
    anchors = {each.get("id") for each in tree.iter() if each.get("id")}
    for each in tree.iter():
        if each.get("src") is not None:
            assert each.get("src").startswith("data:image/png;base64,")
        if each.get("href") is not None:
            assert each.get("href").startswith("#")
            assert each.get("href")[1:] in anchors
        assert each.tag not in ("link", "script", "iframe")
    (style,) = tree.iter("style")
    assert not re.search(r"url\(|@import", style.text)
    assert "prefers-color-scheme: dark" in style.text
    return tree


def shown(tree):
    """All the text of a page."""
    return " ".join("".join(tree.itertext()).split())


def test_a_page_is_whole(tmp_path):
    with plots_noted() as plots, saved_plot(tmp_path, "one", "a <caption> & more") as (_, axes):
        axes.plot([1, 2])
    rows = [[f"<b>{number}</b>", str(number)] for number in range(60)]
    sections = [Section("A & B", ["x < y"], [Grid("long", ("what", "how much"), rows)], plots), Section("A & B", ["again"])]
    path = write_page(tmp_path, "A title", ["hello"], sections, About("python -m x 'a b'", {"games": 5}, 7))
    assert path == tmp_path / "index.html"
    tree = parsed(path.read_text())
    assert len(list(tree.iter("img"))) == len(list(tmp_path.glob("*.png"))) == 1
    assert len(list(tree.iter("details"))) == 1, "a long table is folded"
    text = shown(tree)
    for words in ("x < y", "<b>59</b>", "a <caption> & more", "python -m x 'a b'", "seed7", "numba", "dice-envs", "UTC"):
        assert words in text.replace("seed 7", "seed7"), words
    figures = [each for each in tree.iter("td") if each.get("class") is None]
    assert len(figures) == 60, "one column of the two holds figures"


def test_a_table_has_columns_of_words_and_of_figures():
    (table,) = parsed(render("t", [], [Section("A", grids=[GRID])], About("c", {}))).iter("table")
    assert table.findtext("caption") == "both & one"
    assert [(each.text, each.get("class")) for each in table.iter("th")] == [
        ("name", "w"), ("figure", None), ("agrees", "w")
    ]  # fmt: skip
    assert [(each.text, each.get("class")) for each in table.iter("td")] == [
        ("a | b", "w"), ("1.5", None), ("no", "w no"), ("<b>", "w"), ("12.5", None), ("yes", "w")
    ]  # fmt: skip


def test_a_chapter_is_told_by_source():
    rows = [
        Finding("one", "a", 1.0, 1.0, 0.0, True),
        Finding("one", "b", 2.0, 3.0, 0.5, False, "a slip"),
        Finding("two", "c", None, "text"),
    ]
    (section,) = sections_of(Chapter("The game", rows, 3))
    assert section.text[0].startswith("1 of 2 ")
    wrong, one, two = section.grids
    assert wrong.rows == one.rows[1:]
    first, *others = sections_of(Chapter("The game", rows, 3), apart=True)
    assert (first.grids, [each.title for each in others]) == ([wrong], ["one", "two"])
    assert [str(row[4]) for row in one.rows] == ["yes", "no"]
    assert one.rows[1][1:4] == ("2", "3", "0.5")
    assert [str(cell) for cell in two.rows[0]] == ["c", "-", "text", "exact", "", ""]
    tree = parsed(render("t", [], [section], About("c", {})))
    assert sum(each.get("class") == "w no" for each in tree.iter("td")) == 2
    assert "nothing was drawn" in shown(tree)


def test_a_command_is_told_as_it_is_typed():
    given = {"games": 5, "log": ["a b", "c"], "exact": True, "resume": False, "report": None}
    assert command_line("arena", given) == "dice-envs arena --games 5 --log 'a b' --log c --exact"


def test_reproduce_writes_a_page(tmp_path):
    _, found = with_json(tmp_path, "reproduce", "thirties", "--report", tmp_path)
    tree = parsed((tmp_path / "index.html").read_text())
    assert len(list(tree.iter("img"))) == len(list(tmp_path.glob("*.png"))) == 1
    rows = found["rows"]
    assert {"source", "figure", "published", "ours", "error", "agrees", "note"} == set(rows[0])
    text = shown(tree)
    assert f"{len(rows)} figures in all" in text
    assert f"dice-envs reproduce thirties --report {tmp_path}" in text
    for row in rows[:3]:
        assert row["figure"] in text


@pytest.mark.thorough
def test_all_sources_on_one_page(tmp_path, monkeypatch):
    """With less work than alone for the two that take minutes."""
    less = {fatestones: {"draws": 200, "work": 0.01, "most": 100}, liars_dice: {"dice": 2}}
    for module, given in less.items():
        monkeypatch.setattr(module, "main", functools.partial(module.main, **given))
    _, data = with_json(tmp_path, "reproduce", "all", "--games", 1000, "--seed", 1, "--report", tmp_path)
    tree = parsed((tmp_path / "index.html").read_text())
    assert len(list(tree.iter("img"))) == len(list(tmp_path.glob("*.png"))) > 20
    assert list(data["sources"]) == ["fatestones", "liars_dice", "score_dice", "shakes", "thirties"]
    assert all(data["sources"].values())
