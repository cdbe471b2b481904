"""Tables, what each view may do, and slow work: in threads, and dropped once nobody waits for it. Without a browser."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dice_envs import Promises, configure
from dice_envs.core.work import say
from dice_envs.experiments.web import Tables
from dice_envs.games.liars_dice.exact import solver as liars_dice_solver
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.sittings import finish

pytest.importorskip("anyio")
pytestmark = pytest.mark.anyio
SOON = 60  # seconds, for a busy machine that also compiles kernels; blocked work waits forever


@pytest.fixture
def anyio_backend():
    return "asyncio"


def liars(*seats, seed=1, **options):
    return Sitting(configure("liars_dice", num_dice=1, starter="first", num_players=len(seats), **options), seed, seats)


def stones():
    """A game with a cheap hint, with a person to move."""
    return Sitting(configure("fatestones"), 1, [PERSON, "random"])


def followed(sitting, tables=None):
    """A table with somebody connected."""
    table = (tables or Tables(pause=0.0)).add(sitting)
    table.listeners.append(lambda: None)
    return table


def place_of(table, kind="seat", seat=None):
    return next(view for view in table.links.values() if view.kind == kind and seat in (None, view.seat))


async def until(condition):
    for _ in range(100 * SOON):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it does not come about")


@pytest.mark.parametrize(
    ("seats", "kinds", "first"),
    [
        ((PERSON, "random"), ["seat", "maker"], "seat"),
        (("random", PERSON), ["seat", "maker"], "seat"),
        ((PERSON, PERSON), ["seat", "seat", "together", "maker"], "maker"),
        (("random", "random"), ["watch", "maker"], "watch"),
    ],
)
def test_links_are_secret_and_lead_to_what_they_are_for(seats, kinds, first):
    tables = Tables()
    table, other = (tables.add(liars(*seats)) for _ in range(2))
    assert [view.kind for view in table.links.values()] == kinds
    assert [view.seat for view in table.links.values() if view.kind == "seat"] == list(table.sitting.people)
    assert tables.views == table.links | other.links
    assert len(tables.views) == 2 * len(kinds)
    for path, view in table.links.items():
        _, kind, secret = path.split("/")
        assert kind == view.kind
        assert len(secret) >= 32
        assert view.table is table
    assert table.links[table.first_link].kind == first


# --- what a view may do and see --------------------------------------------------------------------------------------


async def test_a_seat_plays_only_itself():
    table = Tables().add(liars(PERSON, PERSON))
    first, second = (place_of(table, seat=seat) for seat in (0, 1))
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
        place_of(table, "maker").picture()
    with pytest.raises(ValueError, match="not your turn"):
        await first.hint()
    with pytest.raises(ValueError, match="over"):
        await table.judge()


@pytest.mark.parametrize("seat", [0, 1])
def test_a_seat_sees_what_it_may(seat):
    table = Tables().add(liars(PERSON, PERSON))
    view, sitting = place_of(table, seat=seat), table.sitting
    assert view.picture(everything=True) == sitting.picture(seat) != sitting.picture()
    finish(sitting)
    assert view.may_save
    assert view.picture(0, everything=True) == sitting.picture(moves=0)
    assert view.picture(0) == sitting.picture(seat, 0)


def test_people_who_share_a_device_are_kept_apart():
    table = Tables().add(liars(PERSON, PERSON))
    view = place_of(table, "together")
    assert view.curtain == 0
    with pytest.raises(ValueError, match="nothing may be seen"):
        view.picture()
    assert not view.to_move
    view.uncover()
    assert view.picture() == table.sitting.picture(0)
    view.play(0, 0)
    assert view.curtain == 1
    with pytest.raises(ValueError, match="nothing may be seen"):
        view.history()
    view.uncover()
    assert view.picture() == table.sitting.picture(1)
    finish(table.sitting)
    assert view.curtain is None
    assert view.picture() == table.sitting.picture()


async def test_agents_play_by_themselves_and_moves_are_taken_back():
    table = Tables(pause=0.0).add(liars(PERSON, "random", "random"))
    view = place_of(table)
    changes = []
    table.listeners.append(lambda: changes.append(len(table.sitting)))
    table.wake()
    assert view.to_move
    view.play(0, 0)
    # The thread moves before listeners are told.
    await until(lambda: (view.to_move or table.sitting.over) and not table.thinking)
    told = list(dict.fromkeys(changes))  # of a slow agent, twice
    assert told == list(range(1, len(table.sitting) + 1))
    seen = table.now
    assert view.may_undo
    view.undo()
    assert len(table.sitting) == 0
    assert view.to_move
    view.play(1, 0)
    assert table.now != seen
    seed = table.sitting.seed
    await table.again()
    assert table.games == 2
    assert table.sitting.seed != seed
    assert Sitting.load(json.loads(view.to_save().as_file())).seed == table.sitting.seed


def test_a_game_that_is_over_is_continued_from_an_earlier_position():
    table = Tables(pause=0.0).add(liars(PERSON, "random", PERSON))
    seat, other = place_of(table, seat=0), place_of(table, seat=2)
    with pytest.raises(ValueError, match="cannot be continued"):
        seat.play_on(0)
    finish(table.sitting)
    table.review = object()
    assert seat.may_play_on(0)
    assert place_of(table, "together").may_play_on(0)
    # Another person moved there, nobody is here, an agent moved, and nobody did.
    for view, moves in ((other, 0), (place_of(table, "maker"), 0), (seat, 1), (seat, 10**6)):
        assert not view.may_play_on(moves)
        with pytest.raises(ValueError, match="cannot be continued"):
            view.play_on(moves)
    now = table.now
    seat.play_on(0)
    assert (len(table.sitting), table.games, table.review) == (0, 2, None)
    assert table.now != now
    assert seat.to_move


@pytest.mark.parametrize("seats", [("random",), (PERSON, PERSON)])
async def test_an_agent_that_fails_stops_its_table_alone(seats):
    class Broken:
        def act(self, turn):
            raise RuntimeError("out of order")

    table = followed(liars(Broken(), *seats))
    table.wake()
    await until(lambda: table.problem)
    assert ("out of order" in table.problem) == (len(seats) == 1), "it may reveal what others hold"


# --- slow work --------------------------------------------------------------------------------------------------------


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


async def test_slow_agents_leave_the_page_to_others(slow):
    tables = Tables(pause=0.0)
    busy = [followed(liars(slow, PERSON), tables) for _ in range(3)]
    other, over = followed(stones(), tables), followed(stones(), tables)
    finish(over.sitting)
    for table in busy:
        table.wake()
    await until(lambda: slow.asked == 3 and all(table.thinking for table in busy))
    async with asyncio.timeout(SOON):
        await other.again()
        assert (await place_of(other).hint()).rows
        assert (await tables.run(lambda: tables.add(stones()))).links
        await over.judge()
    assert over.review
    assert all(table.thinking for table in busy), "they think still"
    slow.go.set()
    await until(lambda: all(len(table.sitting) == 1 for table in busy))


async def test_work_that_waits_for_a_thread_is_dropped_once_nobody_wants_it(slow):
    tables = Tables(pause=0.0)
    tables.threads = ThreadPoolExecutor(1)
    busy, gone, moved, old = (
        followed(sitting, tables) for sitting in (liars(slow, PERSON), liars(slow, PERSON), stones(), liars(slow, PERSON))
    )
    busy.wake()
    await until(lambda: slow.asked)
    gone.wake()
    hint = asyncio.ensure_future(place_of(moved).hint())
    old.wake()
    await until(lambda: gone.thinking and old.thinking)
    gone.listeners.clear()
    place_of(moved).play(0, 0)
    first, again = old.sitting, asyncio.ensure_future(old.again())
    await asyncio.sleep(0.1)  # both wait for the thread
    old.sitting = faster = liars(PERSON, slow)  # another request for a new game was faster
    slow.go.set()
    assert await hint is None
    await again
    assert old.sitting is faster
    await until(lambda: not any(table.thinking for table in (busy, gone)))
    assert (slow.asked, len(first), len(gone.sitting)) == (1, 0, 0)


async def test_a_hint_that_was_stopped_is_not_given_even_if_it_was_found(monkeypatch):
    go = threading.Event()
    monkeypatch.setattr("dice_envs.experiments.web.give_hint", lambda *given: go.wait(SOON))
    view, wanted = place_of(followed(stones())), [True]
    stopped = asyncio.ensure_future(view.hint(False, lambda: wanted[0]))
    await asyncio.sleep(0.1)  # the thread has begun
    wanted[0] = False
    second = asyncio.ensure_future(view.hint())
    await asyncio.sleep(0.1)
    go.set()
    assert (await stopped, await second) == (None, True)


async def test_a_move_is_not_taken_back_while_the_agent_thinks(slow):
    table = followed(liars(PERSON, slow))
    view = place_of(table)
    view.play(0, 0)
    await until(lambda: slow.asked)
    assert not view.may_save
    with pytest.raises(ValueError, match="taken back"):
        view.undo()
    old = table.sitting
    await table.again()
    assert view.to_move, "the old game's agent keeps nobody waiting"
    slow.go.set()
    await until(lambda: len(old) == 2)
    assert len(table.sitting) == 0


async def test_agents_play_only_while_somebody_is_there():
    table = Tables(pause=0.0).add(Sitting(configure("shakes"), 1, ["random"] * 3))
    table.wake()
    await asyncio.sleep(0.1)
    assert len(table.sitting) == 0

    def leave():
        if len(table.sitting) >= 5:
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


@pytest.mark.parametrize("end", ["gone", "undone", "again"])
async def test_a_review_stops_between_moves(end):
    table = followed(Sitting(configure("shakes", num_patients=40), 1, [PERSON, "random", "random"]))
    finish(table.sitting)
    judged = asyncio.ensure_future(table.judge())
    await until(lambda: "reviewed" in table.progress_line)
    if end == "undone":
        place_of(table).undo()
    elif end == "gone":
        table.listeners.clear()
    else:
        await table.again()
    await judged
    assert (table.review, table.reviewing) == (None, False)


async def test_progress_changes_words_and_builds_no_page_anew():
    """A click on a button that is being built anew is lost."""
    table = followed(Sitting(configure("thirties", num_players=1), 1, [PERSON]))
    built = []
    table.listeners.append(lambda: built.append(table.progress_line))
    await table.work(lambda: [say(f"solved {number} of 3 rounds") for number in (1, 2, 3)], lambda: True)
    assert built == ["solved 1 of 3 rounds"]


# --- agents that prepare themselves -----------------------------------------------------------------------------------


class Solver:
    """An agent that prepares itself until it is told to stop."""

    def __init__(self):
        self.prepared, self.may_end = 0, threading.Event()
        self.promises = Promises(prepare=self._prepare)

    def act(self, turn):
        return turn.legal.argmax(1)

    def _prepare(self, variant):
        while not self.may_end.wait(0.01):
            say("solved 1 of 2 rounds")
        self.prepared += 1


async def test_agents_prepare_themselves_while_people_look():
    agent = Solver()
    table = Tables().add(liars(PERSON, agent))
    table.prepare()
    await until(lambda: not table.preparing)
    assert not agent.prepared, "nobody looks"
    heard = []
    table.listeners.append(lambda: heard.append(table.progress_line))
    table.prepare()
    table.prepare()
    await until(lambda: "solved 1 of 2 rounds" in heard)
    table.listeners.clear()
    await until(lambda: not table.preparing)
    assert not agent.prepared, "nobody looks any more"
    table.listeners.append(lambda: None)
    table.prepare()
    agent.may_end.set()
    await until(lambda: not table.preparing)
    table.prepare()
    assert (agent.prepared, table.preparing, table.progress_line) == (1, False, "")


def test_nash_solves_before_its_first_move(monkeypatch, tmp_path):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    sitting = liars(PERSON, "nash", num_faces=2)
    assert sitting.prepares
    sitting.prepare()
    assert liars_dice_solver.solution_of.has(sitting.variant.options, 1e-3)
    assert not liars(PERSON, "random").prepares
    sitting = Sitting(configure("fatestones"), 1, [PERSON, "nash"])
    sitting.prepare()
