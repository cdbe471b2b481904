"""Tables with a game each, the secret links to them, and the rights of each link."""

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
MOST_STARTS, STARTS_WITHIN = 30, 60.0  # limit on the tables made from the page, and the seconds that it is for
FORGET_AFTER = 12 * 3600.0  # seconds without a visit
SHOWN_AFTER = 0.3  # seconds after which a table shows that its agent thinks or is queued

Kind = Literal["seat", "together", "watch", "maker"]


def prepare(sitting: Sitting) -> Sitting:
    """Compile what a person's moves need, and return the game: compiling during play would block the server."""
    trial = Sitting(sitting.variant, 0, [PERSON] * len(sitting.seats))
    trial.play(trial.legal()[0])
    return sitting


class Table:
    """One table: a game and its listeners, one for each connected page.

    After `wake`, agents move in a task of the running event loop, as long as there are listeners. Without listeners no agent is
    asked, no review begins, and a running review stops.

    Args:
        sitting: the game.
        pause: seconds before each move of an agent.
        work: the threads for agents and reviews; None: threads of its own.

    Attributes:
        sitting: the game; `again` replaces it.
        pause: as given; may be changed.
        playing: whether agents move by themselves; if not, `step` moves them.
        problem: the error that has stopped the game; empty if none has.
        games: number of games begun here.
        review: the review of the game that is over, once asked for.
        reviewing: (moves reviewed, moves in all) of a running review, else None.
        loaded: whether the first game was a saved one.
        looking: the seat whose view is uncovered, where people share a device; None at first.
        listeners: called after every change.
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
        self._courses = 0  # number of new games and undos
        self._task: asyncio.Task[None] | None = None
        self._move: Job[int] | None = None  # asks the agent to move
        self._judging: object | None = None  # identifies the running review

    @property
    def now(self) -> tuple[int, int]:
        """Identifies the present position: differs after a move, an undo and a new game."""
        return self._courses, len(self.sitting)

    @property
    def thinking(self) -> bool:
        """Whether an agent is being asked, or is queued."""
        return self._move is not None

    @property
    def waiting(self) -> bool:
        """Whether the agent to move is queued behind agents of other tables."""
        return self._move is not None and not self._move.begun

    @property
    def agent_to_move(self) -> bool:
        """Whether the next move is an agent's."""
        return not self.sitting.over and self.sitting.mover not in self.sitting.people

    def changed(self) -> None:
        """Call the listeners."""
        for listener in list(self.listeners):
            listener()

    def wake(self) -> None:
        """Start the task that moves agents, if it is their turn."""
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
                    with contextlib.suppress(Busy):  # try again
                        await self.step()
        finally:
            self._task = None

    async def step(self) -> None:
        """Let the agent to move play, once a thread is free. Does nothing while an agent is being asked.

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
        except Exception as problem:  # agents may be anybody's code
            if sitting is self.sitting:
                told = f": {problem}" if len(sitting.people) < 2 else ""  # it may reveal what others hold
                self.problem = f"{sitting.seats[sitting.mover]} has failed{told}"
        finally:
            if self._move is move:
                self._move = None
            self.changed()

    async def _shown(self, move: Job[int]) -> None:
        """Wait for a move. If it takes long, call the listeners, and once more when a thread has begun it."""
        result = asyncio.ensure_future(move.result())
        told: bool | None = None
        while not (await asyncio.wait([result], timeout=SHOWN_AFTER))[0]:
            if told != move.begun:
                told = move.begun
                self.changed()
        result.result()

    def hold(self) -> bool:
        """Drop a queued move of an agent. Return whether no agent is being asked now."""
        if self._move is not None and not self._move.drop():
            return False
        self._move = None
        return True

    async def again(self, seed: int | None = None) -> None:
        """Begin a new game with the same options and players; a fresh seed if none is given. Busy while another one is made."""
        old = self.sitting

        def deal() -> Sitting:
            return Sitting(old.variant, seed_or_fresh(seed), old.seats)

        try:
            sitting = await self.work.deals.begin(deal, lambda: old is self.sitting, owner=self).result()
        except Unwanted:
            return
        if old is not self.sitting:  # another request was faster
            return
        self.sitting = sitting
        self.games += 1
        self._move = None  # of the old game
        self.problem = ""
        self.looking = None
        self.change_course()
        self.changed()
        self.wake()

    def change_course(self) -> None:
        """Forget the review and stop a running one: the game has changed."""
        self._courses += 1
        self.review = self.reviewing = self._judging = None

    async def judge(self) -> None:
        """Review all moves, in a thread. It stops when the game changes or the last listener has gone.

        Raises:
            ValueError: the game is not over.
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
    """The target of a link: a table, and the rights there.

    Attributes:
        table: the table.
        kind: "seat": one person plays; "together": all people play on one device; "watch": only agents play; "maker": the page
            of links.
        seat: the person's seat, for a "seat".
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
        """The seat whose person must uncover the view first, where people share a device."""
        sitting = self.sitting
        if self.kind != "together" or sitting.over:
            return None
        if sitting.mover in sitting.people:
            return None if sitting.mover == self.table.looking else sitting.mover
        return sitting.people[0] if self.table.looking is None else None

    @property
    def sees_all(self) -> bool:
        """Whether this place sees everything: the game is over, or no person plays."""
        return self.sitting.over or not self.sitting.people

    @property
    def viewer(self) -> int | None:
        """The seat whose view is shown; None for one that sees everything.

        Raises:
            ValueError: nothing may be shown: the curtain is closed, or this is the page of links.
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
        """The seat that this place plays now, if any."""
        if self.kind in ("watch", "maker") or self.curtain is not None or self.sitting.over:
            return None
        return self.viewer

    @property
    def to_move(self) -> bool:
        """Whether the person at this place is to move."""
        return self.person is not None and self.sitting.mover == self.person and not self.table.problem

    @property
    def may_undo(self) -> bool:
        """Whether a move can be taken back: only if all other seats are agents and none of them is being asked."""
        sitting, person, table = self.sitting, self._only_person(), self.table
        asked = table.thinking and not table.waiting
        return person is not None and not asked and any(entry.seat == person for entry in sitting.history(person))

    @property
    def may_save(self) -> bool:
        """Whether the game may be saved. The file reveals all that is hidden, so not while people play each other."""
        return self.kind != "maker" and not self.table.thinking and (self.sees_all or self._only_person() is not None)

    @property
    def may_begin_again(self) -> bool:
        """Whether a new game may replace this one: not while others play it."""
        return self.kind != "maker" and (self.sees_all or self._only_person() is not None)

    def _only_person(self) -> int | None:
        """Return the seat of the person here, if it is the only person."""
        people = self.sitting.people
        return people[0] if len(people) == 1 and self.kind == "seat" else None

    def picture(self, moves: int | None = None, everything: bool = False) -> Picture:
        """Return the picture for this place, now or after `moves` moves. `everything`: with hidden parts, if allowed."""
        return self.position(len(self.sitting) if moves is None else moves, everything).picture

    def position(self, moves: int, everything: bool = False) -> Position:
        """Return the game after `moves` moves, as it may be seen here. ValueError if fewer were played."""
        return self.sitting.position(moves, None if everything and self.sees_all else self.viewer)

    def history(self, everything: bool = False) -> list[Entry]:
        """Return the moves so far, as they may be known here."""
        return self.sitting.history(None if everything and self.sees_all else self.viewer)

    def play(self, action: int, moves: int) -> None:
        """Play an action for the person here.

        Args:
            action: the action.
            moves: number of moves played in the position that the person saw.

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
        """Open the curtain for the person to move."""
        self.table.looking = self.curtain
        self.table.changed()
        self.table.wake()

    def undo(self) -> None:
        """Take back the last move of the person here. ValueError where that is not allowed."""
        if not self.may_undo or not self.table.hold():
            raise ValueError("nothing can be taken back")
        self.table.problem = ""
        self.table.change_course()
        self.sitting.undo(self._only_person())
        self.table.changed()
        self.table.wake()

    async def hint(self, odds: bool = False) -> Advice | None:
        """Return the value of each choice of the person here, or its odds, found in a thread.

        Returns None if the game has gone on, or all listeners have gone, before it was begun.

        Raises:
            ValueError: it is not this person's turn.
            Busy: too many hints wait, or this table has one already.
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
        """Return the saved game as JSON. ValueError where it may not be saved."""
        if not self.may_save:
            raise ValueError("a saved game reveals what is hidden: it can be saved once the game is over")
        return json.dumps(self.sitting.save(), indent=1) + "\n"


class Tables:
    """The tables of one server, by the secrets of their links.

    Args:
        pause: seconds before each move of an agent.
        most: limit on the tables; a new one replaces the one with the oldest visit among those without listeners.
        forget_after: seconds without a visit after which a table without listeners is forgotten.
        clock: returns the time in seconds.
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
        """Count an attempt to make a table from the page. Busy if there were too many of late."""
        now = self.clock()
        if len(self._starts) == MOST_STARTS and now - self._starts[0] < STARTS_WITHIN:
            wait = math.ceil(STARTS_WITHIN - (now - self._starts[0]))
            raise Busy(f"the server is busy: {MOST_STARTS} tables a minute can be made; try again in {wait} seconds")
        self._starts.append(now)

    async def make(
        self, make: Callable[[], Sitting], wanted: Callable[[], bool] = lambda: True, owner: Any = None, saved: bool = False
    ) -> Table:
        """Make a game in a thread, since its agents may have much to read or to solve, and return a table for it.

        Args:
            make: makes the game.
            wanted: returns whether somebody still waits for the table.
            owner: the object that asks for it, which may ask for one at a time.
            saved: whether it is a saved game, whose moves are played again.

        Raises:
            ValueError: `make` raised it.
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
        """Return a new table for the game, with a secret for each of its links.

        Raises:
            Busy: there are `most` tables, all with listeners.
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
        """Return the place of a link and count a visit; None if there is no such link."""
        self.forget()
        place = self._places.get(secret)
        if place is None or place.kind != kind:
            return None
        self._visited[place.table] = self.clock()
        return place

    def links(self, table: Table) -> dict[str, Place]:
        """Return the links to a table: path → place."""
        return {f"/{place.kind}/{secret}": place for secret, place in self._places.items() if place.table is table}

    def visit(self, table: Table) -> None:
        """Count a visit."""
        if table in self._visited:
            self._visited[table] = self.clock()

    def forget(self) -> None:
        """Drop the tables without listeners that had no visit for `forget_after` seconds."""
        now = self.clock()
        for table in [table for table, last in self._visited.items() if now - last > self.forget_after]:
            if not table.listeners:
                self._remove(table)

    def _remove(self, table: Table) -> None:
        table.playing = False
        del self._visited[table]
        self._places = {secret: place for secret, place in self._places.items() if place.table is not table}
