"""The graph of a review."""

import pytest

from dice_envs.evaluation import Scale
from dice_envs.table.advice import Judged, Point, Split, level

pytest.importorskip("nicegui")
from dice_envs.experiments.web.panels import chance_graph

WINS = Scale(0.5, 0.5, "games won", True, 0.0, 1.0)
PIPS = Scale(0.0, 1.0, "pips", False, 0.0, 36.0)


def split(points, scale=WINS):
    values = [value for _, value, _ in points]
    return Split(values[0], values[-1], 0.0, 0.0, tuple(Point(*point) for point in points), "", scale)


LOST = [(0, 0.5, "luck"), (0, 0.6, "luck"), (1, 0.5, "play"), (1, 0.7, "luck"), (2, 0.7, "play"), (3, 0.0, "luck")]


def test_a_graph_has_each_step_by_its_cause():
    blunder = Judged(1, 0, 4, "3 x <5>", 0.1, 5, "", mark="blunder")
    graph = chance_graph(split(LOST), {1: "player 1: 3 x <5>"}, {1: blunder}, 2, "<b>'s")
    every, own = (each["data"] for each in graph["series"])
    assert [dot["value"] for dot in every] == [(0, 50), (0, 60), (0.5, 50), (1, 70), (2, 70), (3, 0)]
    assert own == [(0, 60), (0.5, 50), (None, None), (1, 70), (2, 70), (None, None)]
    assert every[1]["name"] == "before the first move<br>60 % (+10 %, dice and others)"
    assert every[2]["name"] == "move 1: Ben: 3 x &lt;5&gt;<br>50 % (−10 %, &lt;b&gt;&#x27;s play)"
    assert [dot["label"]["formatter"] for dot in every if "label" in dot] == ["??"]
    assert graph["series"][0]["markLine"]["data"] == [{"xAxis": 2}]


def test_a_graph_of_points_has_their_unit_and_a_long_one_no_dots():
    graph = chance_graph(split([(0, -1234.5, "luck"), (700, 0.25, "play")], PIPS), {}, {}, 0, "your")
    assert [dot["value"] for dot in graph["series"][0]["data"]] == [(0, -1234.5), (700, 0.25)]
    assert (graph["xAxis"]["max"], "max" in graph["yAxis"]) == (700, False)
    many = chance_graph(split([(k, (k % 7) / 7, "play" if k % 2 else "luck") for k in range(200)]), {}, {}, 0, "your")
    assert {dot["symbolSize"] for dot in many["series"][0]["data"]} == {0}
    assert [level(0.414, WINS), level(0.414, PIPS), level(1234.0, PIPS)] == ["41 %", "0.414", "1,234"]
