"""The server of the pages, and their addresses."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from typing import Any, get_args
from urllib.parse import urlsplit

from dice_envs.agent.specs import factories
from dice_envs.core.machine import needs
from dice_envs.core.options import check_range, shown
from dice_envs.experiments.ui import console
from dice_envs.table.sitting import Sitting

with needs("web", "the page"):
    from nicegui import app, ui

    # isort: split
    # What it brings along:
    import ifaddr
    from fastapi import Depends, HTTPException, Request
    from fastapi.responses import HTMLResponse
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import PlainTextResponse

from dice_envs.experiments.web import PAUSE, Kind, Tables, TableView
from dice_envs.experiments.web.start_page import StartPage, link_page, tiles
from dice_envs.experiments.web.table_page import TablePage

HOST = "127.0.0.1"
USUAL_PORT = 8080
TELLING = 0.5  # seconds after which words about a solver or a review are brought up to date
RECONNECT = 60.0  # seconds for which a page waits for its browser to reconnect
NOTHING_HERE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Not found – dice-envs</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"></head>
<body style="font: 16px/1.5 Helvetica, Arial, sans-serif; max-width: 34em; margin: 15vh auto; padding: 0 20px">
<h1 style="font-size: 22px">There is nothing here</h1>
<p>No table has this link. It may be mistyped, or of a server that has ended.</p></body></html>"""

# NiceGUI needs inline scripts and eval.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # links are secrets
}


class OwnPages:
    """ASGI middleware that refuses requests and web sockets of other sites' pages, and forbids them to frame ours."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer as an ASGI application."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        origins = {None, *(f"{scheme}://{headers.get('host', '')}".lower() for scheme in ("http", "https"))}
        # Other sites' images and frames send no origin, but today's browsers say whose a request to this machine is.
        if headers.get("origin") not in origins or headers.get("sec-fetch-site") == "cross-site":
            await PlainTextResponse("The page answers its own requests only.\n", 403)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)


def is_loopback(host: str) -> bool:
    """Return whether a host, by name or address, is the loopback: this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_of(host: str) -> list[str]:
    """Return the names and addresses by which a server that listens on `host` is asked for.

    DNS rebinding: another site can let its name resolve to this machine. The browser then treats the two as one site, but
    sends that name as the host. So no other name is served.
    """
    names = {"localhost", "127.0.0.1", "[::1]", _in_url(host)}
    if not is_loopback(host):
        names |= {socket.gethostname(), socket.getfqdn(), f"{socket.gethostname().partition('.')[0]}.local"}
        addresses = [each.ip for adapter in ifaddr.get_adapters() for each in adapter.ips]
        names |= {each if isinstance(each, str) else f"[{each[0]}]" for each in addresses}  # IPv6: address, flow and scope
    return sorted(name.lower() for name in names)


def serve(
    sittings: Sequence[Sitting] = (), host: str = HOST, port: int | None = None, show: bool = True, pause: float = PAUSE
) -> None:
    """Serve the page until Ctrl-C.

    The printed address is the start page, where tables are made. If other machines can reach the host, the address contains a
    token, and a warning is printed; other people get a link to a seat.

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
    factories()  # imports them, which would keep the first page waiting
    token = "" if is_loopback(host) else secrets.token_urlsafe(16)
    _add_pages(tables, token, sittings[0].variant.game.name if sittings else next(iter(tiles())))
    app.add_middleware(OwnPages)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=names_of(host), www_redirect=False)
    local = f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else _in_url(host)}:{port}"
    start = f"{local}/?token={token}" if token else f"{local}/"
    links = [local + tables.add(sitting).first_link for sitting in sittings]
    for link in links:
        console.whole_line(f"the game: {link}")
    first = [*links, start][0]
    console.whole_line(f"{'other games' if links else 'the page'}: {start}")
    if token:
        console.whole_line(
            f"warning: others in your network reach {host}, port {port}, without encryption: who has a link may use it"
        )
    console.whole_line("Ctrl-C ends it")
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("win32", "darwin")
    app.config.quasar_config["loadingBar"]["skipHijack"] = True  # screen readers get no name of it; the pages have spinners
    ui.run(
        host=host,
        port=port,
        title="dice-envs",
        favicon="🎲",
        dark=None,  # as the browser prefers
        language="en-US",
        reload=False,
        show=first.removeprefix(local) if show and screen else False,
        tailwind=False,
        reconnect_timeout=RECONNECT,
        show_welcome_message=False,
        binding_refresh_interval=TELLING,
    )


def _add_pages(tables: Tables, token: str, usual: str) -> None:
    # A wrong address is refused before NiceGUI builds a page, which costs time and memory.
    def check_start(request: Request, game: str = usual) -> None:
        given = request.query_params.get("token", "")
        if not secrets.compare_digest(given.encode(), token.encode()) or game not in tiles():
            raise HTTPException(404)

    @ui.page("/", dependencies=[Depends(check_start)])
    def start(game: str = usual) -> None:
        StartPage(tables, game, f"&token={token}" if token else "")

    def found(request: Request) -> TableView:
        if request.url.path not in tables.views:
            raise HTTPException(404)
        return tables.views[request.url.path]

    def show(request: Request, view: TableView = Depends(found)) -> None:  # noqa: B008
        if view.kind == "maker":
            link_page(view.table, _base(request, alone=not token), alone=not token)
        else:
            TablePage(view, home=not token)

    for kind in get_args(Kind):
        ui.page(f"/{kind}/{{secret}}")(show)
    app.add_exception_handler(404, lambda request, problem: HTMLResponse(NOTHING_HERE, 404))


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
    for number in (USUAL_PORT, 0) if port is None else (port,):
        try:
            family = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind((host, number))
                return int(trial.getsockname()[1])
        except (OSError, OverflowError, UnicodeError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
    named = f"port {USUAL_PORT} or any other" if port is None else f"port {port}"
    raise OSError(f"cannot listen on {shown(host)}, {named}: {reason}")
