"""Building blocks that the pages share, the keys that press buttons, and the colours of the style sheet, `style.css`.

They are those of the pictures, for light and dark screens.
"""

from __future__ import annotations

import functools
import html
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

from dice_envs.pictures import drawing
from dice_envs.pictures.drawing import ACCENT, PIPS

_log = logging.getLogger(__name__)

LOADING = '<p class="loading" role="status">The table is being laid …</p>'  # until the page's script has run
# data-name of a button → its key
KEYS: Mapping[str, str] = {
    "fewer": "-",
    "more": "+",
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
    ("h o u n", "hint, odds, undo, new game"),
    ("r w p", "review, worst move, play on from here"),
    ("← →", "one move back or on, once the game is over or stepped through"),
)
SCRIPT = Path(__file__).with_name("page.js").read_text(encoding="utf-8")


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


def markup(content: str, classes: str = "", tag: str = "div") -> ui.html:
    """Add HTML, in which all text is escaped."""
    return ui.html(content, tag=tag, sanitize=False).classes(classes)


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
    text: str,  # its words
    action: Callable[[], Any] | None,  # called by a click; errors are shown to the person who clicked. None: it is disabled
    classes: str = "tool",
    *,
    enabled: bool = True,
    content: str = "",  # HTML to show instead of `text`, which then is for screen readers
    name: str = "",  # value of `data-name`, by which scripts and tests find it
    title: str = "",  # tooltip
    key: str = "",  # the key that presses it; by default that of `name`, if it has one
    why: str = "",  # the reason why it does nothing but say so, to those who point at it or press it
) -> ui.html:
    """Add a plain HTML button, so that keys and screen readers work as usual."""
    key = key or KEYS.get(name, "")

    def refuse() -> None:
        raise ValueError(why)

    made = markup(content or html.escape(text), classes, "button")
    done = refuse if why else action if enabled else None
    given = {"type": "button", "data-name": name, "data-key": key, "aria-keyshortcuts": key, "aria-disabled": why and "true"}
    label = {"title": why or title, "aria-label": text if content else "", "disabled": done is None}
    made.props.update({attribute: value for attribute, value in {**given, **label}.items() if value})
    if done is not None:
        made.on("click", reporting(done), args=[])
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
            text = str(problem)
        except Exception:
            _log.exception("a page's handler has failed")
            text = "Something went wrong; the server's terminal says what. The game is as it was."
        with client:
            ui.notify(text, position="top", timeout=6000, multi_line=True, close_button="OK", classes="notice")

    return run


# --- the style sheet ---------------------------------------------------------------------------------------------------


# Colours by name, on light and on dark screens.
COLOURS = {
    "page": ("#eef1f5", "#0f141b"),
    "paper": (drawing.PAPER, "#161c25"),
    "panel": (drawing.PANEL, "#1d2530"),
    "edge": (drawing.EDGE, "#3a4655"),
    "ink": (drawing.INK, "#e6ebf2"),
    "soft": (drawing.SOFT, "#a3afbf"),
    "faint": (drawing.FAINT, "#76818f"),
    "faint-edge": (drawing.FAINT_EDGE, "#4b5664"),
    "accent": (drawing.ACCENT, "#6ea3f2"),
    "accent-panel": (drawing.ACCENT_PANEL, "#1c2b42"),
    "on-accent": ("#ffffff", "#0f141b"),
    "good": ("#1d7a50", "#63c898"),
    "slip": ("#94600a", "#e0b050"),
    "own": ("#8b3fc4", "#c79af0"),
    "bad": ("#b93a52", "#f08a9b"),
}
_LIGHT, _DARK = (" ".join(f"--{name}: {both[dark]};" for name, both in COLOURS.items()) for dark in (0, 1))
_PICTURES = "\n".join(
    f".picture svg [{drawn}='{COLOURS[name][0]}'] {{ {drawn}: var(--{name}); }}"
    for name in ("panel", "edge", "soft", "faint", "faint-edge", "accent", "accent-panel")  # dice keep their colours
    for drawn in ("fill", "stroke")
)


def die(face: int) -> str:
    """Return a small die as an `<svg>` element in the colour of the text around it; a face without pips is a number."""
    if face not in PIPS:
        return f"<span>{face}</span>"
    pips = "".join(
        f'<circle cx="{6 + 4 * (i % 3)}" cy="{6 + 4 * (i // 3)}" r="1.5"/>' for i, pip in enumerate(PIPS[face]) if pip == "1"
    )
    box = '<rect x="1" y="1" width="18" height="18" rx="4" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return f'<svg class="die" viewBox="0 0 20 20" fill="currentColor" aria-hidden="true">{box}{pips}</svg>'


CSS = f"""
:root {{ {_LIGHT} color-scheme: light; }}
.body--dark {{ {_DARK} }}
.picture svg text[fill='{drawing.INK}']:not([text-anchor='middle']) {{ fill: var(--ink); }}
{_PICTURES}
{Path(__file__).with_name("style.css").read_text(encoding="utf-8")}"""
