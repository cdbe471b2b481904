"""One table: a game, the task that moves its agents, and the reviews of its games."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from dice_envs.exact.following import followed
from dice_envs.experiments.ui.options import seed_or_fresh
from dice_envs.experiments.web.graph import thinned
from dice_envs.experiments.web.work import Busy, Job, Unwanted, Work
from dice_envs.table.review import Review, review
from dice_envs.table.sitting import PERSON, Sitting

__all__ = ["PAUSE", "Table", "prepare"]

T = TypeVar("T")

PAUSE = 0.9  # seconds before an agent's move, so that people can follow
SHOWN_AFTER = 0.3  # seconds after which a table shows that its agent thinks or is queued


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
        games: number of games begun here, or continued from an earlier position.
        review: the review of the game that is over, once asked for.
        reviewing: (moves reviewed, moves in all) of a running review, else None.
        loaded: whether the first game was a saved one.
        guided: whether the page explains what to do next.
        preparing: whether agents prepare themselves, such as by solving the game.
        looking: the seat whose view is uncovered, where people share a device; None at first.
        solving: the last line of a solver that works for this table; empty if none does.
        hinting: identifies the hint that is being found, None if none is.
        listeners: called after every change.
        changes: number of changes so far.
    """

    def __init__(self, sitting: Sitting, pause: float = PAUSE, work: Work | None = None) -> None:
        self.sitting = sitting
        self.pause = pause
        self.work = Work(1) if work is None else work
        self.playing = True
        self.problem = ""
        self.games = 1
        self.loaded = False
        self.guided = False
        self.preparing = False
        self.review: Review | None = None
        self.reviewing: tuple[int, int] | None = None
        self.looking: int | None = None
        self.solving = ""
        self.hinting: object | None = None
        self.listeners: list[Callable[[], None]] = []
        self.changes = 0
        self._preparation: asyncio.Task[None] | None = None
        self._prepared: Sitting | None = None  # the game whose agents have prepared themselves
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
        self.changes += 1
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

    def following(self, call: Callable[[], T], wanted: Callable[[], bool]) -> Callable[[], T]:
        """Return the call for a thread: what solvers say is shown at this table, and they stop once the result is unwanted."""
        loop = asyncio.get_running_loop()

        def show(line: str) -> None:
            self.solving = line
            self.changed()

        def listen(line: str) -> None:
            if not wanted():
                raise Unwanted
            loop.call_soon_threadsafe(show, line)

        def run() -> T:
            try:
                with followed(listen):
                    return call()
            finally:
                loop.call_soon_threadsafe(setattr, self, "solving", "")

        return run

    def prepare(self) -> None:
        """Let agents prepare themselves in a thread, once for each game. They stop when the last listener has gone."""
        if self.preparing or self._prepared is self.sitting or not self.sitting.prepares:
            return
        self.preparing = True
        self._preparation = asyncio.get_running_loop().create_task(self._prepare(self.sitting))

    async def _prepare(self, sitting: Sitting) -> None:
        def wanted() -> bool:
            return sitting is self.sitting and bool(self.listeners)

        try:
            await self._shown(self.work.moves.begin(self.following(sitting.prepare, wanted), wanted))
            self._prepared = sitting
        except (Unwanted, Busy):
            pass  # the first move does it
        finally:
            self.preparing = False
            self.changed()

    async def step(self) -> None:
        """Let the agent to move play, once a thread is free. Does nothing while an agent is being asked.

        Raises:
            Busy: too many agents wait.
        """
        if self.thinking or self.problem or not self.agent_to_move:
            return
        sitting = self.sitting

        def wanted() -> bool:
            return sitting is self.sitting and bool(self.listeners)

        move = self.work.moves.begin(self.following(sitting.step, wanted), wanted)
        self._move = move
        try:
            await self._shown(move)
        except Unwanted:
            pass
        except Exception as problem:  # agents may be anybody's code
            if sitting is self.sitting:
                reason = f": {problem}" if len(sitting.people) < 2 else ""  # it may reveal what others hold
                self.problem = f"{sitting.seats[sitting.mover]} has failed{reason}"
        finally:
            if self._move is move:
                self._move = None
            self.changed()

    async def _shown(self, job: Job[Any]) -> None:
        """Wait for a job. If it takes long, call the listeners, and once more when a thread has begun it."""
        result = asyncio.ensure_future(job.result())
        shown: bool | None = None
        while not (await asyncio.wait([result], timeout=SHOWN_AFTER))[0]:
            if shown != job.begun:
                shown = job.begun
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

    def go_back(self, moves: int) -> None:
        """Continue the game that is over from its position after the first `moves` moves.

        Raises:
            ValueError: the game is not over, or `moves` is not fewer than its moves.
        """
        if not self.sitting.over:
            raise ValueError("a game is continued from an earlier position when it is over")
        self.sitting.cut(moves)
        self.games += 1
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

        def report(moves: int, of: int) -> None:
            if self._judging is mine:
                self.reviewing = moves, of
                self.changed()

        told = -1

        def done(moves: int, of: int) -> None:
            nonlocal told
            if not wanted():
                raise Unwanted
            if 100 * moves // of > told:  # each report changes all pages of the table
                told = 100 * moves // of
                loop.call_soon_threadsafe(report, moves, of)

        def find() -> Review:
            found = review(sitting, agents=True, done=done)
            return dataclasses.replace(found, splits={seat: thinned(split) for seat, split in found.splits.items()})

        self._judging = mine
        try:
            job = self.work.reviews.begin(self.following(find, wanted), wanted)
            report(0, len(sitting))
            found = await job.result()
            if self._judging is mine:
                self.review = found
        except Unwanted:
            pass
        finally:
            if self._judging is mine:
                self._judging = self.reviewing = None
                self.changed()
