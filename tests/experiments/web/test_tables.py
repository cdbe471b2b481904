"""Tables, their links and what each place may do, without a browser."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest

from dice_envs import configure
from dice_envs.exact.following import say
from dice_envs.exact.liars_dice.solver import solved_already
from dice_envs.experiments.web.tables import Tables
from dice_envs.table.sitting import PERSON, Sitting
from tests.conftest import ROOT


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def liars(*seats, seed=1, **options):
    return Sitting(configure("liars_dice", num_dice=1, starter="first", num_players=len(seats), **options), seed, seats)


def places(tables, table):
    return {(place.kind, place.seat): place for place in tables.links(table).values()}


def play_to_the_end(sitting):
    while not sitting.over:
        if sitting.mover in sitting.people:
            sitting.play(sitting.legal()[-1])
        else:
            sitting.step()


# --- links ------------------------------------------------------------------------------------------------------------


def test_links_are_secret_and_lead_to_what_they_are_for():
    tables = Tables()
    table = tables.add(liars(PERSON, "random", PERSON))
    links = tables.links(table)
    assert sorted((place.kind, place.seat) for place in links.values() if place.kind == "seat") == [("seat", 0), ("seat", 2)]
    assert {place.kind for place in links.values()} == {"seat", "together", "maker"}
    other = tables.add(liars("random", "random"))
    assert {place.kind for place in tables.links(other).values()} == {"watch", "maker"}
    assert not set(links) & set(tables.links(other))
    for path, place in links.items():
        _, kind, secret = path.split("/")
        assert len(secret) >= 32
        assert tables.find(secret, kind) == place
        assert tables.find(secret, "seat" if kind != "seat" else "maker") is None
    assert tables.find("x", "seat") is None


def test_tables_are_forgotten():
    clock = Clock()
    tables = Tables(most=2, forget_after=100, clock=clock)
    first = tables.add(liars(PERSON, "random"))
    secret = next(iter(tables.links(first))).split("/")[2]
    clock.now = 50
    second = tables.add(liars(PERSON, "random"))
    clock.now = 55
    assert tables.find(secret, "seat")
    clock.now = 60
    tables.add(liars(PERSON, "random"))  # replaces the second, which has been empty for longest
    assert len(tables) == 2
    assert not tables.links(second)
    assert tables.find(secret, "seat")
    clock.now = 161
    assert tables.find(secret, "seat") is None
    assert len(tables) == 0


# --- what a place may do and see --------------------------------------------------------------------------------------


def test_a_seat_plays_only_itself():
    async def follow():
        tables = Tables()
        table = tables.add(liars(PERSON, PERSON))
        first, second = (places(tables, table)["seat", seat] for seat in (0, 1))
        with pytest.raises(ValueError, match="not your turn"):
            second.play(0, 0)
        with pytest.raises(ValueError, match="gone on"):
            first.play(0, 1)
        with pytest.raises(ValueError, match="call"):
            first.play(table.sitting.variant.facts.num_actions - 1, 0)
        assert len(table.sitting) == 0
        first.play(0, 0)
        assert second.to_move
        assert not first.to_move
        for refused in (first, second):
            assert not refused.may_undo
            with pytest.raises(ValueError, match="taken back"):
                refused.undo()
            with pytest.raises(ValueError, match="hidden"):
                refused.to_save()
            with pytest.raises(ValueError, match="nothing may be seen"):
                places(tables, table)["maker", None].picture()
        with pytest.raises(ValueError, match="not your turn"):
            await first.hint()
        with pytest.raises(ValueError, match="over"):
            await table.judge()

    asyncio.run(follow())


@pytest.mark.parametrize("seat", [0, 1])
def test_a_seat_sees_what_it_may(seat):
    tables = Tables()
    table = tables.add(liars(PERSON, PERSON))
    place, sitting = places(tables, table)["seat", seat], table.sitting
    assert place.picture(everything=True) == sitting.picture(seat) != sitting.picture()
    play_to_the_end(sitting)
    assert place.may_save
    assert place.position(0, everything=True).picture == sitting.position(0).picture
    assert place.position(0).picture == sitting.position(0, seat).picture


def test_a_choice_is_not_told_before_all_have_chosen():
    sitting = Sitting(configure("fatestones"), 1, [PERSON, PERSON])
    tables = Tables()
    place = places(tables, tables.add(sitting))["seat", 1]
    sitting.play(2)
    (entry,) = place.history()
    assert entry.action is None


def test_people_who_share_a_device_are_kept_apart():
    async def follow():
        tables = Tables()
        table = tables.add(liars(PERSON, PERSON))
        place = places(tables, table)["together", None]
        assert place.curtain == 0
        with pytest.raises(ValueError, match="nothing may be seen"):
            place.picture()
        assert not place.to_move
        place.uncover()
        assert place.picture() == table.sitting.picture(0)
        place.play(0, 0)
        assert place.curtain == 1
        with pytest.raises(ValueError, match="nothing may be seen"):
            place.history()
        place.uncover()
        assert place.picture() == table.sitting.picture(1)
        play_to_the_end(table.sitting)
        assert place.curtain is None
        assert place.picture() == table.sitting.picture()

    asyncio.run(follow())


def test_agents_play_by_themselves_and_moves_are_taken_back():
    async def follow():
        tables = Tables(pause=0.0)
        table = tables.add(liars(PERSON, "random", "random"))
        place = places(tables, table)["seat", 0]
        changes = []
        table.listeners.append(lambda: changes.append(len(table.sitting)))
        table.wake()
        assert place.to_move
        place.play(0, 0)
        for _ in range(1000):
            if (place.to_move or table.sitting.over) and not table.thinking:  # the thread moves before listeners are told
                break
            await asyncio.sleep(0.01)
        told = list(dict.fromkeys(changes))  # of a slow agent, twice
        assert told == list(range(1, len(table.sitting) + 1))
        assert place.may_undo
        place.undo()
        assert len(table.sitting) == 0
        assert place.to_move
        seed = table.sitting.seed
        await table.again()
        assert table.games == 2
        assert table.sitting.seed != seed
        assert Sitting.load(json.loads(place.to_save().as_file())).seed == table.sitting.seed

    asyncio.run(follow())


def test_a_game_that_is_over_is_continued_from_an_earlier_position():
    async def scenario():
        tables = Tables(pause=0.0)
        table = tables.add(liars(PERSON, "random", PERSON))
        seats = places(tables, table)
        with pytest.raises(ValueError, match="cannot be continued"):
            seats["seat", 0].play_on(0)
        play_to_the_end(table.sitting)
        table.review = object()
        assert seats["seat", 0].may_play_on(0)
        assert seats["together", None].may_play_on(0)
        for place, moves in (
            (seats["seat", 2], 0),
            (seats["maker", None], 0),
            (seats["seat", 0], 1),
            (seats["seat", 0], 10**6),
        ):
            assert not place.may_play_on(moves)  # moved there: another person, nobody here, an agent, nobody
            with pytest.raises(ValueError, match="cannot be continued"):
                place.play_on(moves)
        now = table.now
        seats["seat", 0].play_on(0)
        assert (len(table.sitting), table.games, table.review) == (0, 2, None)
        assert table.now != now
        assert seats["seat", 0].to_move

    asyncio.run(scenario())


def test_an_agent_that_fails_stops_its_table_alone():
    class Broken:
        def act(self, turn):
            raise RuntimeError("out of order")

    async def follow():
        tables = Tables(pause=0.0)
        table = tables.add(liars("random", Broken()))
        table.listeners.append(lambda: None)
        table.wake()
        for _ in range(1000):
            if table.problem:
                break
            await asyncio.sleep(0.01)
        assert "out of order" in table.problem

    asyncio.run(follow())


# --- the library ------------------------------------------------------------------------------------------------------


def test_the_library_is_needed_for_the_page_alone():
    code = (
        "import sys\n"
        "sys.modules['nicegui'] = None\n"
        "import dice_envs.experiments.__main__\n"
        "from dice_envs.experiments.web import forms, moves, tables\n"
        "try:\n"
        "    import dice_envs.experiments.web.server\n"
        "except ImportError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == 'the page needs nicegui: pip install "dice-envs[web]"\n'


# --- agents that prepare themselves -----------------------------------------------------------------------------------


class Slow:
    """An agent that prepares itself until it is told to stop."""

    def __init__(self):
        self.prepared, self.may_end = 0, threading.Event()

    def act(self, turn):
        return turn.legal.argmax(1)

    def prepare(self, variant):
        while not self.may_end.wait(0.01):
            say("solved 1 of 2 rounds")
        self.prepared += 1


def slow_table():
    agent = Slow()
    return agent, Tables(pause=0.01).add(liars(PERSON, agent))


def test_agents_prepare_themselves_while_people_look():
    async def follow():
        agent, table = slow_table()
        table.prepare()
        assert not table.listeners, "nobody looks"
        while table.preparing:
            await asyncio.sleep(0.01)
        heard = []
        table.listeners.append(lambda: heard.append(table.solving))
        table.prepare()
        table.prepare()
        while "solved 1 of 2 rounds" not in heard:
            await asyncio.sleep(0.01)
        assert table.preparing
        agent.may_end.set()
        while table.preparing:
            await asyncio.sleep(0.01)
        table.prepare()
        assert (agent.prepared, table.preparing, table.solving) == (1, False, "")

    asyncio.run(follow())


def test_an_agent_stops_preparing_when_nobody_looks_any_more():
    async def follow():
        agent, table = slow_table()
        table.listeners.append(print)
        table.prepare()
        await asyncio.sleep(0.05)
        table.listeners.clear()
        while table.preparing:
            await asyncio.sleep(0.01)
        assert agent.prepared == 0

    asyncio.run(follow())


def test_nash_solves_before_its_first_move(monkeypatch, tmp_path):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    sitting = liars(PERSON, "nash", num_faces=2)
    assert sitting.prepares
    sitting.prepare()
    assert solved_already(sitting.variant, 1e-3)
    assert not liars(PERSON, "random").prepares
    sitting = Sitting(configure("fatestones"), 1, [PERSON, "nash"])
    sitting.prepare()
