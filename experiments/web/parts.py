"""Building blocks that the pages share, the keys that press buttons, and the style sheet.

Its colours are those of the pictures, for light and dark screens.
"""

from __future__ import annotations

import functools
import html
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
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
# Keys are ignored while typing or dragging a slider, or when disabled.
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


_OFF = ":disabled, [aria-disabled]"
CSS = f"""
:root {{ {_LIGHT} color-scheme: light; }}
:root:has(.body--dark) {{ color-scheme: dark; }}
.body--dark {{ {_DARK} }}
body, body.body--dark {{ background: var(--page); color: var(--ink); }}
body {{ font: 15px/1.45 Helvetica, Arial, sans-serif; }}
.nicegui-content {{ padding: 0; gap: 0; align-items: stretch; width: 100%; }}
.bar {{ display: flex; align-items: center; gap: 12px; padding: 10px 20px; background: var(--paper);
  border-bottom: 1px solid var(--edge); min-height: 52px; flex-wrap: wrap; }}
.bar h1 {{ font-size: 19px; font-weight: 700; line-height: 1.2; margin: 0; }}
.bar .about {{ color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }}
.bar .end {{ margin-left: auto; }}
.table, .narrow {{ margin: 0 auto; width: 100%; padding: 14px 20px 40px; box-sizing: border-box; }}
.table {{ display: grid; grid-template-columns: minmax(0, 1fr); gap: 14px; max-width: 1180px; }}
.narrow {{ max-width: 860px; }}
@media (min-width: 960px) {{
  .table {{ grid-template-columns: minmax(0, 680px) minmax(300px, 1fr); align-items: start; }}
}}
.column {{ display: flex; flex-direction: column; gap: 14px; min-width: 0; flex-wrap: nowrap; }}
.card {{ background: var(--paper); border: 1px solid var(--edge); border-radius: 10px; padding: 14px 16px; min-width: 0; }}
.card h2 {{ font-size: 15px; font-weight: 700; line-height: 1.3; margin: 0 0 8px; }}
.picture {{ padding: 4px; overflow: hidden; }}
.picture svg {{ display: block; width: 100%; height: auto; }}
.picture svg > rect[width='100%'] {{ fill: var(--paper); }}
.picture svg text[fill='{drawing.INK}']:not([text-anchor='middle']) {{ fill: var(--ink); }}
{_PICTURES}
.words {{ color: var(--soft); font-size: 14px; }}
.bad, .mark.blunder {{ color: var(--bad); }}
.line {{ display: flex; flex-wrap: wrap; align-items: center; gap: 8px; }}
button.move, .tool {{ font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--edge);
  border-radius: 8px; padding: 8px 14px; cursor: pointer; min-height: 40px; min-width: 40px; }}
button.move {{ font-weight: 600; }}
button.move:hover:not({_OFF}), .tool:hover:not({_OFF}) {{ border-color: var(--accent); color: var(--accent); }}
button.main {{ background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }}
button.main:hover:not({_OFF}) {{ color: var(--on-accent); filter: brightness(1.08); }}
button:is({_OFF}) {{ opacity: 0.45; cursor: default; }}
button:focus-visible, a:focus-visible, .seen:focus-visible {{ outline: 3px solid var(--accent); outline-offset: 2px; }}
.moves {{ min-height: 12px; }} .moves:focus {{ outline: none; }}
.others {{ margin-top: 10px; }}
.picker {{ display: flex; flex-wrap: wrap; align-items: center; gap: 8px 14px; margin: 12px 0; }}
.stepper {{ display: flex; align-items: center; gap: 6px; }}
.quantity {{ min-width: 3em; text-align: center; font-weight: 700; font-variant-numeric: tabular-nums; }}
.faces {{ display: flex; flex-wrap: wrap; gap: 6px; flex: 1; }}
.faces button.move {{ display: inline-flex; flex-direction: column; align-items: center; justify-content: center; gap: 2px;
  min-width: 46px; min-height: 46px; padding: 4px; }}
.faces .die {{ width: 24px; height: 24px; }}
.faces button.move:is({_OFF}) {{ background: none; border-style: dashed; }}
.every {{ display: none; }}
.guide {{ border-color: var(--accent); }}
.said b {{ display: block; font-size: 16px; color: var(--ink); }}
.said.mine b {{ color: var(--accent); }}
.close td:nth-child(2) {{ font-weight: 700; }}
.pace {{ min-width: 150px; }}
.shortcuts dl {{ display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 14px; margin: 8px 0; }}
.shortcuts dt, .shortcuts dd {{ margin: 0; }}
.shortcuts kbd {{ font: 13px monospace; color: var(--soft); }}
.grid {{ display: grid; gap: 5px; align-items: center; max-height: 330px; overflow-y: auto; padding: 2px; }}
.grid button.move {{ padding: 4px 0; min-width: 0; width: 100%; display: inline-flex; align-items: center;
  justify-content: center; gap: 5px; font-size: 14px; white-space: nowrap; min-height: 38px; }}
.grid button.move:is({_OFF}) {{ background: none; border-style: dashed; opacity: 0.35; }}
.often {{ font-size: 12px; font-weight: 600; color: var(--accent); }}
button.main .often {{ color: inherit; }}
.line button .die:only-of-type {{ width: 26px; height: 26px; }}
.line button .often, .line button .named {{ margin: 0 6px; }}
button.optimal {{ border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent), inset 0 0 0 3px var(--paper); }}
.grid button.optimal {{ flex-wrap: wrap; gap: 0 5px; }}
.die {{ width: 18px; height: 18px; flex: none; vertical-align: -4px; }}
.entries {{ list-style: none; margin: 0; padding: 0; max-height: 420px; overflow-y: auto; }}
.entries li + li {{ border-top: 1px solid var(--edge); }}
.seen {{ display: grid; grid-template-columns: 2.2em minmax(0, 1fr); gap: 2px 6px; width: 100%; text-align: left; font: inherit;
  color: inherit; background: none; border: 0; padding: 7px 4px; cursor: pointer; border-radius: 6px; }}
.seen:hover {{ background: var(--panel); }}
.seen.here {{ background: var(--accent-panel); }}
.seen .number {{ color: var(--soft); font-variant-numeric: tabular-nums; }}
.seen .notes {{ grid-column: 2 / -1; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }}
.rows {{ max-height: 330px; overflow-y: auto; margin-bottom: 6px; }}
.hint {{ width: 100%; border-collapse: collapse; font-size: 14px; }}
.hint th {{ text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; padding: 3px 6px; }}
.hint td {{ padding: 4px 6px; border-top: 1px solid var(--edge); font-variant-numeric: tabular-nums; }}
.hint .share {{ width: 34%; }}
.hint .track {{ display: block; height: 8px; border-radius: 4px; background: var(--edge); overflow: hidden; }}
.hint .track span {{ display: block; height: 100%; background: var(--accent); }}
.split {{ font-size: 16px; font-weight: 600; }}
.mark {{ display: inline-block; border-radius: 6px; padding: 1px 7px; font-size: 12.5px; font-weight: 600; white-space: nowrap;
  border: 1px solid currentColor; }}
.mark.best {{ color: var(--good); }}
.mark.fine {{ color: var(--soft); }}
.mark.slip {{ color: var(--slip); }}
.graph {{ height: 258px; cursor: pointer; }}
.split, .marks, .graph, .pick.small {{ margin: 0 0 8px; }}
.tool[aria-pressed=true] {{ border-color: var(--accent); color: var(--accent); font-weight: 600; }}
.advice .line {{ margin: 10px 0; }}
.lesson {{ margin-top: 10px; padding: 10px 12px; border-radius: 8px; background: var(--panel); display: flex;
  flex-direction: column; gap: 6px; }}
.q-notification.notice {{ background: var(--ink); color: var(--paper); border-radius: 8px; }}
.q-notification.notice .q-btn {{ color: var(--paper) !important; font-weight: 700; }}
.loading {{ text-align: center; margin: 20vh 0; color: var(--soft); }}
body:has(#app > *) .loading {{ display: none; }}
.rules summary {{ font-weight: 700; cursor: pointer; display: list-item; list-style: disclosure-closed inside; }}
.rules[open] summary {{ list-style-type: disclosure-open; }}
.rules h2 {{ margin: 12px 0 4px; }}
.rules p {{ margin: 4px 0; overflow-wrap: anywhere; }}
.rules .laid {{ font: 12.5px/1.4 monospace; white-space: pre-wrap; color: var(--soft); }}
.curtain {{ text-align: center; padding: 60px 20px; }}
.form {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(215px, 1fr)); gap: 12px 18px; align-items: start; }}
.form .q-field--with-bottom {{ padding-bottom: 0; }}
.form .q-field__bottom {{ position: static; transform: none; padding: 3px 2px 0; min-height: 0; }}
.more {{ margin-top: 10px; }}
.more .q-expansion-item__container > .q-item {{ padding: 0 2px; color: var(--soft); }}
.form .q-field__messages {{ line-height: 1.3; color: var(--soft); white-space: normal; }}
.pick {{ display: flex; flex-wrap: wrap; gap: 8px; }}
.pick a {{ color: var(--ink); text-decoration: none; border: 1px solid var(--edge); background: var(--panel);
  border-radius: 8px; padding: 9px 15px; font-weight: 600; }}
.pick a.chosen {{ background: var(--accent); color: var(--on-accent); border-color: var(--accent); }}
.link {{ overflow-wrap: anywhere; color: var(--accent); }}
ul.rules {{ margin: 0 0 12px; padding-left: 18px; }}
.seat {{ display: grid; grid-template-columns: 84px minmax(120px, 1fr) minmax(120px, 1fr); gap: 10px; align-items: center; }}
.q-field--dark .q-field__native, .q-field__native, .q-field__input {{ color: var(--ink); }}
.q-uploader {{ display: none; }}
.q-slider {{ padding: 0 8px; }}
@media (min-width: 600px) {{
  .narrow-only {{ display: none; }}
}}
@media (max-width: 599px) {{
  .wide-only {{ display: none; }}
  .bar {{ padding: 8px 12px; }}
  .table, .narrow {{ padding: 10px 8px 30px; gap: 10px; }}
  .card {{ padding: 12px; }}
  .card.picture {{ padding: 0; }}
  .seat {{ grid-template-columns: 72px minmax(0, 1fr); }}
  .seat > :nth-child(3) {{ grid-column: 2; }}
  .grid {{ gap: 4px; margin-top: 10px; }}
  .moves:not(.all) .grid {{ display: none; }}
  .every {{ display: inline-block; }}
  .card.guide {{ position: fixed; z-index: 5; left: 0; right: 0; bottom: 0; max-height: 36vh; overflow-y: auto;
    border-width: 2px 0 0; border-radius: 0; box-shadow: 0 -4px 16px #0004; }}
  .table:has(.guide > *) {{ padding-bottom: 38vh; }}
  .table:has(.guide > *) .advice {{ scroll-margin-bottom: 38vh; }}
  .grid button.move {{ gap: 2px; font-size: 13px; letter-spacing: -0.02em; }}
}}
"""
