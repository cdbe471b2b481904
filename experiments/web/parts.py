"""What several pages are made of."""

from __future__ import annotations

import functools
import html
import inspect
import logging
from collections.abc import Callable
from typing import Any

from nicegui import Client, ui

from dice_envs.experiments.web.style import CSS
from dice_envs.pictures.drawing import ACCENT

__all__ = ["begin", "button", "heading", "told", "words"]

_log = logging.getLogger(__name__)


def begin(title: str, subtitle: str = "", home: bool = True) -> ui.element:
    """Title, colours and the bar at the top of a page. Returns the bar, for what else is to lie in it."""
    ui.page_title(f"{title} – dice-envs" if title != "dice-envs" else title)
    ui.add_css(CSS)
    ui.colors(primary=ACCENT)
    with ui.element("header").classes("bar") as bar:
        ui.html(html.escape(title), tag="h1", sanitize=False)
        if subtitle:
            words(subtitle, "about")
        if home:
            ui.link("Another game", "/").classes("end link")
    return bar


def words(text: str, classes: str = "words", tag: str = "div") -> ui.html:
    """Text as it stands."""
    return ui.html(html.escape(text), tag=tag, sanitize=False).classes(classes)


def heading(text: str) -> None:
    """The heading of a card."""
    ui.html(html.escape(text), tag="h2", sanitize=False)


def button(
    text: str,
    action: Callable[[], Any],
    classes: str = "tool",
    *,
    enabled: bool = True,
    content: str = "",
    name: str = "",
    title: str = "",
) -> ui.html:
    """A plain button of the browser, so that keys and screen readers work as everywhere.

    Args:
        text: its words.
        action: what a click does; problems are told to whoever clicked.
        classes: of the style sheet.
        enabled: whether it can be clicked.
        content: HTML in place of the words, which are then what screen readers say.
        name: to find it by, as `data-name`.
        title: said when the pointer rests on it.
    """
    made = ui.html(content or html.escape(text), tag="button", sanitize=False).classes(classes)
    made.props["type"] = "button"
    if content:
        made.props["aria-label"] = text
    if name:
        made.props["data-name"] = name
    if title:
        made.props["title"] = title
    if enabled:
        made.on("click", told(action), args=[])
    else:
        made.props["disabled"] = True
    return made


def told(action: Callable[..., Any]) -> Callable[..., Any]:
    """The handler, with problems told to whoever caused them and the page left alive."""
    client = ui.context.client

    @functools.wraps(action)
    async def run(*args: Any) -> None:
        try:
            result = action(*args)
            if inspect.isawaitable(result):
                await result
        except (ValueError, OSError) as problem:
            tell(client, str(problem))
        except Exception:
            _log.exception("a page's handler has failed")
            tell(client, "Something went wrong; the server's terminal says what. The game is as it was.")

    return run


def tell(client: Client, text: str) -> None:
    """Show a message for a while."""
    with client:
        ui.notify(text, position="top", timeout=6000, multi_line=True, close_button="OK", classes="told")
