"""Finished games that a browser keeps for the person's record: the script that keeps them, and what a server makes of them.

They lie in the browser's `localStorage` as a list of entries, the oldest first: `{"seat": 0, "ended": milliseconds, "saved":
a saved game}`. The server receives them only to review them, and keeps no more than its findings, by a hash.
"""

from __future__ import annotations

import collections
import hashlib
import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from dice_envs.core.options import options_text, shown
from dice_envs.experiments.web.gate import make_agent
from dice_envs.table.review import Review, review
from dice_envs.table.sitting import Sitting

__all__ = ["KEEPING", "MOST_GAMES", "Finding", "Findings", "entry_of", "is_kept"]

MOST_GAMES = 200
MOST_LENGTH = 20_000  # characters of an entry: with MOST_GAMES below the 5 million that browsers keep for a site
MOST_FINDINGS = 1000

# A game is known by its beginning, so that one that is taken up again after its end counts once, as it ended first.
KEEPING = f"""
window.diceRecord = {{
  name: "dice-envs record",
  read() {{
    try {{
      const games = JSON.parse(localStorage.getItem(this.name));
      return Array.isArray(games) ? games : [];
    }} catch {{ return []; }}
  }},
  write(games) {{ localStorage.setItem(this.name, JSON.stringify(games)); }},
  key(game) {{ const {{game: name, options, seed, seats}} = game.saved; return JSON.stringify([name, options, seed, seats]); }},
  keep(entries) {{
    const games = this.read(), known = new Set(games.map(this.key));
    const fresh = entries.filter(entry => !known.has(this.key(entry)) && JSON.stringify(entry).length <= {MOST_LENGTH});
    const all = [...games, ...fresh.map(entry => ({{...entry, ended: entry.ended || Date.now()}}))];
    this.write(all.sort((one, other) => one.ended - other.ended).slice(-{MOST_GAMES}));
    return fresh.length;
  }},
  part(first, count) {{ return this.read().slice(first, first + count).map(entry => JSON.stringify(entry)); }},
  async add(files) {{
    const problems = [];
    let added = 0;
    for (const file of files) {{
      try {{
        const found = JSON.parse(await file.text()), entries = Array.isArray(found) ? found : [found];
        added += this.keep(entries.map(each => this.entry(each, file.lastModified)));
      }} catch (problem) {{ problems.push(`${{file.name}}: ${{problem.message}}`); }}
    }}
    return [added, problems.join("; ").slice(0, 500)];
  }},
  entry(found, ended) {{
    if (found?.saved?.seats && Number.isInteger(found.seat)) return found;
    const people = (found?.seats ?? []).flatMap((who, seat) => who === "person" ? [seat] : []);
    if (!found?.actions || !people.length) throw Error("this is no saved game of a person");
    if (people.length > 1) throw Error("several people played this game; it does not say which of them you are");
    return {{seat: people[0], ended, saved: found}};
  }},
}};
"""


def is_kept(sitting: Sitting) -> bool:
    """Return whether a game is short enough to be kept: each move is two characters or more."""
    return 2 * len(sitting) < MOST_LENGTH


def entry_of(sitting: Sitting, seat: int) -> str:
    """Return the entry of a game that has just ended as JSON, without its time. ValueError if it cannot be saved."""
    return json.dumps({"seat": seat, "saved": sitting.save()})


class Finding(NamedTuple):
    """Findings on a kept game.

    Attributes:
        title: of the game.
        options: those that differ from the defaults, in words.
        others: the players at the other seats.
        seat: the person's.
        outcome: "won", "lost", "tied", or what the person earned.
        review: the review of the person's moves.
    """

    title: str
    options: str
    others: str
    seat: int
    outcome: str
    review: Review


class Findings:
    """Reviews of kept games, the latest MOST_FINDINGS of them, so that a page that is opened again need not wait.

    They are found by a hash of the whole entry: only who has the game gets its review.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: collections.OrderedDict[bytes, Finding] = collections.OrderedDict()

    def find(self, text: str) -> Finding | None:
        """Return the finding on an entry; None if it is unknown."""
        with self._lock:
            return self._found.get(_hash(text))

    def work_out(self, text: str, done: Callable[[int, int], Any]) -> Finding:
        """Return the finding on an entry, as the browser has sent it. Plays and reviews the game: takes long.

        Args:
            text: the entry as JSON.
            done: progress callback of `review`; an exception in it ends the work.

        Raises:
            ValueError: the entry is malformed, not over, or needs an agent that the page does not allow.
        """
        sitting, seat = _parsed(text)
        finding = Finding(
            sitting.variant.game.title,
            options_text(sitting.variant.changed_options()),
            ", ".join(who for other, who in enumerate(sitting.seats) if other != seat),
            seat,
            _outcome(sitting, seat),
            review(sitting, done=done),
        )
        with self._lock:
            self._found[_hash(text)] = finding
            while len(self._found) > MOST_FINDINGS:
                self._found.popitem(last=False)
        return finding


def _outcome(sitting: Sitting, seat: int) -> str:
    returns = sitting.returns
    best = returns == returns.max()
    if len(returns) == 1 or (best.all() and not sitting.variant.facts.zero_sum):
        return f"{returns[seat]:+.3g}"
    return "tied" if best.all() else "won" if best[seat] else "lost"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _parsed(text: str) -> tuple[Sitting, int]:
    if len(text) > MOST_LENGTH:
        raise ValueError(f"a kept game has at most {MOST_LENGTH:,} characters")
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("a kept game must be JSON") from None
    if not isinstance(entry, dict) or "saved" not in entry:
        raise ValueError(f"a kept game is an object with a saved game, not {shown(entry)}")
    sitting, seat = Sitting.load(entry["saved"], make_agent), entry.get("seat")
    if isinstance(seat, bool) or seat not in sitting.people:
        raise ValueError(f"seat must be that of a person, not {shown(seat)}")
    if not sitting.over:
        raise ValueError("the game is not over")
    return sitting, seat
