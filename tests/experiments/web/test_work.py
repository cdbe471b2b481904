"""A busy server: queued work, refused work, and work dropped because nobody waits for it. Without a browser."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest

from dice_envs import configure
from dice_envs.experiments.web.tables import Tables
from dice_envs.table.sitting import PERSON, Sitting
from tests.conftest import ROOT
from tests.experiments.web.browser import wait_for
from tests.experiments.web.test_tables import liars, places, play_to_the_end

SOON = 60  # seconds, for a busy machine that also compiles kernels; blocked work waits forever


class Slow:
    """Blocks until it is released, then plays its first legal action; counts how often it was asked."""

    def __init__(self):
        self.go, self.asked = threading.Event(), 0

    def act(self, turn):
        self.asked += 1
        assert self.go.wait(SOON)
        return turn.legal.argmax(axis=1)


Slow.__name__ = "random"  # the spec by which a table makes it anew for the next game


@pytest.fixture
def slow():
    agent = Slow()
    yield agent
    agent.go.set()


async def until(condition):
    for _ in range(100 * SOON):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it does not come about")


def followed(tables, sitting):
    """A table with somebody connected."""
    table = tables.add(sitting)
    table.listeners.append(lambda: None)
    return table


def stones():
    """A game with a cheap hint, with a person to move."""
    return Sitting(configure("fatestones"), 1, [PERSON, "random"])


@contextlib.contextmanager
def thirteen(tables, slow):
    """Thirteen tables whose agents block until the end of the block."""
    found = [followed(tables, liars(slow, PERSON)) for _ in range(13)]
    for table in found:
        table.wake()
    try:
        yield found
    finally:
        slow.go.set()


def test_slow_agents_at_thirteen_tables_keep_nobody_else_waiting(slow):
    async def follow():
        tables = Tables(pause=0.0)
        other, over = followed(tables, stones()), followed(tables, stones())
        play_to_the_end(over.sitting)
        with thirteen(tables, slow) as busy:
            await until(lambda: slow.asked and all(table.thinking for table in busy))
            async with asyncio.timeout(SOON):
                await other.again()
                assert (await places(tables, other)["seat", 0].hint()).rows
                await over.judge()
            assert over.review
            assert all(table.thinking for table in busy), "they think still"
        await until(lambda: all(len(table.sitting) == 1 for table in busy))

    asyncio.run(follow())


def test_a_table_shows_that_it_waits_and_moves_are_fair(slow):
    """All threads are busy with agents. A table waits only for those before it, however slow they are."""

    async def follow():
        tables = Tables(pause=0.0)
        quick = followed(tables, liars("random", PERSON))
        with thirteen(tables, slow) as busy:
            await until(lambda: sum(not table.waiting for table in busy) == tables.work.moves.threads)
            changes = []
            quick.listeners.append(lambda: changes.append(quick.waiting))
            quick.wake()
            await until(lambda: changes)
            assert changes == [True], "shown as busy"
            assert quick.thinking
        await until(lambda: len(quick.sitting) == 1)
        assert slow.asked == 13

    asyncio.run(follow())


def test_new_games_are_made_while_agents_think_and_too_many_are_refused(slow):
    hold, tables = threading.Event(), Tables()

    def made():
        assert hold.wait(SOON)
        return stones()

    async def follow():
        deals = tables.work.deals
        with thirteen(tables, slow):
            assert (await tables.make(stones)).sitting.people == (0,)
            waiting = [asyncio.ensure_future(tables.make(made, owner=k)) for k in range(deals.threads + deals.waiting)]
            await asyncio.sleep(0.01)
            with pytest.raises(ValueError, match=f"the server is busy: {deals.waiting} new games wait already"):
                await tables.make(made)
            saved = await tables.make(stones, saved=True)
            assert saved.loaded, "uploads are apart"
            hold.set()
            assert len({await table for table in waiting}) == len(waiting)

    asyncio.run(follow())


def test_everybody_waits_for_one_thing_at_a_time():
    hold = threading.Event()

    async def follow():
        tables = Tables()
        page = object()
        first = asyncio.ensure_future(tables.make(lambda: hold.wait(SOON) and stones(), owner=page))
        await asyncio.sleep(0.01)
        with pytest.raises(ValueError, match="the server is busy with what was asked for before"):
            await tables.make(stones, owner=page)
        await tables.make(stones, owner=object())
        hold.set()
        await first
        await tables.make(stones, owner=page)

    asyncio.run(follow())


# --- what nobody waits for --------------------------------------------------------------------------------------------


def test_agents_play_only_while_somebody_is_there():
    async def follow():
        tables = Tables(pause=0.0)
        table = tables.add(Sitting(configure("shakes"), 1, ["random"] * 3))
        table.wake()
        await asyncio.sleep(0.1)
        assert len(table.sitting) == 0
        stop = 5

        def leave():
            if len(table.sitting) >= stop:
                table.listeners.clear()

        table.listeners.append(leave)
        table.wake()
        await until(lambda: not table.listeners)
        moves = len(table.sitting)
        await asyncio.sleep(0.1)
        assert len(table.sitting) == moves < 20
        table.listeners.append(lambda: None)
        table.wake()
        await until(lambda: table.sitting.over)

    asyncio.run(follow())


def test_moves_that_wait_are_not_begun_once_nobody_wants_them(slow):
    async def follow():
        tables = Tables(pause=0.0)
        with thirteen(tables, slow) as busy:
            await until(lambda: all(table.thinking for table in busy) and slow.asked == tables.work.moves.threads)
            waiting = [table for table in busy if table.waiting]
            for table in waiting[1:]:
                table.listeners.clear()
            asked, old = slow.asked, waiting[0].sitting
            await waiting[0].again()
            assert waiting[0].sitting is not old
        await until(lambda: not any(table.thinking for table in busy))
        assert slow.asked == asked
        assert len(old) == 0
        assert [len(table.sitting) for table in waiting[1:]] == [0] * len(waiting[1:])

    asyncio.run(follow())


def test_a_move_is_taken_back_while_the_answer_waits_for_its_turn(slow):
    async def follow():
        tables = Tables(pause=0.0)
        table = followed(tables, liars(PERSON, "random"))
        place = places(tables, table)["seat", 0]
        with thirteen(tables, slow):
            await until(lambda: slow.asked == tables.work.moves.threads)
            place.play(0, 0)
            await until(lambda: table.waiting)
            place.undo()
            assert place.to_move
            assert not table.thinking
        await until(lambda: slow.asked == 13)
        assert len(table.sitting) == 0
        place.play(1, 0)
        await until(lambda: place.to_move or table.sitting.over)

    asyncio.run(follow())


def test_a_move_is_not_taken_back_while_the_agent_thinks(slow):
    async def follow():
        tables = Tables(pause=0.0)
        table = followed(tables, liars(PERSON, slow))
        place = places(tables, table)["seat", 0]
        place.play(0, 0)
        await until(lambda: slow.asked)
        with pytest.raises(ValueError, match="taken back"):
            place.undo()
        old = table.sitting
        await table.again()
        assert place.to_move, "the old game's agent keeps nobody waiting"
        slow.go.set()
        await until(lambda: len(old) == 2)
        assert len(table.sitting) == 0

    asyncio.run(follow())


def test_hints_that_wait_are_not_begun_once_the_game_has_gone_on(monkeypatch):
    hold, given = threading.Event(), []

    def give(variant, state, moves):
        given.append(moves)
        assert hold.wait(SOON)
        return given

    monkeypatch.setattr("dice_envs.experiments.web.place.give_hint", give)

    async def follow():
        tables = Tables(pause=0.0)
        found = [followed(tables, stones()) for _ in range(4)]
        hints = [asyncio.ensure_future(places(tables, table)["seat", 0].hint()) for table in found]
        await until(lambda: len(given) == tables.work.hints.threads == 2)
        with pytest.raises(ValueError, match="busy with what was asked for before"):
            await places(tables, found[0])["seat", 0].hint(odds=True)
        places(tables, found[2])["seat", 0].play(0, 0)
        found[3].listeners.clear()
        hold.set()
        assert [await hint for hint in hints] == [given, given, None, None]
        assert len(given) == 2

    asyncio.run(follow())


def test_a_position_is_not_the_one_of_before_a_move_was_taken_back():
    tables = Tables(pause=0.0)
    table = tables.add(liars(PERSON, "random"))

    async def follow():
        place = places(tables, table)["seat", 0]
        seen = [table.now]
        for action in (0, 1):
            place.play(action, 0)
            seen.append(table.now)
            place.undo()
            seen.append(table.now)
        await table.again()
        assert len({*seen, table.now}) == 6

    asyncio.run(follow())


@pytest.mark.parametrize("end", ["gone", "undone", "again"])
def test_a_review_stops_between_moves(end):
    async def follow():
        tables = Tables(pause=0.0)
        table = followed(tables, Sitting(configure("shakes", num_patients=10), 1, [PERSON, "random", "random"]))
        place = places(tables, table)["seat", 0]
        play_to_the_end(table.sitting)
        reached = []

        def stop():
            reached.append(table.reviewing)
            if table.reviewing and table.reviewing[0] == 1 and end == "undone":
                place.undo()
            elif table.reviewing and table.reviewing[0] == 1 and end == "gone":
                table.listeners.clear()
            elif table.reviewing and table.reviewing[0] == 1:
                ends.append(asyncio.ensure_future(table.again()))

        ends = []
        table.listeners.append(stop)
        await table.judge()
        for each in ends:
            await each
        assert table.review is None
        assert table.reviewing is None
        assert not tables.work.reviews._running

    asyncio.run(follow())


# --- a server ---------------------------------------------------------------------------------------------------------

THINKS_FOR_EVER = """
import threading
from dice_envs import configure
from dice_envs.experiments.jobs.guard import ends_at_once
from dice_envs.table.sitting import Sitting
from dice_envs.experiments.web.server import serve

class Stuck:
    def act(self, turn):
        print("asked", flush=True)
        threading.Event().wait()

with ends_at_once():
    serve([Sitting(configure("fatestones"), 1, ["random", Stuck()])], show=False, pause=0.0)
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_server_whose_agent_thinks():
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NICEGUI"))}
    command = [sys.executable, "-c", THINKS_FOR_EVER]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as server:
        try:
            links = [line.split()[-1] for line in iter(server.stdout.readline, "Ctrl-C ends it\n")]
            wait_for(links[0])
            assert server.stdout.readline() == "asked\n"
            server.send_signal(signal.SIGINT)
            _, told = server.communicate(timeout=300)
        finally:
            server.kill()
    assert server.returncode in (-signal.SIGINT, 130, 1), told
    assert "pending" not in told
