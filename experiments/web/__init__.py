"""The page of `play --web`: the tables of its server.

A table is a game and its agents, a view of it what the holder of a link may see and do there. `server` has the addresses,
`start_page` and `table_page` the pages, `panels` parts of a table's page, `parts` what all pages share.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import os
import secrets
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

from dice_envs.agent import check_needs
from dice_envs.agent.specs import in_words, make_harmless
from dice_envs.core.game import Picture
from dice_envs.core.work import Unwanted, work
from dice_envs.experiments.ui import seed_or_fresh
from dice_envs.table.advice import Advice, Review, give_hint, give_odds, review
from dice_envs.table.sitting import PERSON, Entry, Sitting

T = TypeVar("T")
Kind = Literal["seat", "together", "watch", "maker"]

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Emma", "Finn")  # of the players at seats 0, 1, …
PAUSE = 0.9  # seconds before an agent's move, so that people can follow
QUICK = 0.15  # the same once all people are out
SHOWN_AFTER = 0.3  # seconds after which a table shows that its agent thinks

# Makes an agent that was typed on a page, is in an uploaded game or comes from an assistant, if people can wait for it.
make_agent = functools.partial(make_harmless, check=check_needs)


class Table:
    """One table: a game and its listeners, one for each connected page.

    After `wake`, agents move in a task of the running event loop, as long as there are listeners. Without listeners no agent is
    asked, no review begins, and a running review stops.
    """

    def __init__(self, sitting: Sitting, pause: float, threads: Executor) -> None:
        sitting.variant = sitting.variant.named(NAMES)
        self.sitting = sitting  # the game; `again` replaces it
        # The player at each seat in words, None for a person.
        self.players = [None if who == PERSON else in_words(sitting.variant, who) for who in sitting.seats]
        self.pause = pause  # seconds before each move of an agent; may be changed
        self.threads = threads  # run agents, hints and reviews
        self.playing = True  # whether agents move by themselves; if not, `step` moves them
        self.problem = ""  # the error that has stopped the game
        self.games = 1  # number of games begun here, or continued from an earlier position
        self.review: Review | None = None  # of the game that is over, once asked for
        self.reviewing = False  # whether a review is running
        self.guided = False  # whether the page explains what to do next
        self.preparing = False  # whether agents prepare themselves, such as by solving the game
        self.looking: int | None = None  # the seat whose view is uncovered, where people share a device
        self.progress_line = ""  # the last line of a solver or a review that works for this table
        # Called after every change, but not where only the progress of a solver or a review has changed: a page that is built
        # anew loses the clicks of that moment.
        self.listeners: list[Callable[[], None]] = []
        self.changes = 0  # number of changes so far
        views = [TableView(self, "seat", seat) for seat in sitting.people] or [TableView(self, "watch")]
        together = [TableView(self, "together")] if len(sitting.people) > 1 else []
        views = [*views, *together, TableView(self, "maker")]
        self.links = {f"/{view.kind}/{secrets.token_urlsafe(24)}": view for view in views}  # path → view
        self._prepared: Sitting | None = None  # the game whose agents have prepared themselves
        self._courses = 0  # number of new games and undos
        self._tasks: set[asyncio.Task[None]] = set()  # kept, since the loop itself would forget them
        self._moving = False  # whether a task moves the agents
        self._asked: Sitting | None = None  # the game whose agent is being asked

    @property
    def now(self) -> tuple[int, int]:
        """Identifies the present position: differs after a move, an undo and a new game."""
        return self._courses, len(self.sitting)

    @property
    def thinking(self) -> bool:
        """Whether an agent is being asked for a move of this game."""
        return self._asked is self.sitting

    @property
    def agent_to_move(self) -> bool:
        """Whether the next move is an agent's."""
        return not self.sitting.over and self.sitting.mover not in self.sitting.people

    @property
    def people_play(self) -> bool:
        """Whether a person is still in the game, or all players are agents."""
        people, out = self.sitting.people, self.sitting.state["out"]
        return not people or not all(out[seat] for seat in people)

    @property
    def first_link(self) -> str:
        """The path that the maker of the table is sent to: the only person's seat, the links, or the view of agents."""
        people = len(self.sitting.people)
        kind = "seat" if people == 1 else "maker" if people else "watch"
        return next(path for path, view in self.links.items() if view.kind == kind)

    def changed(self) -> None:
        """Call the listeners."""
        self.changes += 1
        for listener in list(self.listeners):
            listener()

    def change_course(self) -> None:
        """Tell everybody that the game is another one now: forget the review, stop a running one, and let agents move."""
        self._courses += 1
        self.review, self.reviewing, self.problem = None, False, ""
        self.changed()
        self.wake()

    # --- agents ---------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Start the task that moves agents, if it is their turn."""
        if not self._moving and self._moves_on:
            self._moving = True
            self._begin(self._run())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def _moves_on(self) -> bool:
        return self.playing and self.agent_to_move and not self.problem and bool(self.listeners)

    async def _run(self) -> None:
        try:
            while self._moves_on:
                await asyncio.sleep(self.pause if self.people_play else min(self.pause, QUICK))
                if self._moves_on:
                    await self.step()
        finally:
            self._moving = False

    async def step(self) -> None:
        """Let the agent to move play, in a thread. Does nothing while an agent is being asked."""
        if self.thinking or self.problem or not self.agent_to_move:
            return
        self._asked = sitting = self.sitting
        try:
            await self._shown(self.work(sitting.step, lambda: sitting is self.sitting))
        except Exception as problem:  # agents may be anybody's code
            if sitting is self.sitting:
                reason = f": {problem}" if len(sitting.people) < 2 else ""  # it may reveal what others hold
                self.problem = f"{sitting.seats[sitting.mover]} has failed{reason}"
        finally:
            if self._asked is sitting:
                self._asked = None
            self.changed()

    def prepare(self) -> None:
        """Let agents prepare themselves in a thread, once for each game. They stop when the last listener has gone."""
        if not self.preparing and self._prepared is not self.sitting and self.sitting.prepares:
            self.preparing = True
            self._begin(self._prepare(self.sitting))

    async def _prepare(self, sitting: Sitting) -> None:
        try:
            await self._shown(self.work(sitting.prepare, lambda: sitting is self.sitting))
            if self.listeners:  # else it may have stopped, and the first move does it
                self._prepared = sitting
        finally:
            self.preparing = False
            self.changed()

    # --- threads --------------------------------------------------------------------------------------------------

    async def work(self, call: Callable[[], T], wanted: Callable[[], bool]) -> T | None:
        """Return the call's result from a thread; None if nobody waits for it any more, at this table or at all.

        What solvers say in the call is shown at this table. `wanted` returns whether somebody still waits for it, in any
        thread: else it does not begin, and a solver stops.
        """
        loop = asyncio.get_running_loop()

        def check() -> None:
            if not (self.listeners and wanted()):
                raise Unwanted

        def show(line: str) -> None:
            begins, self.progress_line = not self.progress_line, line
            if begins:
                self.changed()

        def listen(line: str) -> None:
            check()
            loop.call_soon_threadsafe(show, line)

        def run() -> T:
            check()
            with work(say=listen):
                return call()

        try:
            return await loop.run_in_executor(self.threads, run)
        except Unwanted:
            return None
        finally:
            self.progress_line = ""

    async def _shown(self, work: Coroutine[Any, Any, Any]) -> None:
        """Wait for the work; if that takes long, tell the listeners."""
        task = asyncio.ensure_future(work)
        if not (await asyncio.wait([task], timeout=SHOWN_AFTER))[0]:
            self.changed()
        await task

    # --- other games ----------------------------------------------------------------------------------------------

    async def again(self) -> None:
        """Begin a new game with the same options and players, and a fresh seed."""
        old = self.sitting
        sitting = await self.work(lambda: Sitting(old.variant, seed_or_fresh(None), old.seats), lambda: old is self.sitting)
        if sitting is not None and old is self.sitting:  # else another request was faster
            self.sitting = sitting
            self.begin_other()

    def begin_other(self) -> None:
        """Tell everybody that this is another game, a new one or one from an earlier position."""
        self.games += 1
        self.looking = None
        self.change_course()

    # --- reviews --------------------------------------------------------------------------------------------------

    async def judge(self) -> None:
        """Review all moves of a game in a thread until it changes or the last listener has gone. ValueError before its end."""
        if self.review is not None or self.reviewing:
            return
        sitting, course = self.sitting, self._courses
        if not sitting.over:
            raise ValueError("a game is reviewed when it is over")

        self.reviewing = True
        self.changed()
        found = None
        try:
            found = await self.work(lambda: review(sitting, agents=True), lambda: course == self._courses)
        finally:
            if course == self._courses:
                self.review, self.reviewing = found, False
                self.changed()


@dataclasses.dataclass(frozen=True)
class TableView:
    """The target of a link: a table, and the rights there."""

    table: Table
    # "seat": one person plays; "together": all people play on one device; "watch": agents alone play; "maker": page of links.
    kind: Kind
    seat: int | None = None  # the person's seat, for a "seat"

    @property
    def sitting(self) -> Sitting:
        """The game at the table."""
        return self.table.sitting

    def name(self, seat: int) -> str:
        """Return the name of a seat here: "you" for that of the person."""
        return self.sitting.variant.seat_name(seat, seat if seat in (self.seat, self.person) else None)

    # --- seeing ---------------------------------------------------------------------------------------------------

    @property
    def curtain(self) -> int | None:
        """The seat whose person must uncover the view first, where people share a device."""
        sitting = self.sitting
        if self.kind != "together" or sitting.over:
            return None
        if sitting.mover in sitting.people:
            return None if sitting.mover == self.table.looking else sitting.mover
        return sitting.people[0] if self.table.looking is None else None

    def uncover(self) -> None:
        """Open the curtain for the person to move."""
        self.table.looking = self.curtain
        self.table.changed()
        self.table.wake()

    @property
    def sees_all(self) -> bool:
        """Whether this view sees everything: the game is over, or no person plays."""
        return self.sitting.over or not self.sitting.people

    @property
    def viewer(self) -> int | None:
        """The seat whose view is shown; None for one that sees everything. ValueError where nothing may be shown: the curtain
        is closed, or this is the page of links."""
        if self.kind == "seat":
            return self.seat
        if self.kind == "together" and self.curtain is None:
            return None if self.sitting.over else self.table.looking
        if self.kind == "watch" and self.sees_all:
            return None
        raise ValueError("nothing may be seen from here")

    def picture(self, moves: int | None = None, everything: bool = False) -> Picture:
        """Return the picture for this view, now or after `moves` moves, with hidden parts for `everything` if allowed.
        ValueError where nothing may be seen, or fewer moves were played."""
        return self.sitting.picture(None if everything and self.sees_all else self.viewer, moves)

    def history(self, everything: bool = False, first: int = 0, last: int | None = None) -> list[Entry]:
        """Return the moves after the first `first` ones, up to move `last` or the latest, as they may be known here."""
        return self.sitting.history(None if everything and self.sees_all else self.viewer, first, last)

    # --- playing --------------------------------------------------------------------------------------------------

    @property
    def person(self) -> int | None:
        """The seat that this view plays now, if any."""
        if self.kind in ("watch", "maker") or self.curtain is not None or self.sitting.over:
            return None
        return self.viewer

    @property
    def to_move(self) -> bool:
        """Whether the person at this view is to move."""
        return self.person is not None and self.sitting.mover == self.person and not self.table.problem

    def play(self, action: int, moves: int) -> None:
        """Play an action for the person here, who saw the position after `moves` moves. ValueError if it is not this person's
        turn, the game has gone on since, or the action is not legal."""
        self._check_turn()
        if moves != len(self.sitting):
            raise ValueError("the game has gone on since; choose again")
        self.sitting.play(action)
        self.table.changed()
        self.table.wake()

    async def hint(self, odds: bool = False, wanted: Callable[[], bool] = lambda: True) -> Advice | None:
        """Return the value of each choice of the person here, or its odds, found in a thread. None if the game goes on, all
        listeners go, or `wanted` is false before it is found. ValueError if it is not this person's turn."""
        self._check_turn()
        now, variant, state, moves = self.table.now, self.sitting.variant, self.sitting.state, len(self.sitting)

        def waited_for() -> bool:
            return self.table.now == now and wanted()

        found = await self.table.work(lambda: (give_odds if odds else give_hint)(variant, state, moves), waited_for)
        return found if waited_for() else None  # it may have been found after the last line of a solver

    def _check_turn(self) -> None:
        if not self.to_move:
            raise ValueError("it is not your turn")

    @property
    def _alone(self) -> int | None:
        """The seat of the person here, if it is the only person."""
        people = self.sitting.people
        return people[0] if len(people) == 1 and self.kind == "seat" else None

    @property
    def may_undo(self) -> bool:
        """Whether a move can be taken back: only if all other seats are agents and none of them is being asked."""
        return self._alone is not None and not self.table.thinking and self.sitting.latest(self._alone) > 0

    def undo(self) -> None:
        """Take back the last move of the person here. ValueError where that is not allowed."""
        if not self.may_undo:
            raise ValueError("nothing can be taken back")
        self.sitting.undo(self._alone)
        self.table.change_course()

    def may_play_on(self, moves: int) -> bool:
        """Whether the game, which is over, may be continued here from its position after `moves` moves: by who moved there."""
        if not self.sitting.over or self.kind not in ("seat", "together") or not 0 <= moves < len(self.sitting):
            return False
        mover = self.sitting.position(moves).mover
        return mover in self.sitting.people and self.seat in (None, mover)

    def play_on(self, moves: int) -> None:
        """Continue the game, which is over, from its position after `moves` moves. ValueError where that is not allowed."""
        if not self.may_play_on(moves):
            raise ValueError("the game cannot be continued from here")
        self.sitting.cut(moves)
        self.table.begin_other()

    @property
    def may_begin_again(self) -> bool:
        """Whether a new game may replace this one: not while others play it."""
        return self.kind != "maker" and (self.sees_all or self._alone is not None)

    @property
    def may_save(self) -> bool:
        """Whether the game may be saved. The file reveals all that is hidden, so not while people play each other."""
        return self.may_begin_again and not self.table.thinking

    def to_save(self) -> Sitting:
        """Return the game as it is now, for a thread that saves it. ValueError where it may not be saved."""
        if not self.may_save:
            raise ValueError("a saved game reveals what is hidden: it can be saved once the game is over")
        return copy.copy(self.sitting)


class Tables:
    """The tables of one server, which live as long as it does."""

    def __init__(self, pause: float = PAUSE) -> None:
        self.pause = pause  # seconds before each move of an agent
        # Run the slow work of all tables, some at a time, so that the event loop is free for the pages.
        self.threads: Executor = ThreadPoolExecutor(4 + (os.cpu_count() or 1), "page")
        self.views: dict[str, TableView] = {}  # path of a link → the view to which it leads

    def add(self, sitting: Sitting) -> Table:
        """Return a new table for the game, with all compiled that moves need: later that would block the server."""
        trial = Sitting(sitting.variant, 0, [PERSON] * len(sitting.seats))
        trial.play(trial.legal()[0])
        table = Table(sitting, self.pause, self.threads)
        self.views |= table.links
        return table

    async def run(self, call: Callable[[], T]) -> T:
        """Return the call's result from a thread, or raise its exception: a game's agents may have much to read or to solve."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, call)
