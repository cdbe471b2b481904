"""The server of the pages, and their addresses."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from urllib.parse import urlsplit

from dice_envs.core.extras import needs
from dice_envs.core.game import names
from dice_envs.core.options import check_range, shown
from dice_envs.experiments.ui.console import console
from dice_envs.table.sitting import Sitting

with needs("web", "the page"):
    from fastapi import Depends, HTTPException, Request
    from fastapi.responses import HTMLResponse
    from nicegui import app, ui

from dice_envs.experiments.web.gate import Gate, drop_malformed_events, is_loopback, names_of_machine
from dice_envs.experiments.web.place import Kind, Place
from dice_envs.experiments.web.start_page import MOST_BYTES, StartPage, first_link, link_page
from dice_envs.experiments.web.table import PAUSE, prepare
from dice_envs.experiments.web.table_page import TablePage
from dice_envs.experiments.web.tables import Tables

__all__ = ["HOST", "serve"]

HOST = "127.0.0.1"
USUAL_PORT = 8080
MOST_HEADERS = 2**12  # bytes of an upload in addition to its file
RECONNECT = 60.0  # seconds for which a page waits for its browser to reconnect
NOTHING_HERE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not found – dice-envs</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"></head>
<body style="font: 16px/1.5 Helvetica, Arial, sans-serif; max-width: 34em; margin: 15vh auto; padding: 0 20px">
<h1 style="font-size: 22px">There is nothing here</h1>
<p>No table has this link. It may be mistyped, or the table was forgotten because nobody came for hours.</p></body></html>"""


def serve(
    sittings: Sequence[Sitting] = (), host: str = HOST, port: int | None = None, show: bool = True, pause: float = PAUSE
) -> None:
    """Serve the page until Ctrl-C.

    The printed address is the start page, where tables are made. If other machines can reach the host, the address contains a
    key; other people get a link to a seat.

    Args:
        sittings: games to begin with, whose links are printed; without any the start page is opened.
        host: address to listen on.
        port: None: 8080, or a free one if that is taken.
        show: whether to open a browser.
        pause: seconds before an agent's move.

    Raises:
        ValueError: the port is out of range.
        OSError: host and port cannot be listened on.
        ImportError: NiceGUI is not installed.
    """
    port = _checked_port(host, port)
    tables = Tables(pause)
    alone = is_loopback(host)
    key = "" if alone else secrets.token_urlsafe(16)
    _add_pages(tables, key, host, sittings[0].variant.game.name if sittings else names()[0])
    local = f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else _in_url(host)}:{port}"
    start = local + ("/" if alone else f"/?key={key}")
    links = []
    for sitting in sittings:
        table = tables.add(prepare(sitting))
        table.loaded = len(sitting) > 0
        links.append(local + first_link(tables, table))
        console.whole_line(f"the game: {links[-1]}")
    first = links[0] if links else start
    console.whole_line(f"{'other games' if links else 'the page'}: {start}")
    if not alone:
        console.whole_line(f"others in your network reach {host}, port {port}: send links only to whom you play with")
    console.whole_line("Ctrl-C ends it")
    if show:
        app.on_startup(lambda: threading.Thread(target=_open, args=(first, host, port), daemon=True).start())
    app.config.quasar_config["loadingBar"]["skipHijack"] = True  # screen readers get no name of it; the pages have spinners
    ui.run(
        host=host,
        port=port,
        title="dice-envs",
        favicon="🎲",
        dark=None,  # as the browser prefers
        language="en-US",
        reload=False,
        show=False,
        tailwind=False,
        reconnect_timeout=RECONNECT,
        show_welcome_message=False,
        binding_refresh_interval=None,
    )


def _open(url: str, host: str, port: int) -> None:
    """Open a browser once the server answers, where there is a screen."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("win32", "darwin")):
        return
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection((urlsplit(url).hostname or host, port), 1):
            webbrowser.open(url)
            return
        time.sleep(0.1)


def _add_pages(tables: Tables, key: str, host: str, usual: str) -> None:
    alone = is_loopback(host)

    # A wrong address is refused before NiceGUI builds a page, which costs time and memory.
    def check_start(request: Request, game: str = usual) -> None:
        has_key = secrets.compare_digest(request.query_params.get("key", "").encode(), key.encode())
        if not has_key or game not in names():
            raise HTTPException(404)

    @ui.page("/", dependencies=[Depends(check_start)])
    def start(game: str = usual) -> None:
        StartPage(tables, game, f"&key={key}" if key else "")

    def add(kind: Kind) -> None:
        def found(secret: str) -> Place:
            place = tables.find(secret, kind)
            if place is None:
                raise HTTPException(404)
            return place

        @ui.page(f"/{kind}/{{secret}}")
        def page(request: Request, place: Place = Depends(found)) -> None:  # noqa: B008
            if kind == "maker":
                link_page(tables, place.table, _base(request, alone), home=alone)
            else:
                TablePage(tables, place, home=alone)

    app.add_exception_handler(404, lambda request, problem: HTMLResponse(NOTHING_HERE, 404))
    app.add_middleware(
        Gate, names=frozenset() if alone else names_of_machine(host), addresses=not alone, most=MOST_BYTES + MOST_HEADERS
    )
    drop_malformed_events()
    kinds: tuple[Kind, ...] = ("seat", "together", "watch", "maker")
    for kind in kinds:
        add(kind)


def _base(request: Request, alone: bool) -> str:
    """Return the beginning of links for other devices: an address in the network, even if the request came by the loopback."""
    base = str(request.base_url).rstrip("/")
    if alone or not is_loopback(urlsplit(base).hostname or ""):
        return base
    return next((url for url in app.urls if not is_loopback(urlsplit(url).hostname or "")), base).rstrip("/")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _checked_port(host: str, port: int | None) -> int:
    """Return a port that can be listened on; OSError, naming host and port, if there is none."""
    if port is not None:
        check_range("port", port, 1, 65535)
        _try(host, port)
        return port
    try:
        _try(host, USUAL_PORT)
    except OSError:
        return _try(host, 0)
    return USUAL_PORT


def _try(host: str, port: int) -> int:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
            return int(trial.getsockname()[1])
    except (OSError, OverflowError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise OSError(f"cannot listen on {shown(host)}, port {port}: {reason}") from None
