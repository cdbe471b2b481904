"""A place at a table: what the holder of a link may see and do there."""

from __future__ import annotations

import copy
import dataclasses
from typing import Literal

from dice_envs.core.game import Picture
from dice_envs.experiments.web.table import Table
from dice_envs.experiments.web.work import Unwanted
from dice_envs.table.advice import Advice, give_hint, give_odds
from dice_envs.table.sitting import Entry, Position, Sitting

__all__ = ["Kind", "Place"]

Kind = Literal["seat", "together", "watch", "maker"]


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
        return person is not None and not asked and sitting.latest(person) > 0

    @property
    def may_save(self) -> bool:
        """Whether the game may be saved. The file reveals all that is hidden, so not while people play each other."""
        return self.kind != "maker" and not self.table.thinking and (self.sees_all or self._only_person() is not None)

    @property
    def may_begin_again(self) -> bool:
        """Whether a new game may replace this one: not while others play it."""
        return self.kind != "maker" and (self.sees_all or self._only_person() is not None)

    def may_play_on(self, moves: int) -> bool:
        """Whether the game, which is over, may be continued here from its position after `moves` moves: by who moved there."""
        if not self.sitting.over or self.kind not in ("seat", "together") or not 0 <= moves < len(self.sitting):
            return False
        mover = self.sitting.position(moves).mover
        return mover in self.sitting.people and self.seat in (None, mover)

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

    def history(self, everything: bool = False, first: int = 0, last: int | None = None) -> list[Entry]:
        """Return the moves after the first `first` ones, up to move `last` or the latest, as they may be known here."""
        return self.sitting.history(None if everything and self.sees_all else self.viewer, first, last)

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

    def play_on(self, moves: int) -> None:
        """Continue the game, which is over, from its position after `moves` moves. ValueError where that is not allowed."""
        if not self.may_play_on(moves):
            raise ValueError("the game cannot be continued from here")
        self.table.go_back(moves)

    async def hint(self, odds: bool = False) -> Advice | None:
        """Return the value of each choice of the person here, or its odds, found in a thread.

        Returns None if the game goes on, all listeners go, or `stop_hint` is called before it is found.

        Raises:
            ValueError: it is not this person's turn.
            Busy: too many hints wait, or this table has one already.
        """
        if not self.to_move:
            raise ValueError("it is not your turn")
        table, now, state = self.table, self.table.now, self.sitting.state
        find, variant, moves = give_odds if odds else give_hint, self.sitting.variant, len(self.sitting)
        table.hinting = mine = object()

        def wanted() -> bool:
            return table.hinting is mine and table.now == now and bool(table.listeners)

        found = table.following(lambda: find(variant, state, moves), wanted)
        try:
            return await table.work.hints.begin(found, wanted, owner=table).result()
        except Unwanted:
            return None
        finally:
            if table.hinting is mine:
                table.hinting = None

    def stop_hint(self) -> None:
        """Give up the hint that is being found here. A solver stops at its next line; what it has solved is kept."""
        self.table.hinting = None

    def to_save(self) -> Sitting:
        """Return the game as it is now, for a thread that saves it. ValueError where it may not be saved."""
        if not self.may_save:
            raise ValueError("a saved game reveals what is hidden: it can be saved once the game is over")
        return copy.copy(self.sitting)
