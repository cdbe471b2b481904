"""The tables of a server, and the secret links to their places."""

from __future__ import annotations

import collections
import math
import secrets
import time
from collections.abc import Callable
from typing import Any

from dice_envs.experiments.web.place import Kind, Place
from dice_envs.experiments.web.table import PAUSE, Table, prepare
from dice_envs.experiments.web.work import Busy, Unwanted, Work
from dice_envs.table.sitting import Sitting

__all__ = ["FORGET_AFTER", "MOST_TABLES", "Tables"]

MOST_TABLES = 200
MOST_STARTS, STARTS_WITHIN = 30, 60.0  # limit on the tables made from the page, and the seconds that it is for
FORGET_AFTER = 12 * 3600.0  # seconds without a visit


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
