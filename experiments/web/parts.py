"""Building blocks that the pages share, and the keys that press buttons."""

from __future__ import annotations

import functools
import html
import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nicegui import ui

from dice_envs.experiments.web.style import CSS
from dice_envs.pictures.drawing import ACCENT

_log = logging.getLogger(__name__)

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Emma", "Finn")  # of the players at seats 0, 1, …
LOADING = '<p class="loading" role="status">The table is being laid …</p>'  # until the page's script has run
FEWER, MORE = "-", "+"
# data-name of a button → its key
KEYS: Mapping[str, str] = {
    "hint": "h",
    "odds": "o",
    "undo": "u",
    "again": "n",
    "review": "r",
    "worst": "w",
    "play-on": "p",
    "back": "ArrowLeft",
    "next": "ArrowRight",
}
TAKEN = frozenset(KEYS.values())
LISTED = (
    ("1 … 9", "a move, or the face of a bid"),
    ("− +", "fewer or more dice in a bid"),
    ("first letter", "a move beside the bids, such as c for call"),
    ("h o u", "hint, odds, undo"),
    ("r w p", "review, worst move, play on from here"),
    ("← →", "one move back or on, once the game is over or stepped through"),
    ("n", "new game"),
)
# Keys do nothing while one types or moves a slider, and for who has switched them off.
PRESSING = """
const keysOff = () => { try { return localStorage.getItem("diceKeys") === "off" } catch { return false } };
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || keysOff()) return;
  if (event.target.closest("input, textarea, select, [role=slider], [role=combobox], [role=listbox]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const found = [...document.querySelectorAll("[data-key]")].find(
    each => each.dataset.key === key && !each.disabled && each.offsetParent);
  if (found) { event.preventDefault(); found.click(); }
});
document.addEventListener("toggle", event => {
  const box = event.target.querySelector?.("[data-name=keys]");
  if (box) box.checked = !keysOff();
}, true);
document.addEventListener("change", event => {
  if (event.target.dataset?.name !== "keys") return;
  try { localStorage.setItem("diceKeys", event.target.checked ? "on" : "off") } catch {}
});
"""


def begin(title: str, subtitle: str = "", home: str = "/") -> None:
    """Add title, colours and the bar at the top of a page, with a link to the start page."""
    ui.page_title(f"{title} – dice-envs" if title != "dice-envs" else title)
    ui.add_css(CSS)
    ui.add_body_html(LOADING)
    ui.colors(primary=ACCENT)
    with ui.element("header").classes("bar"):
        words(title, "", "h1")
        if subtitle:
            words(subtitle, "about")
        if home:
            with ui.element("nav").classes("end"):
                ui.link("Another game", home).classes("link")


def in_names(text: str) -> str:
    """Return text with names in place of the seats' numbers: "player 1" is Ben."""
    return re.sub(r"\b(?:[Pp]layer|[Mm]aester|[Ss]eat) ([0-5])\b", lambda seat: NAMES[int(seat[1])], text)


def markup(content: str, classes: str = "", tag: str = "div") -> ui.html:
    """Add HTML, in which all text is escaped."""
    return ui.html(in_names(content), tag=tag, sanitize=False).classes(classes)


def words(text: str, classes: str = "words", tag: str = "div") -> ui.html:
    """Add plain text."""
    return markup(html.escape(text), classes, tag)


def heading(text: str) -> None:
    """Add the heading of a card."""
    words(text, "", "h2")


def bullets(lines: Iterable[str]) -> None:
    """Add a list of sentences."""
    with ui.element("ul").classes("rules"):
        for line in lines:
            words(line, "words", "li")


def sentence(text: str) -> str:
    """Return the text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def button(
    text: str,
    action: Callable[[], Any] | None,
    classes: str = "tool",
    *,
    enabled: bool = True,
    content: str = "",
    name: str = "",
    title: str = "",
    key: str = "",
) -> ui.html:
    """Add a plain HTML button, so that keys and screen readers work as usual.

    Args:
        text: its words.
        action: called by a click; errors are shown to the person who clicked. None: it cannot be clicked.
        classes: CSS classes.
        enabled: whether it can be clicked.
        content: HTML to show instead of `text`, which then is for screen readers.
        name: value of `data-name`, by which scripts and tests find it.
        title: tooltip.
        key: the key that presses it; by default that of `name`, if it has one.
    """
    key = key or KEYS.get(name, "")
    made = markup(content or html.escape(text), classes, "button")
    made.props["type"] = "button"
    if content:
        made.props["aria-label"] = in_names(text)
    if name:
        made.props["data-name"] = name
    if key:
        made.props["data-key"] = made.props["aria-keyshortcuts"] = key
    if title:
        made.props["title"] = title
    if enabled and action is not None:
        made.on("click", reporting(action), args=[])
    else:
        made.props["disabled"] = True
    return made


def keys() -> None:
    """Add the list of all keys, with a box that switches them off."""
    rows = "".join(f"<dt><kbd>{html.escape(keys)}</kbd></dt><dd>{html.escape(does)}</dd>" for keys, does in LISTED)
    box = '<label><input type="checkbox" data-name="keys" checked> Use these keys in this browser</label>'
    markup(f"<dl>{rows}</dl>{box}", "shortcuts")


def reporting(action: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler: errors are shown in the browser that caused them, and the page stays alive."""
    client = ui.context.client

    @functools.wraps(action)
    async def run(*args: Any) -> None:
        try:
            result = action(*args)
            if inspect.isawaitable(result):
                await result
            return
        except (ValueError, OSError) as problem:
            text = in_names(str(problem))
        except Exception:
            _log.exception("a page's handler has failed")
            text = "Something went wrong; the server's terminal says what. The game is as it was."
        with client:
            ui.notify(text, position="top", timeout=6000, multi_line=True, close_button="OK", classes="notice")

    return run
