"""The page of a table for one place: picture, moves to click, history and tools.

Everything sent is built from the place's own view (`place.Place`), so that nothing hidden reaches the browser.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable

import numpy as np
from nicegui import events, ui

from dice_envs.core.options import options_text
from dice_envs.experiments.web.guide import Guide
from dice_envs.experiments.web.moves_panel import MovesPanel
from dice_envs.experiments.web.parts import attend, begin, button, heading, reporting, words
from dice_envs.experiments.web.review_panel import ReviewPanel
from dice_envs.experiments.web.shortcuts import PRESSING, listed
from dice_envs.experiments.web.style import icon
from dice_envs.experiments.web.table import Place, Tables
from dice_envs.pictures.render import svg
from dice_envs.table.advice import Advice
from dice_envs.table.review import Judged
from dice_envs.table.rules import rules_in_short, sections
from dice_envs.table.sitting import PERSON, Entry

__all__ = ["TablePage"]

MOST_ENTRIES = 100  # moves of the history at a time: a game may have many thousands
REPLAY_PAUSE = 1.0  # seconds between two positions of a replay
# On a phone the picture is far above what leads to another position.
TO_PICTURE = """
const picture = document.querySelector(".picture"), bounds = picture.getBoundingClientRect();
if (bounds.top < 0 || bounds.bottom > innerHeight) picture.scrollIntoView({block: "start", behavior: "smooth"});
"""
# On a phone the advice is below the buttons that ask for it.
TO_ADVICE = 'document.querySelector(".advice").scrollIntoView({block: "nearest", behavior: "smooth"});'
# Every move rebuilds the element with the keyboard's focus: focus it again, or else the moves.
REMEMBER_FOCUS = (
    "document.addEventListener('focusin', event => { window.focused = event.target.closest('[data-name]')?.dataset.name })"
)
RESTORE_FOCUS = """
if (document.activeElement === document.body) {
  const name = window.focused?.startsWith("action") ? undefined : window.focused;
  const found = (name && document.querySelector(`[data-name="${name}"]`)) || document.querySelector(".moves[data-stands=mine]");
  (found?.matches("[tabindex], button") ? found : found?.querySelector("[tabindex]"))?.focus({preventScroll: true});
}
"""


class TablePage:
    """The page of one browser tab; each tab of a place has its own.

    Args:
        tables: all tables.
        place: the target of the link.
        home: whether the page may link to the start page.
    """

    def __init__(self, tables: Tables, place: Place, home: bool) -> None:
        self.tables, self.place, self.table, self.home = tables, place, place.table, home
        self.client = ui.context.client
        self.at: int | None = None  # the position shown; None: the present one
        self.until: int | None = None  # the last move of the history shown; None: the latest
        self.everything = False  # whether to show hidden parts, once allowed
        self.games = self.table.games
        self.advice: Advice | None = None  # the last advice, for the position `advised_at`
        self.advised_at = (-1, -1)
        self.asking = False
        sitting = place.sitting
        self.guide = Guide(place)
        self.buttons = MovesPanel(place, self._play, self.refresh)
        self.panel = ReviewPanel(place, self._name, self._jump, self.refresh)
        if self.table.loaded and sitting.over and self.table.games == 1:
            self.at = 0
        begin(sitting.variant.game.title, self._about(), "/" if home else "")
        with ui.element("div").classes("table"):
            with ui.element("div").classes("column"):
                self.guide_card = ui.element("section").classes("card guide").props("aria-live=polite")
                self.picture_card = ui.element("section").classes("card picture").props('aria-label="the table"')
                with self.picture_card:
                    self.picture = ui.html("", sanitize=False).classes("wide-only")
                    self.narrow_picture = ui.html("", sanitize=False).classes("narrow-only")
                self.moves = ui.element("section").classes("card moves").props("tabindex=-1")
                self.steps = ui.element("section").classes("card steps")
            with ui.element("div").classes("column"):
                self.tools = ui.element("section").classes("card")
                self.advice_card = ui.element("section").classes("card advice").props("aria-live=polite")
                self.history = ui.element("section").classes("card")
                self._rules()
                with ui.element("details").classes("card rules"):
                    words("Keys", "", "summary")
                    ui.html(listed(), sanitize=False).classes("shortcuts")
        self.forward = ui.timer(REPLAY_PAUSE, reporting(self._forward), active=False)
        ui.add_body_html(f"<script>{REMEMBER_FOCUS}{PRESSING}</script>")
        self.refresh()
        attend(self.table, self.refresh)
        self.client.on_connect(self.table.prepare)
        self.client.on_connect(self.table.wake)

    def _rules(self) -> None:
        with ui.element("details").classes("card rules"):
            words("Rules", "", "summary")
            with ui.element("ul"):
                for line in rules_in_short(self.place.sitting.variant):
                    words(line, "words", "li")
            heading("In full")
            for section in sections(self.place.sitting.variant.game):
                if section.heading:
                    heading(section.heading)
                for paragraph in section.paragraphs:
                    words(paragraph, "laid" if "  " in paragraph else "words", "p")

    @property
    def _guided(self) -> bool:
        return self.table.guided and self.place.kind == "seat"

    def _about(self) -> str:
        variant = self.place.sitting.variant
        return options_text(variant.changed_options()) or "default options"

    # --- showing ------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Rebuild the page from the state on the server."""
        if self.client.is_deleted:
            return
        try:
            with self.client:
                self._show()
        except Exception as problem:  # an error in one tab must not reach the tab that changed the table
            self.client.handle_exception(problem)

    def _show(self) -> None:
        if self.games != self.table.games:
            self.games, self.at, self.until, self.everything = self.table.games, None, None, False
            self.forward.active = False
        place, sitting = self.place, self.place.sitting
        if self.at is not None and self.at >= len(sitting):
            self.at = None
        covered = place.curtain is not None
        self._mark(covered)
        for part in (self.guide_card, self.picture_card, self.steps, self.history):
            part.visible = not covered
        self.tools.clear()
        self.moves.clear()
        with self.moves:
            if covered:
                self._curtain()
            else:
                self._status()
                if place.to_move and self.at is None:
                    self.buttons.show(self._current)
        if covered:
            self.advice_card.clear()
            self.advice_card.visible = False
            self.picture.content = self.narrow_picture.content = ""
            self.history.clear()
            self.steps.clear()
            self.tools.visible = False
            return
        self.tools.visible = True
        picture = place.picture(self.at, self.everything)
        self.picture.content, self.narrow_picture.content = svg(picture), svg(picture, narrow=True)
        with self.tools:
            self._tools()
        self.guide_card.visible = self._guided
        if self._guided:
            self._rebuild(self.guide_card, lambda: self.guide.show(self._current))
        self._rebuild(self.advice_card, self._advice)
        self._rebuild(self.steps, self._steps)
        self._rebuild(self.history, self._history)
        self.client.run_javascript(RESTORE_FOCUS)

    def _mark(self, covered: bool) -> None:
        """Write the state of the game into attributes, for scripts and tests."""
        stands = "covered" if covered else "over" if self.place.sitting.over else "mine" if self.place.to_move else "theirs"
        self.moves.props["data-stands"] = stands
        self.moves.props["data-moves"] = len(self.place.sitting)
        self.moves.props["data-games"] = self.table.games

    def _rebuild(self, box: ui.element, build: Callable[[], None]) -> None:
        box.clear()
        with box:
            build()

    def _curtain(self) -> None:
        curtain = self.place.curtain
        with ui.element("div").classes("curtain"):
            who = _sentence(self.place.sitting.variant.seat_name(curtain)) if curtain is not None else ""
            words(f"{who}: is nobody else looking?", "status", "p").style("justify-content: center")
            button("Show my view", self.place.uncover, "tool main", name="uncover")

    def _name(self, seat: int) -> str:
        mine = seat == self.place.person or (self.place.kind == "seat" and seat == self.place.seat)
        return self.place.sitting.variant.seat_name(seat, seat if mine else None)

    def _status(self) -> None:
        sitting = self.place.sitting
        mine, says = False, ""
        if self.at is not None:
            says = f"After move {self.at} of {len(sitting)}" if self.at else f"The start, before move 1 of {len(sitting)}"
        elif self.table.problem:
            says = "The game cannot go on"
        elif sitting.over:
            says = self._verdict()
        elif self.place.to_move:
            who = _sentence(sitting.variant.seat_name(sitting.mover))
            mine, says = True, "Your move" if self.place.kind == "seat" else f"{who}, your move"
        else:
            who = sitting.seats[sitting.mover]
            name = _sentence(sitting.variant.seat_name(sitting.mover))
            says = f"{name} is to move" + ("" if who == PERSON else f": {who}")
        with ui.element("div").classes("status mine" if mine else "status").props("role=status aria-live=polite"):
            words(says, "", "span")
            if self.table.thinking and self.at is None:
                ui.spinner(size="1.2em")
        if self.table.thinking and self.table.solving and self.at is None:
            words(f"It solves the game first, once. {_sentence(self.table.solving)}.")
        elif self.table.preparing and self.at is None:
            words(_sentence(f"{self.table.solving or 'your opponent prepares itself, which takes a while the first time'}."))
        if self.table.problem:
            words(self.table.problem, "bad")
        if sitting.over and self.at is None:
            earned = ", ".join(f"{self._name(seat)} {_signed(value)}" for seat, value in enumerate(sitting.returns))
            words(f"Earned: {earned}. The seed was {sitting.seed}.")
        self.panel.lesson(self.at)

    def _verdict(self) -> str:
        sitting = self.place.sitting
        returns = sitting.returns
        best = returns == returns.max()
        if len(returns) == 1 or (best.all() and not sitting.variant.facts.zero_sum):
            return "The game is over"
        if best.all():
            return "The game is over: a tie"
        if self.place.kind == "seat" and self.place.seat is not None:
            return "You win" if best[self.place.seat] else "You lose"
        winners = " and ".join(sitting.variant.seat_name(int(seat)) for seat in np.flatnonzero(best))
        return _sentence(f"{winners} {'wins' if best.sum() == 1 else 'win'}")

    # --- moves and advice -------------------------------------------------------------------------------------------------

    @property
    def _current(self) -> Advice | None:
        """The last advice, if it is about the present position."""
        return self.advice if self.place.to_move and self.advised_at == self.table.now else None

    def _play(self, action: int, moves: int) -> None:
        self.at = self.until = None
        self.place.play(action, moves)

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tools(self) -> None:
        place, sitting = self.place, self.place.sitting
        with ui.element("div").classes("line"):
            if sitting.over:
                waiting = self.table.reviewing is not None
                button("Review", self._review, "tool main", enabled=not waiting and not self.table.review, name="review")
            elif place.kind != "watch":
                can = place.to_move and self.at is None and not self.asking
                button("Hint", lambda: self._ask(False), enabled=can, name="hint", title="what each choice is worth")
                button("Odds", lambda: self._ask(True), enabled=can, name="odds", title="the chances of each choice")
            if len(sitting.people) == 1 and place.kind == "seat":
                button("Undo", place.undo, enabled=place.may_undo, name="undo", title="take your last move back")
            if place.may_begin_again or place.table.thinking:
                button("New game", self._again, enabled=place.may_begin_again, name="again", title="same options, new dice")
            secret = not place.may_save and not self.table.thinking
            title = "possible once the game is over: a saved game reveals all that is hidden" if secret else "as a file"
            button("Save", self._save, enabled=place.may_save, name="save", title=title)
            if self._paced:
                self._pace()
        if not place.may_save and not self.table.thinking:
            words("Saving is possible once the game is over: the file reveals all that is hidden.", "words note")

    @property
    def _paced(self) -> bool:
        """Whether the speed of the agents can be chosen: where agents play, and no other person would be hurried."""
        sitting = self.place.sitting
        agents = len(sitting.seats) - len(sitting.people)
        return self.place.kind in ("seat", "watch") and len(sitting.people) < 2 and agents > 0 and not sitting.over

    def _pace(self) -> None:
        speeds = {3.0: "slow agents", self.tables.pause: "normal speed", 0.15: "fast agents"}
        pace = self.table.pause if self.table.pause in speeds else self.tables.pause
        select = ui.select(speeds, value=pace).classes("pace")
        select.props('outlined dense options-dense aria-label="speed of the agents"')
        select.on_value_change(lambda event: setattr(self.table, "pause", event.value))

    async def _again(self) -> None:
        if not self.place.may_begin_again:
            raise ValueError("others play this game")
        await self.table.again()

    async def _save(self) -> None:
        game = self.place.to_save()
        saved = await asyncio.to_thread(game.as_file)
        self.client.download(saved.encode(), f"{game.variant.game.name}-{game.seed}.json", "application/json")

    # --- advice -------------------------------------------------------------------------------------------------------

    async def _ask(self, odds: bool) -> None:
        now = self.table.now
        self.asking = True
        self.refresh()
        try:
            advice = await self.place.hint(odds)
            if advice is not None and self.table.now == now:
                self.advice, self.advised_at = advice, now
        finally:
            self.asking = False
            self.refresh()
            self.client.run_javascript(TO_ADVICE)

    def _stop(self) -> None:
        self.table.hinting = None  # a solver stops at its next line; what it has solved is kept
        self.asking = False
        self.refresh()

    async def _review(self) -> None:
        await self.table.judge()

    def _advice(self) -> None:
        reviewing, advice = self.table.reviewing, self._current
        self.advice_card.visible = True
        if self.asking:
            self._wait(
                _sentence(self.table.solving) or "Working out each choice; the first time, the game may have to be solved"
            )
            button("Stop", self._stop, name="stop", title="play on without a hint; what is solved is kept for the next time")
        elif reviewing is not None:
            self._wait(f"Working out the cost of each move: {reviewing[0]} of {reviewing[1]}")
            if self.table.solving:
                words(f"The game is solved first, once. {_sentence(self.table.solving)}.")
        elif self.panel.review is not None:
            self.panel.show(self.at)
        elif advice is not None:
            self._hint(advice)
        else:
            self.advice_card.visible = False

    def _wait(self, text: str) -> None:
        with ui.element("div").classes("line"):
            ui.spinner(size="1.4em")
            words(text)

    def _hint(self, advice: Advice) -> None:
        heading(_sentence(advice.title))
        mixed = any(row.share is not None for row in advice.rows)
        head = "<tr><th>choice</th><th>worth</th>" + ("<th>optimal play</th>" if mixed else "") + "</tr>"
        rows = []
        for row in advice.rows:
            share = ""
            if mixed:
                percent = 100 * (row.share or 0.0)
                track = f'<span class="track"><span style="width: {percent:.1f}%"></span></span>'
                share = f'<td class="share">{percent:.0f} %{track}</td>'
            cells = f"<td>{html.escape(row.words)}</td><td>{html.escape(row.text)}</td>{share}"
            rows.append(f"<tr>{cells}</tr>")
        with ui.element("div").classes("rows").props('tabindex=0 role=region aria-label="all choices"'):
            ui.html(f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>", tag="table", sanitize=False).classes("hint")
        if advice.note:
            words(_sentence(advice.note))

    # --- stepping -----------------------------------------------------------------------------------------------------

    @property
    def _live(self) -> bool:
        """Whether only agents play, and the game is not over."""
        return self.place.kind == "watch" and not self.place.sitting.over

    def _steps(self) -> None:
        moves = len(self.place.sitting)
        # Hidden while people play, to save room; the history leads to earlier positions.
        self.steps.visible = self._live or self.at is not None or (self.place.sitting.over and moves > 0)
        now = moves if self.at is None else self.at
        running = self.forward.active or (self._live and self.at is None and self.table.playing)
        with ui.element("div").classes("line"):
            for name, says, action, enabled in (
                ("first", "first position", lambda: self._look(0), now > 0),
                ("back", "one move back", lambda: self._look(now - 1), now > 0),
                ("run", "pause" if running else "play on", self._run, running or self._live or now < moves),
                ("next", "one move on", self._next, now < moves or (self._live and not self.table.playing)),
                ("last", "last position", lambda: self._look(moves), now < moves),
            ):
                sign = icon("pause" if name == "run" and running else name)
                button(says, action, "tool sign", content=sign, enabled=enabled, name=name, title=says)
            words(f"{now} / {moves}", "words", "span")
            if self.place.sees_all and self.place.sitting.people:
                text = "as you saw it" if self.everything else "with all that was hidden"
                button(f"Show {text}", self._toggle, name="everything")
        if moves:
            slider = (
                ui.slider(min=0, max=moves, value=now).props('aria-label="position" data-name="position"').classes("position")
            )
            slider.on_value_change(lambda event: self._slide(event))

    def _slide(self, event: events.ValueChangeEventArguments) -> None:
        self._look(int(event.value))

    def _toggle(self) -> None:
        self.everything = not self.everything
        self.refresh()

    def _look(self, moves: int) -> None:
        self.forward.active = False
        self._move_to(moves)

    def _jump(self, moves: int) -> None:
        self._look(moves)
        self.client.run_javascript(TO_PICTURE)

    def _move_to(self, moves: int) -> None:
        self.at = moves if 0 <= moves < len(self.place.sitting) else None
        if self.at is None:
            self.until = None
        elif not self._shown_from() < max(self.at, 1) <= self._shown_to():
            self.until = self.at + MOST_ENTRIES // 2
        self.refresh()

    def _shown_to(self) -> int:
        """The last move of the history shown."""
        moves = len(self.place.sitting)
        return moves if self.until is None else min(max(self.until, MOST_ENTRIES), moves)

    def _shown_from(self) -> int:
        """The number of moves before the first of the history shown."""
        return max(self._shown_to() - MOST_ENTRIES, 0)

    def _run(self) -> None:
        if self.forward.active:
            self.forward.active = False
        elif self._live and self.at is None:
            self.table.playing = not self.table.playing
            self.table.wake()
            self.table.changed()
            return
        else:
            self.forward.active = True
        self.refresh()

    async def _next(self) -> None:
        if self.at is None and self._live:
            await self.table.step()
        elif self.at is not None:
            self._look(self.at + 1)

    def _forward(self) -> None:
        if self.at is not None:
            self._move_to(self.at + 1)
        if self.at is None:
            self.forward.active = False
            self.refresh()

    # --- history ------------------------------------------------------------------------------------------------------

    def _history(self) -> None:
        sitting = self.place.sitting
        first, last = self._shown_from(), self._shown_to()
        entries = self.place.history(self.everything, first, last)
        heading("History")
        judged = {} if self.panel.review is None else self.panel.review.by_number
        seats = ", ".join(f"{self._name(seat)}{'' if who == PERSON else f' ({who})'}" for seat, who in enumerate(sitting.seats))
        words(f"At the table: {seats}")
        if not entries:
            words("No move yet.")
        here = len(sitting) if self.at is None else self.at
        if last < len(sitting):
            button("Later moves", lambda: self._leaf(last + MOST_ENTRIES), name="later")
        with ui.element("ol").classes("entries").props(f"reversed start={last}"):
            for entry in reversed(entries):
                with ui.element("li"):
                    button(
                        f"move {entry.number}",
                        _bound(self._look, entry.number),
                        "seen here" if entry.number == here else "seen",
                        content=self._line(entry, judged.get(entry.number)),
                    )

        if first:
            button("Earlier moves", lambda: self._leaf(first), name="earlier")

    def _leaf(self, until: int) -> None:
        """Show another part of the history."""
        self.until = until if until < len(self.place.sitting) else None
        self.refresh()

    def _line(self, entry: Entry, judged: Judged | None) -> str:
        said = f"{self._name(entry.seat)}: {entry.words}"
        notes = "".join(f'<span class="notes">{html.escape(note)}</span>' for note in entry.notes)
        if judged is not None:
            notes += self.panel.line(judged)
        return f'<span class="number">{entry.number}</span><span>{html.escape(said)}</span>{notes}'


def _bound(action: Callable[[int], None], value: int) -> Callable[[], None]:
    return lambda: action(value)


def _signed(value: float) -> str:
    return f"{value:+.3g}" if value else "0"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
