"""Keys that press the buttons of a page, and the list of them."""

from __future__ import annotations

import html
from collections.abc import Mapping

__all__ = ["FEWER", "KEYS", "MORE", "PRESSING", "TAKEN", "listed"]

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


def listed() -> str:
    """Return the list of all keys as HTML, with a box that switches them off."""
    rows = "".join(f"<dt><kbd>{html.escape(keys)}</kbd></dt><dd>{html.escape(does)}</dd>" for keys, does in LISTED)
    box = '<label><input type="checkbox" data-name="keys" checked> Use these keys in this browser</label>'
    return f"<dl>{rows}</dl>{box}"
