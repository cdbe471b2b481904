"""The page of a table for one view: picture, moves to click, history and tools.

Everything sent is built from the seat's own view (`TableView`), so that nothing hidden reaches the browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from nicegui import ui

from dice_envs.experiments.web import PAUSE, TableView, panels
from dice_envs.experiments.web.parts import SCRIPT, begin, bullets, button, heading, keys, markup, sentence, words
from dice_envs.pictures.render import svg
from dice_envs.table.advice import Advice, MoveValue
from dice_envs.table.rules import is_table, known_as, rules_for_players, rules_in_short, variant_words
from dice_envs.table.sitting import Entry

MOST_ENTRIES = 100  # moves of the history at a time: a game may have many thousands
MOST_SAID = 6  # moves that the line above the buttons repeats
SPEEDS = {3.0: "slow agents", PAUSE: "normal speed", 0.15: "fast agents"}  # by seconds before a move
# On a phone the picture is far above what leads to another position, and the advice below the buttons that ask for it.
TO = 'document.querySelector("{}").scrollIntoView({{block: "nearest", behavior: "smooth"}});'
# Every move rebuilds the element with the keyboard's focus: focus it again, or else the moves.
RESTORE_FOCUS = """
if (document.activeElement === document.body) {
  const name = window.focused?.startsWith("action") ? undefined : window.focused;
  const found = (name && document.querySelector(`[data-name="${name}"]`)) || document.querySelector(".moves[data-stands=mine]");
  (found?.matches("[tabindex], button") ? found : found?.querySelector("[tabindex]"))?.focus({preventScroll: true});
}
"""

# The guide of a first game: what to look at and to press next. Its steps follow what the person does.
STEPS = 5
LOOK = "The picture shows all that you may know: your own dice, and what has been done."
BID = "For a bid set a number of dice with − and +, then press a face. A faded one says why it is not possible."
ASK = "It is your move. Press Hint before you choose."
BEST = "A hint says what is best. Other choices opens what each is worth if you play on well from there."
MIXED = "The buttons show how often optimal play takes each choice. It mixes them, since others could see through a habit."
CHOOSE = "Now choose one of the moves below the picture."
ONWARD = (
    "The history lists what has happened; click a line to see the table as it was then.",
    "Undo takes your last move back, Odds shows the chances of each choice. Play on to the end.",
)
MARKED = "★ is a best move, ✓ a fine one, ? a slip and ?? a blunder: in the history each move has its mark."
LUCK = "The line above the marks says how much of the result was luck."
GRAPH = "The graph shows what you could expect after each move."
WORST = "Show me the worst move leads to the position before it, where you can play on in another way."
OTHERS = "New game deals again. Another game leads to all games, options and opponents."


class TablePage:
    """The page of one browser tab; each tab of a view has its own. With `home` it links to the start page."""

    def __init__(self, view: TableView, home: bool) -> None:
        self.view, self.table = view, view.table
        self.client = ui.context.client
        self.at: int | None = None  # the position shown; None: the present one
        self.until: int | None = None  # the last move of the history shown; None: the latest
        self.everything = False  # whether to show hidden parts, once allowed
        self.games = self.table.games
        self.now = self.table.now
        self.advice: Advice | None = None  # about the position `now`
        self.asking: object | None = None  # identifies the hint that is being found for this tab
        self.hinted = False  # whether a hint has been shown
        self.every = False  # whether a hint shows what every choice is worth
        self.quantity: int | None = None  # number of dice picked for a bid there; None: the usual one
        self.reviewed: int | None = None  # the seat whose review was chosen; None: the usual one
        sitting = view.sitting
        begin(known_as(sitting.variant), variant_words(sitting.variant), "/" if home else "")
        with ui.element("div").classes("table"):
            with ui.element("div").classes("column"):
                self.guide_card = ui.element("section").classes("card guide").props("aria-live=polite")
                self.picture_card = ui.element("section").classes("card picture").props('aria-label="the table"')
                with self.picture_card:
                    self.pictures = [ui.html("", sanitize=False).classes(f"{width}-only") for width in ("wide", "narrow")]
                with ui.element("section").classes("card"):
                    # Built once: a screen reader says what changes in it.
                    self.said = words("", "words said").props("role=status aria-live=polite")
                    self.moves = ui.element("div").classes("moves").props("tabindex=-1")
                self.steps = ui.element("section").classes("card steps")
            with ui.element("div").classes("column"):
                self.tools = ui.element("section").classes("card")
                self.advice_card = ui.element("section").classes("card advice").props("aria-live=polite")
                self.history = ui.element("section").classes("card")
                self._rules()
                with ui.element("details").classes("card rules"):
                    words("Keys", "", "summary")
                    keys()
        ui.add_body_html(f"<script>{SCRIPT}</script>")
        self.refresh()
        self.client.on_connect(functools.partial(self._enter, self.table.changes))
        self.client.on_delete(self._leave)

    def _enter(self, built: int) -> None:
        """Follow the table, shown after `built` changes. A request alone, without this, keeps no table and moves no agent."""
        if self.refresh not in self.table.listeners:
            self.table.listeners.append(self.refresh)
            if self.table.changes != built:
                self.refresh()
        self.table.prepare()
        self.table.wake()

    def _leave(self) -> None:
        if self.refresh in self.table.listeners:
            self.table.listeners.remove(self.refresh)

    def _rules(self) -> None:
        with ui.element("details").classes("card rules"):
            words("Rules", "", "summary")
            bullets(rules_in_short(self.view.sitting.variant))
            for section in rules_for_players(self.view.sitting.variant.game):
                heading({"Play": "In full", "Readings": "How the rules are read"}.get(section.heading, section.heading))
                for paragraph in section.paragraphs:
                    words(paragraph, "laid" if is_table(paragraph) else "words", "p")

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

    def show(self, **changes: Any) -> None:
        """Change attributes of this page, such as the seat whose review is shown, and rebuild it."""
        assert changes.keys() <= vars(self).keys(), changes
        vars(self).update(changes)
        self.refresh()

    def _show(self) -> None:
        if self.games != self.table.games:
            self.games, self.at, self.until, self.everything = self.table.games, None, None, False
        if self.now != self.table.now:
            self.now, self.advice, self.quantity = self.table.now, None, None
        view, sitting = self.view, self.view.sitting
        if self.at is not None and self.at >= len(sitting):
            self.at = None
        # The state of the game, for scripts and tests.
        stands = "over" if sitting.over else "mine" if view.to_move else "theirs"
        self.moves.props["data-stands"] = stands if view.curtain is None else "covered"
        self.moves.props["data-moves"] = len(sitting)
        self.moves.props["data-games"] = self.table.games
        with self._rebuilt(self.moves):
            if view.curtain is not None:
                with ui.element("div").classes("curtain"):
                    words(f"{sentence(sitting.variant.seat_name(view.curtain))}: is nobody else looking?", "", "p")
                    button("Show my view", view.uncover, "tool main", name="uncover")
            else:
                self._status()
                if view.to_move and self.at is None:
                    panels.show_moves(self)
        open_to_see = view.curtain is None
        self.said.classes(add="mine" if view.to_move else "", remove="" if view.to_move else "mine")
        self.said.content = self._latest() if open_to_see else ""
        with self._rebuilt(self.guide_card, open_to_see and self.table.guided and view.kind == "seat") as shown:
            if shown:
                self.hinted = self.hinted or self.advice is not None
                number, title, lines = _step(view, self.hinted, self.advice)
                heading(f"Your first game, {number} of {STEPS}: {title}")
                bullets(lines)
                button("Close the guide", self._close_guide, name="close-guide")
        self.picture_card.visible = open_to_see
        for box, narrow in zip(self.pictures, (False, True), strict=True):
            box.content = svg(view.picture(self.at, self.everything), narrow=narrow) if open_to_see else ""
        for card, show in ((self.tools, self._tools), (self.steps, self._steps), (self.history, self._history)):
            with self._rebuilt(card, open_to_see) as shown:
                if shown:
                    show()
        with self._rebuilt(self.advice_card, open_to_see) as shown:
            self.advice_card.visible = shown and self._advice()
        self.client.run_javascript(RESTORE_FOCUS)

    @contextlib.contextmanager
    def _rebuilt(self, card: ui.element, visible: bool = True) -> Iterator[bool]:
        """Empty a card, show or hide it, and add to it what the block adds."""
        card.clear()
        card.visible = visible
        with card:
            yield visible

    def _close_guide(self) -> None:
        self.table.guided = False
        self.table.changed()

    def _follow(self, text: Callable[[str], str]) -> None:
        """Add words about the last line of a solver or a review.

        They alone change with it: a click on a button that is built anew in that moment would be lost.
        """
        words("").bind_content_from(self.table, "progress_line", lambda line: html.escape(text(line)))

    def _wait(self, text: Callable[[str], str]) -> None:
        with ui.element("div").classes("line"):
            ui.spinner(size="1.4em")
            self._follow(text)

    def _status(self) -> None:
        """Add what the agents wait for, what has failed, and after the end what was earned and the seed."""
        table, sitting, present = self.table, self.view.sitting, self.at is None
        if table.thinking and present:
            ui.spinner(size="1.2em")
        if present and table.thinking and table.progress_line:
            self._follow(lambda line: f"It solves the game first, once. {sentence(line)}.")
        elif present and table.preparing:
            usual = "your opponent prepares itself, which takes a while the first time"
            self._follow(lambda line: sentence(f"{line or usual}."))
        if table.problem:
            words(table.problem, "bad")
        if sitting.over and present:
            earned = ", ".join(f"{self.view.name(seat)} {value:+.3g}" for seat, value in enumerate(sitting.returns))
            won = sitting.variant.facts.zero_sum and sitting.variant.facts.max_return == 1  # the line above says so
            words(f"{'' if won else f'Earned: {earned}. '}The seed was {sitting.seed}.")
        if table.review is not None and self.at is not None:
            panels.show_lesson(self, table.review)

    def _latest(self) -> str:
        """Return how the game stands, and what the others have done since the last move of the person here, as HTML."""
        sitting, seat = self.view.sitting, self.view.seat if self.view.person is None else self.view.person
        first = max(len(sitting) - MOST_SAID, 0 if seat is None else sitting.latest(seat) - 1, 0)
        entries = self.view.history(self.everything, first) if self.at is None else []
        done = [". ".join(map(sentence, (f"{self.view.name(each.seat)}: {each.words}", *each.notes))) for each in entries]
        return f"{html.escape('. '.join(done))}<b>{html.escape(self._stands())}</b>"

    def _stands(self) -> str:
        """Return how the game stands, in words."""
        sitting = self.view.sitting
        if self.at is not None:
            return f"After move {self.at} of {len(sitting)}" if self.at else f"The start, before move 1 of {len(sitting)}"
        if self.table.problem:
            return "The game cannot go on"
        if sitting.over:
            return self._verdict()
        name = sentence(sitting.variant.seat_name(sitting.mover))
        if self.view.to_move:
            return "Your move" if self.view.kind == "seat" else f"{name}, your move"
        return f"{name} is to move" if self.table.people_play else f"You are out; {name} is to move"

    def _verdict(self) -> str:
        sitting = self.view.sitting
        returns = sitting.returns
        best = returns == returns.max()
        if len(returns) == 1 or (best.all() and not sitting.variant.facts.zero_sum):
            return "The game is over"
        if best.all():
            return "A tie"
        if self.view.kind == "seat" and self.view.seat is not None:
            return "You win" if best[self.view.seat] else "You lose"
        winners = " and ".join(sitting.variant.seat_name(int(seat)) for seat in np.flatnonzero(best))
        return sentence(f"{winners} {'wins' if best.sum() == 1 else 'win'}")

    # --- moves --------------------------------------------------------------------------------------------------------

    def play(self, action: int, moves: int) -> None:
        """Play an action; see `TableView.play`."""
        self.at = self.until = None
        self.view.play(action, moves)

    # --- tools --------------------------------------------------------------------------------------------------------

    def _tools(self) -> None:
        view, table, sitting = self.view, self.table, self.view.sitting
        secret = not view.may_save and not table.thinking
        with ui.element("div").classes("line"):
            if sitting.over:
                may = not table.reviewing and table.review is None
                button("Review", table.judge, "tool main", enabled=may, name="review")
            elif view.kind != "watch":
                can = view.to_move and self.at is None and self.asking is None
                button("Hint", lambda: self._ask(False), enabled=can, name="hint", title="what each choice is worth")
                button("Odds", lambda: self._ask(True), enabled=can, name="odds", title="the chances of each choice")
            if len(sitting.people) == 1 and view.kind == "seat":
                button("Undo", view.undo, enabled=view.may_undo, name="undo", title="take your last move back")
            if view.may_begin_again or table.thinking:
                button("New game", self._again, enabled=view.may_begin_again, name="again", title="same options, new dice")
            title = "possible once the game is over: a saved game reveals all that is hidden" if secret else "as a file"
            button("Save", self._save, enabled=view.may_save, name="save", title=title)
            agents = len(sitting.seats) - len(sitting.people)
            # The agents' speed, where no other person would be hurried.
            if view.kind in ("seat", "watch") and len(sitting.people) < 2 and agents > 0 and not sitting.over:
                select = ui.select(SPEEDS, value=table.pause if table.pause in SPEEDS else PAUSE).classes("pace")
                select.props('outlined dense options-dense aria-label="speed of the agents"')
                select.on_value_change(lambda event: setattr(table, "pause", event.value))
        if secret:
            words("Saving is possible once the game is over: the file reveals all that is hidden.", "words note")

    async def _again(self) -> None:
        if not self.view.may_begin_again:
            raise ValueError("others play this game")
        await self.table.again()

    async def _save(self) -> None:
        game = self.view.to_save()
        saved = await asyncio.to_thread(game.as_file)
        self.client.download(saved.encode(), f"{game.variant.game.name}-{game.seed}.json", "application/json")

    # --- advice -------------------------------------------------------------------------------------------------------

    async def _ask(self, odds: bool) -> None:
        self.asking = mine = object()
        self.refresh()
        try:
            advice = await self.view.hint(odds, lambda: self.asking is mine)
            if advice is not None:
                self.advice, self.quantity = advice, None
        finally:
            if self.asking is mine:  # else it was stopped, and another may have been asked for
                self.asking = None
                self.refresh()
                self.client.run_javascript(TO.format(".advice"))

    def _advice(self) -> bool:
        """Add advice, a review, or how far they are; return whether there is any."""
        table, advice = self.table, self.advice
        if self.asking is not None:
            usual = "Working out each choice; the first time, the game may have to be solved"
            self._wait(lambda line: sentence(line) or usual)
            title = "play on without a hint; what is solved is kept for the next time"  # a solver stops at its next line
            button("Stop", lambda: self.show(asking=None), name="stop", title=title)
        elif table.reviewing:
            self._wait(lambda line: f"Working out the cost of each move: {line}".rstrip(": "))
        elif table.review is not None:
            panels.show_review(self, table.review)
        elif advice is not None:
            self._hint(advice)
        else:
            return False
        return True

    def _hint(self, advice: Advice) -> None:
        """Add the hint in a sentence, and behind it the value of each choice."""
        heading(sentence(advice.sentence or advice.title))
        if advice.sentence:
            made = button("Other choices", lambda: self.show(every=not self.every), name="choices")
            made.props["aria-expanded"] = str(self.every).lower()
        if self.every or not advice.sentence:
            _choices(advice)

    # --- stepping -----------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> int:
        """The number of moves of the position shown."""
        return len(self.view.sitting) if self.at is None else self.at

    @property
    def _live(self) -> bool:
        """Whether only agents play, and the game is not over."""
        return self.view.kind == "watch" and not self.view.sitting.over

    def _steps(self) -> None:
        moves = len(self.view.sitting)
        # Hidden while people play, to save room; the history leads to earlier positions.
        self.steps.visible = self._live or self.at is not None or (self.view.sitting.over and moves > 0)
        now = self.shown
        with ui.element("div").classes("line"):
            button("◀", lambda: self._look(now - 1), enabled=now > 0, name="back", title="one move back")
            if self._live:
                text = "pause" if self.table.playing and self.at is None else "play on"
                button(text, self._run, name="run")
            forward = now < moves or (self._live and not self.table.playing)
            button("▶", self._next, enabled=forward, name="next", title="one move on")
            words(f"{now} / {moves}", "words", "span")
            if self.view.sees_all and self.view.sitting.people:
                text = "as you saw it" if self.everything else "with all that was hidden"
                button(f"Show {text}", lambda: self.show(everything=not self.everything), name="everything")
        if moves:
            slider = ui.slider(min=0, max=moves, value=now).classes("position")
            slider.props('aria-label="position" data-name="position"')
            slider.on_value_change(lambda event: self._look(int(event.value)))

    def _look(self, moves: int) -> None:
        self.at = moves if 0 <= moves < len(self.view.sitting) else None
        if self.at is None:
            self.until = None
        elif not self._shown_from() < max(self.at, 1) <= self._shown_to():
            self.until = self.at + MOST_ENTRIES // 2
        self.refresh()

    def jump(self, moves: int) -> None:
        """Show the position after a number of moves, in sight."""
        self._look(moves)
        self.client.run_javascript(TO.format(".picture"))

    def _run(self) -> None:
        """Let agents move by themselves or not; from an earlier position, return to the present one."""
        self.table.playing = self.at is not None or not self.table.playing
        self.at = self.until = None
        self.table.wake()
        self.table.changed()

    async def _next(self) -> None:
        if self.at is not None:
            self._look(self.at + 1)
        elif self._live:
            await self.table.step()

    # --- history ------------------------------------------------------------------------------------------------------

    def _shown_to(self) -> int:
        """Return the number of the last move of the history shown."""
        moves = len(self.view.sitting)
        return moves if self.until is None else min(max(self.until, MOST_ENTRIES), moves)

    def _shown_from(self) -> int:
        """Return the number of moves before the first of the history shown."""
        return max(self._shown_to() - MOST_ENTRIES, 0)

    def _history(self) -> None:
        view, sitting = self.view, self.view.sitting
        first, last = self._shown_from(), self._shown_to()
        entries = view.history(self.everything, first, last)
        heading("History")
        seats = ", ".join(f"{view.name(seat)}{f' ({who})' if who else ''}" for seat, who in enumerate(self.table.players))
        words(f"At the table: {seats}")
        if not entries:
            words("No move yet.")
        if last < len(sitting):
            button("Later moves", lambda: self._leaf(last + MOST_ENTRIES), name="later")
        with ui.element("ol").classes("entries").props(f"reversed start={last}"):
            for entry in reversed(entries):
                with ui.element("li"):
                    look = functools.partial(self._look, entry.number)
                    classes = "seen here" if entry.number == self.shown else "seen"
                    button(f"move {entry.number}", look, classes, content=self._line(entry))
        if first:
            button("Earlier moves", lambda: self._leaf(first), name="earlier")

    def _leaf(self, until: int) -> None:
        """Show another part of the history."""
        self.show(until=until if until < len(self.view.sitting) else None)

    def _line(self, entry: Entry) -> str:
        said = html.escape(f"{self.view.name(entry.seat)}: {entry.words}")
        notes = "".join(f'<span class="notes">{html.escape(note)}</span>' for note in entry.notes)
        judged = self.table.review.by_number.get(entry.number) if self.table.review is not None else None
        if judged is not None:
            notes += panels.judged_line(judged)
        return f'<span class="number">{entry.number}</span><span>{said}</span>{notes}'


def _choices(advice: Advice) -> None:
    """Add the value of each choice as a table."""
    mixed = any(row.share is not None for row in advice.rows)
    head = f"<tr><th>choice</th><th>{advice.meaning}</th>" + ("<th>optimal play</th>" if mixed else "") + "</tr>"
    tied = sum(row.close for row in advice.rows) > 1
    rows = "".join(_choice(row, mixed, tied and row.close) for row in advice.rows)
    with ui.element("div").classes("rows").props('tabindex=0 role=region aria-label="choices"'):
        markup(f"<thead>{head}</thead><tbody>{rows}</tbody>", "hint", "table")
    if tied:
        words("No sample tells which of those in bold letters is the best.")
    panels.show_note(advice)


def _choice(row: MoveValue, mixed: bool, bold: bool) -> str:
    cells = f"<td>{html.escape(row.words)}</td><td>{html.escape(row.text)}</td>"
    if mixed:
        percent = 100 * (row.share or 0.0)
        track = f'<span class="track"><span style="width: {percent:.1f}%"></span></span>'
        cells += f'<td class="share">{percent:.0f} %{track}</td>'
    return f"<tr{' class=close' if bold else ''}>{cells}</tr>"


def _step(view: TableView, hinted: bool, advice: Advice | None) -> tuple[int, str, Sequence[str]]:
    """Return the number of the present step, its heading and sentences. Steps that lie behind are not shown again."""
    sitting = view.sitting
    if (review := view.table.review) is not None:
        split, seat = review.splits.get(view.seat or 0), view.seat or 0
        shown = (review.marks[seat], split, split and len(split.points) <= panels.MOST_STEPS, seat in review.worst, True)
        lines = zip((MARKED, LUCK, GRAPH, WORST, OTHERS), shown, strict=True)
        return 5, "What a review says", [line for line, has in lines if has]
    if sitting.over:
        return 4, "The end", ("Press Review: it shows what each of your moves has cost.",)
    if not view.to_move:
        return 3 if hinted else 1, "The others move", ("The history lists what they do.",)
    if not hinted:
        bid = [BID] if panels.arrange(sitting.variant, sitting.legal())[0] else []
        return 1, "The table", (LOOK, *bid, ASK)
    if advice is None and sitting.latest(sitting.mover):
        return 3, "Play on", ONWARD
    best = [BEST] if advice is not None and advice.title != panels.ODDS else []
    mixed = [MIXED] if advice is not None and any(row.share for row in advice.rows) else []
    return 2, "What a hint says", (*best, *mixed, CHOOSE)
