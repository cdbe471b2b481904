"""A page works as much after a thousand moves as after a hundred: the server's loop must stay free for everybody."""

import asyncio
import json
import sys

import pytest

from dice_envs import configure
from dice_envs.experiments.web import Tables
from dice_envs.table.advice import Judged, Review
from dice_envs.table.sitting import PERSON, Sitting
from tests.experiments.web.test_forms import split
from tests.support.subsets import few

nicegui = pytest.importorskip("nicegui")


def instructions(work):
    """The number of Python's instructions that the work takes, those of loops in one line included."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def thirties(rounds, moves=None):
    sitting = Sitting(configure("thirties", num_players=2, rounds=rounds), 1, [PERSON, "random"])
    while not sitting.over and len(sitting) != moves:
        sitting.step() if sitting.mover else sitting.play(sitting.legal()[0])
    return sitting


def reviewed(moves):
    judged = [Judged(number, 0, 0, "keep all", 0.1, 1, "cost 0.1", mark="slip") for number in range(1, moves + 1)]
    points = [(number, (number * 7 % 10) / 10, ("luck", "play")[number % 2]) for number in range(moves + 1)]
    return Review(tuple(judged), {0: 1.0}, {0: "1"}, "", {0: split(points)})


async def page_of(sitting):
    from nicegui.page import page

    from dice_envs.experiments.web.table_page import TablePage

    nicegui.core.loop = asyncio.get_running_loop()
    table = Tables().add(sitting)
    view = table.links[table.first_link]
    with nicegui.Client(page("/")) as client:
        shown = TablePage(view, True)
    assert not table.listeners, "a request alone listens to nothing"
    for handler in client.connect_handlers:
        handler()
    assert table.listeners == [shown.refresh]
    return shown


async def work_of(sitting):
    shown = await page_of(sitting)
    moves, view = len(sitting), shown.view
    work = {
        "refresh": shown.refresh,
        "first": lambda: shown._look(0),
        "middle": lambda: shown._look(moves // 2),
        "leaf": lambda: shown._leaf(moves // 2),
        "copy": lambda: view.may_save and view.to_save(),
        "undo": lambda: view.may_undo and view.undo(),
    }
    if sitting.over:
        view.table.review = reviewed(moves)
        work.pop("undo")
        work["go back"] = lambda: view.play_on(sitting.latest(0) - 1)
    for each in work.values():  # what is drawn for the first time
        if each not in (work.get("undo"), work.get("go back")):
            each()
    counts = {name: instructions(each) for name, each in work.items()}
    elements = len(shown.client.elements)
    return counts, elements


@few(1, "over", [True, False])
def test_nothing_on_the_loop_grows_with_the_game(over, monkeypatch):
    for limit in ("table_page.MOST_ENTRIES", "panels.MOST_STEPS"):
        monkeypatch.setattr(f"dice_envs.experiments.web.{limit}", 10)
    short, long = (thirties(rounds if over else 1000, moves) for rounds, moves in ((10, 40), (60, 209)))
    assert short.over == long.over == over
    assert len(long) > 4 * len(short) > 100
    (few, small), (many, large) = (asyncio.run(work_of(sitting)) for sitting in (short, long))
    assert large < 1.2 * small, "elements of the page"
    assert {name: many[name] / few[name] for name in few if many[name] > 1.3 * few[name]} == {}


def test_the_history_shows_some_moves_and_the_others_on_demand():
    async def shown():
        page = await page_of(thirties(1000, 250))
        parts = [(page._shown_from(), page._shown_to())]
        for step in (lambda: page._leaf(150), lambda: page._leaf(50), lambda: page._look(0), lambda: page._look(180),
                     lambda: page._look(250)):  # fmt: skip
            step()
            parts.append((page._shown_from(), page._shown_to()))
        return parts

    assert asyncio.run(shown()) == [(150, 250), (50, 150), (0, 100), (0, 100), (130, 230), (150, 250)]


def test_a_copy_of_a_game_is_saved_as_it_was():
    sitting = thirties(2, 3)
    twin = sitting.__copy__()
    before = json.dumps(sitting.save())
    sitting.cut(1)
    assert json.dumps(twin.save()) == before
