"""The page of a person's own record: the finished games that the browser keeps, with luck and play, and the trend."""

from __future__ import annotations

import asyncio
import collections
import datetime
import html
import json
from collections.abc import Sequence
from typing import Any

from nicegui import ui

from dice_envs.evaluation import Scale
from dice_envs.experiments.web.gate import make_agent
from dice_envs.experiments.web.graph import change, cost_graph
from dice_envs.experiments.web.kept import KEEPING, MOST_GAMES, Finding
from dice_envs.experiments.web.parts import begin, button, heading, reporting, words
from dice_envs.experiments.web.review_panel import chips
from dice_envs.experiments.web.start_page import first_link
from dice_envs.experiments.web.tables import Tables
from dice_envs.experiments.web.work import Busy, Unwanted
from dice_envs.table.record import Record, record_of
from dice_envs.table.review import Split
from dice_envs.table.sitting import Sitting

__all__ = ["RecordPage"]

AT_ONCE = 20  # games that the browser sends at a time: less than the million bytes of a message
PATIENCE = 30.0  # seconds within which a browser must answer
RETRY = 2.0  # seconds to wait when the server is busy
ADD = (
    """event => { const input = event.target, files = [...input.files]; input.value = ""; diceRecord.add(files).then(emit) }"""
)
SAVE = """() => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(diceRecord.read(), null, 1)], {type: "application/json"}));
  link.download = "dice-envs-record.json";
  link.click();
}"""


class RecordPage:
    """The page of one browser tab.

    Args:
        tables: all tables, for their workers and findings.
        open_games: whether games may be opened at new tables, and the start page is linked.
        query: query string of the link to the start page.
    """

    def __init__(self, tables: Tables, open_games: bool, query: str = "") -> None:
        self.tables, self.open_games = tables, open_games
        self.client = ui.context.client
        self.rows: list[_Row] = []  # the latest game first
        begin("Your record", "games finished in this browser", f"/{query}" if open_games else "")
        ui.add_body_html(f"<script>{KEEPING}</script>")
        with ui.element("div").classes("narrow record"):
            self.sums = ui.element("div").classes("column sums").props("aria-live=polite")
            with ui.element("section").classes("card"):
                heading("Games")
                self.progress = words("", "words progress").props("role=status")
                self.list = ui.element("ol").classes("games").props("reversed")
            self._files()
        ui.timer(0.0, reporting(self._fill), once=True)

    def _files(self) -> None:
        with ui.element("section").classes("card"):
            heading("Where this is kept")
            words(
                f"In this browser alone, the latest {MOST_GAMES} games. The server receives them to review them, and shows "
                "them to nobody else. Download them to move them to another browser."
            )
            with ui.element("div").classes("line"):
                pick = words("Add saved games", "tool", "button").props("type=button data-name=add")
                picker = ui.element("input").props('type=file multiple accept=".json,application/json" hidden data-name=files')
                pick.on("click", js_handler=f"() => getElement({picker.id}).click()")
                picker.on("change", reporting(self._added), js_handler=ADD)
                words("Download", "tool", "button").props("type=button data-name=download").on("click", js_handler=SAVE)
                self.clear = button("Clear", self._ask, name="clear")
                self.sure = button("Really delete all games?", self._clear, "tool danger", name="clear-all")
                self.sure.visible = False

    # --- the games ----------------------------------------------------------------------------------------------------

    async def _fill(self) -> None:
        """Get the games from the browser, and review them one after the other in the threads for reviews."""
        self.progress.props["data-done"] = "no"
        texts: list[str] = []
        while len(texts) < MOST_GAMES:
            part = await self._ask_browser(f"diceRecord.part({len(texts)}, {AT_ONCE})")
            if not isinstance(part, list) or not part:
                break
            texts += [str(text) for text in part[:AT_ONCE]]
        self.list.clear()
        self.rows = rows = [_Row(self, text) for text in reversed(texts)]
        for row in rows:
            with self.list:
                row.build()
        self._sum_up()
        for number, row in enumerate(rows, 1):
            if row.finding is None:
                self.progress.content = f"Working out luck and play: {number} of {len(rows)}"
                await row.work_out()
                if not row.wanted:
                    return
                self._sum_up()
        self.progress.content = "" if rows else "No game yet. Games that you finish in this browser appear here."
        self.progress.props["data-done"] = "yes"

    async def _ask_browser(self, code: str) -> Any:
        return await self.client.run_javascript(f"return {code}", timeout=PATIENCE)

    def _sum_up(self) -> None:
        groups: dict[tuple[str, str, Scale], list[_Row]] = collections.defaultdict(list)
        for row in reversed(self.rows):
            if row.finding is not None and row.split is not None:
                groups[row.finding.title, row.finding.options, row.split.scale].append(row)
        self.sums.clear()
        with self.sums:
            for (title, options, _), rows in groups.items():
                with ui.element("section").classes("card sum"):
                    heading(" · ".join(filter(None, (title, options))))
                    _sum(rows, record_of((row.finding.review, row.finding.seat) for row in rows if row.finding))

    # --- the buttons --------------------------------------------------------------------------------------------------

    async def _added(self, event: Any) -> None:
        added, problems = event.args
        await self._fill()
        if problems:
            raise ValueError(str(problems)[:500])
        if not added:
            raise ValueError("these games are here already, or too long to be kept")

    def _ask(self) -> None:
        self.clear.visible, self.sure.visible = False, True

    async def _clear(self) -> None:
        await self._ask_browser("diceRecord.write([])")
        self.clear.visible, self.sure.visible = True, False
        await self._fill()

    async def open_game(self, text: str) -> None:
        """Open a kept game at a new table, to step through it."""
        saved = json.loads(text)["saved"]
        try:
            table = await self.tables.make(
                lambda: Sitting.load(saved, make_agent), lambda: not self.client.is_deleted, owner=self.client, saved=True
            )
        except Unwanted:
            return
        ui.navigate.to(first_link(self.tables, table))


class _Row:
    """A game in the list."""

    def __init__(self, page: RecordPage, text: str) -> None:
        self.page, self.text = page, text
        self.finding: Finding | None = page.tables.findings.find(text)
        self.problem = ""

    @property
    def wanted(self) -> bool:
        """Whether the page still shows this row."""
        return not self.page.client.is_deleted and self in self.page.rows

    @property
    def split(self) -> Split | None:
        """Luck and play of the game; None where unknown."""
        return self.finding.review.splits.get(self.finding.seat) if self.finding is not None else None

    @property
    def marks(self) -> collections.Counter[str]:
        """How many of the person's moves have each mark."""
        return self.finding.review.marks(self.finding.seat) if self.finding is not None else collections.Counter()

    def build(self) -> None:
        """Add the row to the list."""
        with ui.element("li").classes("game"):
            self.content = ui.html("", sanitize=False).classes("cells")
            if self.page.open_games:
                button("Open", lambda: self.page.open_game(self.text), "tool", name="open", title="step through the game")
        self.show()

    def show(self) -> None:
        """Show what is known of the game."""
        if self.finding is None:
            name = _name(self.text)
            self.content.content = f"<b>{html.escape(name)}</b> <span class='words'>{html.escape(self.problem or '…')}</span>"
            return
        finding, split = self.finding, self.split
        against = f"against {finding.others}" if finding.others else ""
        about = " · ".join(filter(None, (against, finding.options, _day(self.text))))
        figures = "<span class='words unknown'>no exact values tell luck from play here</span>"
        if split is not None:
            luck, play = change(split.luck, split.scale.is_share), change(split.play, split.scale.is_share)
            figures = f"<span class='figure luck'>luck {luck}</span><span class='figure play'>play {play}</span>"
        self.content.content = (
            f"<span class='what'><b>{html.escape(finding.title)}</b> <span class='words'>{html.escape(about)}</span></span>"
            f"<span class='outcome {finding.outcome}'>{finding.outcome}</span>{figures}"
            f"<span class='marks'>{chips(self.marks)}</span>"
        )

    async def work_out(self) -> None:
        """Review the game in a thread. An error is shown in the row."""

        def done(moves: int, of: int) -> None:
            if not self.wanted:
                raise Unwanted

        findings, reviews = self.page.tables.findings, self.page.tables.work.reviews
        try:
            while self.finding is None:
                try:
                    job = reviews.begin(lambda: findings.work_out(self.text, done), lambda: self.wanted)
                except Busy:
                    await asyncio.sleep(RETRY)
                    continue
                self.finding = await job.result()
        except Unwanted:
            return
        except (ValueError, OSError, ImportError) as problem:
            self.problem = str(problem)
        self.show()


def _day(text: str) -> str:
    """Return the day on which the game of an entry ended; empty if it says none."""
    try:
        ended = datetime.datetime.fromtimestamp(json.loads(text)["ended"] / 1000, datetime.UTC)
        return f"{ended.day} {ended:%b %Y}"
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return ""


def _name(text: str) -> str:
    """Return the game of an entry that has not been checked."""
    try:
        return str(json.loads(text)["saved"]["game"])[:40]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "a game"


def _sum(rows: Sequence[_Row], found: Record) -> None:
    """Add the figures of all games of one kind, and their graph."""
    shares = found.scale.is_share
    unit = "points" if shares else found.scale.unit
    tiles = [
        (str(found.games), "game" if found.games == 1 else "games"),
        (_plus_minus(found.given_away, found.error, shares), f"{unit} given away a game"),
        (change(found.luck, shares).removesuffix(" points"), f"{unit} of luck a game"),
    ]
    if found.trend is not None:
        tiles.append((_plus_minus(found.trend, found.trend_error, shares, sign="+"), "trend from game to game"))
    with ui.element("div").classes("figures"):
        shown = "".join(f"<div><b>{value}</b> <span>{html.escape(text)}</span></div>" for value, text in tiles)
        ui.html(shown, sanitize=False).classes("tiles")
        ui.html(chips(found.marks), sanitize=False).classes("marks")
        if found.error is not None:
            words("± is half of the 95 % interval, in the graph the band.", "words note")
    splits = [row.split for row in rows if row.split is not None]
    titles = [f"game {k}: {change(split.play, shares)}" for k, split in enumerate(splits, 1)]
    ui.html(cost_graph([-split.play for split in splits], titles, found), sanitize=False).classes("graph-box")


def _plus_minus(value: float, error: float | None, shares: bool, sign: str = "") -> str:
    """Return a value with its 95 % interval, in hundredths where it is a share."""
    factor, digits = (100.0, 1) if shares else (1.0, 2)
    text = f"{factor * value:{sign}.{digits}f}".replace("-", "−")
    return text + (f" ± {factor * error:.{digits}f}" if error is not None else "")
