"""Tables at which games are played, the secret links to them, and what each link may do and see."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import math
import secrets
import time
from collections.abc import Callable
from typing import Any, Literal

from dice_envs.core.game import Picture
from dice_envs.experiments.ui.options import seed_or_fresh
from dice_envs.experiments.web.work import Busy, Job, Unwanted, Work
from dice_envs.table.advice import Advice, Review, give_hint, give_odds, review
from dice_envs.table.sitting import PERSON, Entry, Position, Sitting

__all__ = ["FORGET_AFTER", "MOST_TABLES", "PAUSE", "Kind", "Place", "Table", "Tables", "prepare"]

PAUSE = 0.9  # seconds before an agent's move, so that people can follow
MOST_TABLES = 200
MOST_STARTS, STARTS_WITHIN = 30, 60.0  # tables that may be made from the page in so many seconds
FORGET_AFTER = 12 * 3600.0  # seconds without a visit
SHOWN_AFTER = 0.3  # seconds after which a table shows that its agent thinks, or waits for its turn to

Kind = Literal["seat", "together", "watch", "maker"]


def prepare(sitting: Sitting) -> Sitting:
    """The game, once what a person's moves need has been compiled: a server that does so meanwhile answers nobody."""
    trial = Sitting(sitting.variant, 0, [PERSON] * len(sitting.seats))
    trial.play(trial.legal()[0])
    return sitting


class Table:
    """One table: a game, and those who follow it.

    Agents move by themselves in a task of the running event loop, once `wake` was called, as long as somebody follows.
    Agents are asked and games are reviewed for those who follow only: what nobody waits for any more is not begun, and a
    review stops.

    Args:
        sitting: the game.
        pause: seconds before each move of an agent.
        work: the threads in which agents are asked; its own if none is given.

    Attributes:
        sitting: the game, another one after `again`.
        pause: as given; may be changed.
        playing: whether agents move; if not, `step` moves them.
        problem: what has stopped the game; empty if nothing has.
        games: how many games were begun here.
        review: what the moves have cost, once somebody has asked after the game.
        reviewing: of how many moves that has been found out, and how many there are; None while nobody waits for it.
        loaded: whether the first of them was a saved one.
        looking: where people share a device, whose view is uncovered; None at first.
        listeners: called after every change; one for everybody who is connected.
    """

    def __init__(self, sitting: Sitting, pause: float = PAUSE, work: Work | None = None) -> None:
        self.sitting = sitting
        self.pause = pause
        self.work = Work(1) if work is None else work
        self.playing = True
        self.problem = ""
        self.games = 1
        self.loaded = False
        self.review: Review | None = None
        self.reviewing: tuple[int, int] | None = None
        self.looking: int | None = None
        self.listeners: list[Callable[[], None]] = []
        self._courses = 0  # how often the game was begun anew, or a move taken back
        self._task: asyncio.Task[None] | None = None
        self._move: Job[int] | None = None  # of the agent that is asked
        self._judging: object | None = None  # stands for the review that is wanted

    @property
    def now(self) -> tuple[int, int]:
        """Stands for the present position: another one, too, after as many moves, has another value."""
        return self._courses, len(self.sitting)

    @property
    def thinking(self) -> bool:
        """Whether an agent is being asked, or waits to be."""
        return self._move is not None

    @property
    def waiting(self) -> bool:
        """Whether the agent to move waits for its turn, because those of other tables think."""
        return self._move is not None and not self._move.begun

    @property
    def agent_to_move(self) -> bool:
        """Whether the next move is an agent's."""
        return not self.sitting.over and self.sitting.mover not in self.sitting.people

    def changed(self) -> None:
        """Tell those who follow the game."""
        for listener in list(self.listeners):
            listener()

    def wake(self) -> None:
        """See to it that agents move, if it is their turn."""
        if self._task is None and self._moves_on:
            self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def _moves_on(self) -> bool:
        return self.playing and self.agent_to_move and not self.problem and bool(self.listeners)

    async def _run(self) -> None:
        try:
            while self._moves_on:
                await asyncio.sleep(self.pause)
                if self._moves_on:
                    with contextlib.suppress(Busy):  # then it tries again
                        await self.step()
        finally:
            self._task = None

    async def step(self) -> None:
        """Let the agent to move play, once a thread is free. Nothing happens while another one is being asked.

        Raises:
            Busy: too many agents wait.
        """
        if self.thinking or self.problem or not self.agent_to_move:
            return
        sitting = self.sitting
        move = self.work.moves.begin(sitting.step, lambda: sitting is self.sitting and bool(self.listeners))
        self._move = move
        try:
            await self._shown(move)
        except Unwanted:
            pass
        except Exception as problem:  # of an agent, which may be anybody's code
            if sitting is self.sitting:
                told = f": {problem}" if len(sitting.people) < 2 else ""  # it might tell some what only others may know
                self.problem = f"{sitting.seats[sitting.mover]} has failed{told}"
        finally:
            if self._move is move:
                self._move = None
            self.changed()

    async def _shown(self, move: Job[int]) -> None:
        """Wait for a move. If it takes long, those who follow are told, and once more when its turn has come."""
        result = asyncio.ensure_future(move.result())
        told: bool | None = None
        while not (await asyncio.wait([result], timeout=SHOWN_AFTER))[0]:
            if told != move.begun:
                told = move.begun
                self.changed()
        result.result()

    def hold(self) -> bool:
        """Ask no agent that only waits for its turn. Returns whether none is being asked now."""
        if self._move is not None and not self._move.drop():
            return False
        self._move = None
        return True

    async def again(self, seed: int | None = None) -> None:
        """A new game with the same options and players; a fresh seed if none is given. Busy while another one is made."""
        old = self.sitting

        def deal() -> Sitting:
            return Sitting(old.variant, seed_or_fresh(seed), old.seats)

        try:
            sitting = await self.work.deals.begin(deal, lambda: old is self.sitting, owner=self).result()
        except Unwanted:
            return
        if old is not self.sitting:  # somebody was faster
            return
        self.sitting = sitting
        self.games += 1
        self._move = None  # one of the old game
        self.problem = ""
        self.looking = None
        self.change_course()
        self.changed()
        self.wake()

    def change_course(self) -> None:
        """Forget what the moves have cost, and what waits to be found out: the game is another one now."""
        self._courses += 1
        self.review = self.reviewing = self._judging = None

    async def judge(self) -> None:
        """Find out what every move has cost, in a thread. It stops when the game changes or nobody follows any more.

        Raises:
            ValueError: the game goes on.
            Busy: too many reviews wait.
        """
        if self.review is not None or self._judging is not None:
            return
        sitting, loop, mine = self.sitting, asyncio.get_running_loop(), object()
        if not sitting.over:
            raise ValueError("a game is reviewed when it is over")

        def wanted() -> bool:
            return self._judging is mine and bool(self.listeners)

        def tell(moves: int, of: int) -> None:
            if self._judging is mine:
                self.reviewing = moves, of
                self.changed()

        def done(moves: int, of: int) -> None:
            if not wanted():
                raise Unwanted
            loop.call_soon_threadsafe(tell, moves, of)

        self._judging = mine
        try:
            job = self.work.reviews.begin(lambda: review(sitting, agents=True, done=done), wanted)
            tell(0, len(sitting))
            found = await job.result()
            if self._judging is mine:
                self.review = found
        except Unwanted:
            pass
        finally:
            if self._judging is mine:
                self._judging = self.reviewing = None
                self.changed()


@dataclasses.dataclass(frozen=True)
class Place:
    """What a link leads to.

    Attributes:
        table: the table.
        kind: "seat": one person plays; "together": all people play on one device; "watch": agents play; "maker": the links.
        seat: of the person, for a seat.
    """

    table: Table
    kind: Kind
    seat: int | None = None

    @property
    def sitting(self) -> Sitting:
        """The game at the table."""
        return self.table.sitting

    @property
    def curtain(self) -> int | None:
        """The person to fetch before anything is shown, where people share a device."""
        sitting = self.sitting
        if self.kind != "together" or sitting.over:
            return None
        if sitting.mover in sitting.people:
            return None if sitting.mover == self.table.looking else sitting.mover
        return sitting.people[0] if self.table.looking is None else None

    @property
    def sees_all(self) -> bool:
        """Whether nothing is hidden from this place any more: the game is over, or no person plays."""
        return self.sitting.over or not self.sitting.people

    @property
    def viewer(self) -> int | None:
        """Whose view is shown; None for one that sees everything.

        Raises:
            ValueError: there is nothing to show: the curtain is closed, or the place is none from which games are seen.
        """
        if self.kind == "seat":
            return self.seat
        if self.kind == "together" and self.curtain is None:
            return None if self.sitting.over else self.table.looking
        if self.kind == "watch" and self.sees_all:
            return None
        raise ValueError("nothing may be seen from here")

    @property
    def person(self) -> int | None:
        """The seat that this place plays now."""
        if self.kind in ("watch", "maker") or self.curtain is not None or self.sitting.over:
            return None
        return self.viewer

    @property
    def to_move(self) -> bool:
        """Whether the person at this place is to move."""
        return self.person is not None and self.sitting.mover == self.person and not self.table.problem

    @property
    def may_undo(self) -> bool:
        """Whether a move can be taken back: only where the other seats are agents, and none of them is being asked."""
        sitting, person, table = self.sitting, self._only_person(), self.table
        asked = table.thinking and not table.waiting
        return person is not None and not asked and any(entry.seat == person for entry in sitting.history(person))

    @property
    def may_save(self) -> bool:
        """Whether the game may be downloaded. It tells all that is hidden, so not while people play against each other."""
        return self.kind != "maker" and not self.table.thinking and (self.sees_all or self._only_person() is not None)

    @property
    def may_begin_again(self) -> bool:
        """Whether a new game may take the place of this one: not while others play it."""
        return self.kind != "maker" and (self.sees_all or self._only_person() is not None)

    def _only_person(self) -> int | None:
        """The seat of the person here, if there is no other one."""
        people = self.sitting.people
        return people[0] if len(people) == 1 and self.kind == "seat" else None

    def picture(self, moves: int | None = None, everything: bool = False) -> Picture:
        """What is seen here now, or was after so many moves; with all that was hidden once nothing is any more."""
        return self.position(len(self.sitting) if moves is None else moves, everything).picture

    def position(self, moves: int, everything: bool = False) -> Position:
        """The game after so many moves, as it may be seen here. ValueError if there were not so many."""
        return self.sitting.position(moves, None if everything and self.sees_all else self.viewer)

    def history(self, everything: bool = False) -> list[Entry]:
        """The moves so far, as they may be known here."""
        return self.sitting.history(None if everything and self.sees_all else self.viewer)

    def play(self, action: int, moves: int) -> None:
        """The move of the person here, who saw the game after so many moves.

        Raises:
            ValueError: it is not this person's turn, the game has gone on since, or the action is not legal.
        """
        if not self.to_move:
            raise ValueError("it is not your turn")
        if moves != len(self.sitting):
            raise ValueError("the game has gone on since; choose again")
        self.sitting.play(action)
        self.table.changed()
        self.table.wake()

    def uncover(self) -> None:
        """The person behind whom the curtain waits has come."""
        self.table.looking = self.curtain
        self.table.changed()
        self.table.wake()

    def undo(self) -> None:
        """Take the last move of the person here back. ValueError where that is not allowed."""
        if not self.may_undo or not self.table.hold():
            raise ValueError("nothing can be taken back")
        self.table.problem = ""
        self.table.change_course()
        self.sitting.undo(self._only_person())
        self.table.changed()
        self.table.wake()

    async def hint(self, odds: bool = False) -> Advice | None:
        """What each choice of the person here is worth, or its odds. It may take a while and is found in a thread.

        Returns None if the game has gone on, or everybody has gone, before it was begun.

        Raises:
            ValueError: it is not this person's turn.
            Busy: too many hints wait, or one of this table does.
        """
        if not self.to_move:
            raise ValueError("it is not your turn")
        table, now, state = self.table, self.table.now, self.sitting.state
        find, variant, moves = give_odds if odds else give_hint, self.sitting.variant, len(self.sitting)

        def wanted() -> bool:
            return table.now == now and bool(table.listeners)

        try:
            return await table.work.hints.begin(lambda: find(variant, state, moves), wanted, owner=table).result()
        except Unwanted:
            return None

    def saved(self) -> str:
        """The game as JSON. ValueError where it may not be known."""
        if not self.may_save:
            raise ValueError("the saved game would tell what is hidden; it can be saved once the game is over")
        return json.dumps(self.sitting.save(), indent=1) + "\n"


class Tables:
    """The tables of one server, by the secrets of their links.

    Args:
        pause: seconds before each move of an agent.
        most: so many are kept; then those that were not visited for longest are forgotten, where nobody is connected.
        forget_after: seconds without a visit after which a table is forgotten, if nobody is connected.
        clock: tells the time in seconds.
    """

    def __init__(
        self,
        pause: float = PAUSE,
        most: int = MOST_TABLES,
        forget_after: float = FORGET_AFTER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pause, self.most, self.forget_after, self.clock = pause, most, forget_after, clock
        self.work = Work(most)
        self._places: dict[str, Place] = {}
        self._visited: dict[Table, float] = {}
        self._starts: collections.deque[float] = collections.deque(maxlen=MOST_STARTS)

    def __len__(self) -> int:
        return len(self._visited)

    def admit(self) -> None:
        """Count an attempt to make a table from the page. Busy if there have been too many."""
        now = self.clock()
        if len(self._starts) == MOST_STARTS and now - self._starts[0] < STARTS_WITHIN:
            wait = math.ceil(STARTS_WITHIN - (now - self._starts[0]))
            raise Busy(f"the server is busy: {MOST_STARTS} tables a minute can be made; try again in {wait} seconds")
        self._starts.append(now)

    async def make(
        self, make: Callable[[], Sitting], wanted: Callable[[], bool] = lambda: True, owner: Any = None, saved: bool = False
    ) -> Table:
        """A table for a game that is made in a thread: its agents may have much to read or to solve.

        Args:
            make: makes the game.
            wanted: whether somebody still waits for the table.
            owner: who has asked for it; each may ask for one at a time.
            saved: whether it is a saved game, whose moves are played again.

        Raises:
            ValueError: whatever is wrong with the game.
            Busy: too many games are being made.
            Unwanted: nobody waits any more.
        """
        self.admit()
        workers = self.work.uploads if saved else self.work.deals
        sitting = await workers.begin(lambda: prepare(make()), wanted, owner).result()
        if not wanted():
            raise Unwanted
        table = self.add(sitting)
        table.loaded = saved
        return table

    def add(self, sitting: Sitting) -> Table:
        """A table for the game, with a secret for each of its links.

        Raises:
            Busy: there are `most` tables already, and somebody is connected to each.
        """
        self._make_room()
        table = Table(sitting, self.pause, self.work)
        self._visited[table] = self.clock()
        places = [Place(table, "seat", seat) for seat in sitting.people] or [Place(table, "watch")]
        if len(sitting.people) > 1:
            places.append(Place(table, "together"))
        for place in (*places, Place(table, "maker")):
            self._places[secrets.token_urlsafe(24)] = place
        return table

    def _make_room(self) -> None:
        self.forget()
        while len(self._visited) >= self.most:
            left = [table for table in self._visited if not table.listeners]
            if not left:
                raise Busy(f"the server is busy: people are at all of its {self.most} tables; try again later")
            self._remove(min(left, key=self._visited.__getitem__))

    def find(self, secret: str, kind: Kind) -> Place | None:
        """What a link leads to, which counts as a visit; None if it leads nowhere."""
        self.forget()
        place = self._places.get(secret)
        if place is None or place.kind != kind:
            return None
        self._visited[place.table] = self.clock()
        return place

    def links(self, table: Table) -> dict[str, Place]:
        """Where the links to a table lead: path → place."""
        return {f"/{place.kind}/{secret}": place for secret, place in self._places.items() if place.table is table}

    def visit(self, table: Table) -> None:
        """Somebody does something there."""
        if table in self._visited:
            self._visited[table] = self.clock()

    def forget(self) -> None:
        """Drop the tables where nobody has been for long."""
        now = self.clock()
        for table in [table for table, last in self._visited.items() if now - last > self.forget_after]:
            if not table.listeners:
                self._remove(table)

    def _remove(self, table: Table) -> None:
        table.playing = False
        del self._visited[table]
        self._places = {secret: place for secret, place in self._places.items() if place.table is not table}
