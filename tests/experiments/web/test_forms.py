"""What the page computes without a browser: options as fields of a form, the layout of legal moves, the graph of a review."""

import pytest

from dice_envs import configure, load, names
from dice_envs.evaluation import Scale
from dice_envs.exact.contract import GAMES_WON, Unit
from dice_envs.table.advice import Judged, Point, Split, level
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.interfaces import refused
from tests.support.subsets import few
from tests.support.variants import ALL_OF_PERUDO

pytest.importorskip("nicegui")
from dice_envs.experiments.web.panels import arrange, chance_graph
from dice_envs.experiments.web.start_page import fields_of, follows, in_labels, options_of


@pytest.mark.parametrize("game", names())
def test_every_option_has_a_field(game):
    fields = fields_of(load(game))
    defaults = load(game).configure()
    assert list(fields) == list(vars(defaults.options))
    assert options_of(load(game), {name: field.default for name, field in fields.items()}) == {}
    for name, field in fields.items():
        assert field.meaning(field.default) or field.words.meanings, name
        for value in field.choices:
            options_of(load(game), {name: value})


def test_fields_are_read_as_the_command_line_reads_options():
    game = load("liars_dice")
    values = {"num_players": 3.0, "num_dice": "1, 2,3", "wild": None, "past_rounds": False, "rounds": "single"}
    assert options_of(game, values) == {"num_players": 3, "num_dice": (1, 2, 3), "past_rounds": False, "rounds": "single"}
    fields = fields_of(game)
    assert fields["num_players"].number
    assert (dict(fields["num_dice"].choices), fields["num_dice"].number) == ({}, False), "a text"
    assert list(fields["wild"].choices)[-1] is None
    assert list(fields["past_rounds"].choices) == [True, False]
    assert options_of(load("shakes"), {"goal": 4.0, "num_patients": None}) == {"goal": 4}
    named = {"treatments": "hot bath, wall of fire,<b>", "maesters": "none"}
    assert options_of(load("shakes"), named) == {"treatments": ("hot bath", "wall of fire", "<b>")}
    with pytest.raises(ValueError, match="num_players must be a whole number from 2 to 6, not 2.5"):
        game.configure(**options_of(game, {"num_players": 2.5}))
    for name in ("num_players", "num_dice"):
        for empty in (None, ""):
            with pytest.raises(ValueError, match=f"{name} must be a whole number from . to 6, not ''") as found:
                game.configure(**options_of(game, {name: empty}))
            assert in_labels(game, str(found.value)).endswith(" to 6, not an empty field")
    with pytest.raises(ValueError, match="num_dice"):
        options_of(game, {"num_dice": "1,,2"})
    assert in_labels(game, "num_dice must be 1, not num_faces") == "dice each must be 1, not faces"


@few(2, "game", names())
def test_a_form_with_any_value_is_read_or_refused_by_name(game):
    for name in fields_of(load(game)):
        for value in ({"a": 1}, [1], float("nan"), float("inf"), True, -1, "x", None, "", 10**400):
            read = {name: value}
            problem, _ = refused(lambda read=read: load(game).configure(**options_of(load(game), read)))
            assert problem is None or name in problem


def test_values_that_follow_from_others_are_no_choice():
    game = load("liars_dice")
    values = {name: field.default for name, field in fields_of(game).items()}
    assert follows(game.configure(), values, {}) == {}
    perudo = follows(game.configure(rules="perudo"), {**values, "rules": "perudo"}, {})
    assert perudo == ALL_OF_PERUDO
    assert follows(game.configure(rules="perudo"), {**values, "rules": "perudo"}, {"rules": "perudo"})["rules"] == "perudo"


def test_bids_lie_in_a_grid_and_other_moves_beside_it():
    sitting = Sitting(configure("liars_dice", num_dice=2, starter="first"), 1, [PERSON, PERSON])
    grid, others = arrange(sitting.variant, sitting.legal())
    assert grid is not None
    assert (grid.rows, grid.columns, others) == ((1, 2, 3, 4), (1, 2, 3, 4, 5, 6), [])
    words = {action: sitting.variant.describe_action(action) for action in sitting.legal()}
    assert {f"{row} x {column}": action for (row, column), action in grid.actions.items()} == {w: a for a, w in words.items()}
    sitting.play(grid.actions[3, 6])
    grid, others = arrange(sitting.variant, sitting.legal())
    assert grid is not None
    assert 3 not in grid.rows or min(column for row, column in grid.actions if row == 3) < 6
    assert [sitting.variant.describe_action(action) for action in others] == ["call"]


@pytest.mark.parametrize("game", [name for name in names() if name != "liars_dice"])
def test_other_moves_are_buttons(game):
    variant = load(game).configure()
    sitting = Sitting(variant, 1, [PERSON] * variant.facts.num_seats)
    assert arrange(variant, sitting.legal()) == (None, sitting.legal())


# --- the graph of a review --------------------------------------------------------------------------------------------

WINS = Scale(0.5, 0.5, GAMES_WON, 0.0, 1.0)
PIPS = Scale(0.0, 1.0, Unit("pips"), 0.0, 36.0)


def split(points, scale=WINS):
    values = [value for _, value, _ in points]
    return Split(values[0], values[-1], 0.0, 0.0, tuple(Point(*point) for point in points), "", scale)


LOST = [(0, 0.5, "luck"), (0, 0.6, "luck"), (1, 0.5, "play"), (1, 0.7, "luck"), (2, 0.7, "play"), (3, 0.0, "luck")]


def test_a_graph_has_each_step_by_its_cause():
    blunder = Judged(1, 0, 4, "3 x <5>", 0.1, 5, "", mark="blunder")
    graph = chance_graph(split(LOST), {1: "Ben: 3 x <5>"}, {1: blunder}, 2, "<b>'s")
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
