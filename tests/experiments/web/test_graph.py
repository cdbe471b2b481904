"""The graph of a review as SVG."""

import re
from xml.etree import ElementTree

import pytest

from dice_envs.evaluation import Scale
from dice_envs.table.review import Judged, Point, Split, level

pytest.importorskip("nicegui")
from dice_envs.experiments.web.panels import chance_graph

WINS = Scale(0.5, 0.5, "games won", True, 0.0, 1.0)
PIPS = Scale(0.0, 1.0, "pips", False, 0.0, 36.0)


def split(points, scale=WINS):
    values = [value for _, value, _ in points]
    return Split(values[0], values[-1], 0.0, 0.0, tuple(Point(*point) for point in points), "", scale)


LOST = [(0, 0.5, "luck"), (0, 0.6, "luck"), (1, 0.5, "play"), (1, 0.7, "luck"), (2, 0.7, "play"), (3, 0.0, "luck")]


def test_a_graph_has_each_step_by_its_cause():
    slip = Judged(1, 0, 4, "3 x <5>", 0.1, 5, "", mark="blunder")
    graph = chance_graph(split(LOST), {1: "you: 3 x <5>"}, {1: slip}, here=2)
    root = ElementTree.fromstring(graph)
    steps = [each.get("class") for each in root.iter("path") if each.get("class") in ("play", "luck")]
    assert steps == [by for _, _, by in LOST[1:]]
    titles = [each.text for each in root.iter("title")]
    assert titles[0] == "before the first move\n60 % (+10 %, dice and others)"
    assert titles[1] == "move 1: you: 3 x <5>\n50 % (−10 %, your play)"
    assert [group.get("data-at") for group in root.iter("g")] == [str(number) for number, _, _ in LOST[1:]]
    assert root.get("aria-label") == "Graph of your chance to win after each move: 50 % at the start, 0 % at the end."
    assert "??" in [text.text for text in root.iter("text")]


@pytest.mark.parametrize(
    ("points", "scale"),
    [
        ([(0, 20.0, "luck"), (1, 20.0, "luck")], PIPS),
        ([(0, 0.0, "luck"), (0, 0.0, "play"), (1, 0.0, "luck")], PIPS),
        ([(0, -1234.5, "luck"), (700, 0.25, "play")], PIPS),
        ([(0, 1.0, "luck"), (1, 1.0, "luck")], WINS),
        ([(k, (k % 7) / 7, "play" if k % 2 else "luck") for k in range(200)], WINS),
    ],
)
def test_all_of_a_graph_lies_inside(points, scale):
    root = ElementTree.fromstring(chance_graph(split(points, scale), {}, {}))
    steps = [each.get("d") for each in root.iter("path") if each.get("class") in ("play", "luck")]
    places = [tuple(map(float, place.split())) for step in steps for place in re.split("[ML]", step)[1:]]
    assert len(places) == 2 * len(points) - 2
    assert all(0 <= x <= 380 and 0 <= y <= 210 for x, y in places)
    assert len(list(root.iter("text"))) < 20


def test_levels_in_words():
    assert [level(0.414, WINS), level(0.414, PIPS), level(1234.0, PIPS)] == ["41 %", "0.414", "1,234"]
