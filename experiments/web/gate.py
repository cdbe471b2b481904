"""Checks of all that comes in: hosts, origins, uploads, events, and the agents that a page names. Headers of every answer."""

from __future__ import annotations

import inspect
import ipaddress
import json
import logging
import math
import re
import socket
from collections.abc import Callable
from typing import Any

from dice_envs.agent import Agent, check_in_passing
from dice_envs.agent.casting import make_harmless
from dice_envs.core.game import Variant

__all__ = ["Gate", "check_value", "drop_malformed_events", "is_loopback", "make_agent", "names_of_machine"]

_log = logging.getLogger(__name__)

# --- requests ---------------------------------------------------------------------------------------------------------

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
MISDIRECTED = "This address is not served here, or not to other sites: type the one that the command has printed.\n"
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Return whether a host, by name or address, is the loopback: this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_of_machine(host: str) -> frozenset[str]:
    """Return the names under which a server that listens on `host` can be reached: `host` and the machine's own names."""
    own = {socket.gethostname(), socket.getfqdn(), f"{socket.gethostname().partition('.')[0]}.local"}
    return frozenset(name.lower().rstrip(".") for name in (host, "localhost", *own))


class Gate:
    """ASGI middleware that refuses requests and web sockets from other sites before any work is done for them.

    DNS rebinding: another site can let its name resolve to this machine. The browser then treats the two as one site, but
    sends that name as the host. So only the given names are served. An IP address cannot be rebound.

    Args:
        app: the ASGI application behind the gate.
        names: host names that are served.
        addresses: whether every IP address is served, or the loopback alone.
        most: limit on an upload, in bytes.
    """

    def __init__(self, app: Any, names: frozenset[str], addresses: bool, most: int) -> None:
        self.app, self.names, self.addresses, self.most = app, names, addresses, most

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer as an ASGI application."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: answered by 403
        else:
            body = MISDIRECTED.encode() if refusal == 403 else b""
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
            await _with_headers(send)({"type": "http.response.start", "status": refusal, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Any) -> int | None:
        """Return the HTTP status that refuses the request; None if it is accepted."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or not self._serves(hosts[0]):
            return 403
        # The origin of the server's own pages is the host of the request.
        if any(origin.lower() not in (f"http://{hosts[0]}".lower(), f"https://{hosts[0]}".lower())
               for origin in _values(scope, b"origin")):  # fmt: skip
            return 403
        # Other sites' images and frames send no origin, but today's browsers say whose a request to this machine is.
        if "cross-site" in _values(scope, b"sec-fetch-site"):
            return 403
        if scope["type"] == "http" and "/upload/" in scope["path"]:
            lengths = _values(scope, b"content-length")
            if len(lengths) != 1 or not lengths[0].isdecimal() or int(lengths[0]) > self.most:
                return 413  # before it is read: the limit in the page binds only honest browsers
        return None

    def _serves(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found["name"].strip("[]").lower().rstrip(".")
        if name in self.names or is_loopback(name):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.addresses


def _values(scope: Any, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _with_headers(send: Any) -> Any:
    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message.get("headers", ()) if pair[0].decode("latin-1").lower() not in HEADERS]
            message = {**message, "headers": others + [(name.encode(), value.encode()) for name, value in HEADERS.items()]}
        await send(message)

    return send_with_headers


# --- events -----------------------------------------------------------------------------------------------------------

MOST_TEXT = 4096  # characters of a value
MOST_SHOWN = 200  # characters of an error in the log


def check_value(value: Any, kind: str, choices: int = 0) -> None:
    """Raise ValueError for a value that no browser sends for this kind of field.

    Args:
        value: the value, as it was received.
        kind: "number", "position" of a slider, "text", or "choice", an object with the index in the list. None stands for an
            empty number or text.
        choices: number of choices.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    place = value.get("value") if isinstance(value, dict) else None
    right = {
        "number": value in (None, "") or is_number or isinstance(value, str),
        "position": is_number,
        "text": value is None or isinstance(value, str),
        "choice": isinstance(place, int) and not isinstance(place, bool) and 0 <= place < choices,
    }[kind]
    if not right or len(str(value)) > MOST_TEXT:
        raise ValueError(f"no browser sends this {kind}")
    if kind in ("number", "position") and value not in (None, "") and not math.isfinite(float(value)):
        raise ValueError(f"no browser sends this {kind}")


def drop_malformed_events() -> None:
    """Let only well-formed messages of browsers reach NiceGUI; log the others in one line."""
    from nicegui import core

    handlers = core.sio.handlers["/"]
    for name in ("connect", "handshake", "event", "javascript_response", "ack", "log"):
        core.sio.on(name, _guarded(name, handlers[name]))


def _guarded(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    from socketio.exceptions import ConnectionRefusedError as Refused  # type: ignore[import-untyped]

    async def handle(sid: str, *message: Any) -> Any:
        try:
            if name == "event":
                _check_event(*message)
            result = handler(sid, *message)
            return await result if inspect.isawaitable(result) else result
        except Refused:  # NiceGUI refuses it: the page is gone
            raise
        except Exception as problem:
            _log.warning("a page has sent a malformed %s: %.*s", name, MOST_SHOWN, repr(problem))
            return False

    return handle


def _check_event(message: Any) -> None:
    """Raise an exception if the value in an event does not fit its field."""
    from nicegui import Client, ui

    client = Client.instances.get(message["client_id"])
    sender = client.elements.get(message["id"]) if client else None
    if sender is None:
        return
    arguments = [None if each is None else json.loads(each) for each in message.get("args", [])]
    if sender._event_listeners[message["listener_id"]].type != "update:modelValue":
        return
    (value,) = arguments
    if isinstance(sender, ui.number):
        check_value(value, "number")
    elif isinstance(sender, ui.slider):
        check_value(value, "position")
    elif isinstance(sender, ui.select):
        check_value(value, "choice", len(sender.options))
    elif isinstance(sender, ui.input):
        check_value(value, "text")


# --- agents -----------------------------------------------------------------------------------------------------------


def make_agent(variant: Variant, spec: str) -> Agent:
    """Make the agent of a spec that was typed on a page, is in an uploaded game, or comes from an assistant.

    Raises:
        ValueError: as in `make_harmless`; or the agent needs more time, memory or threads than a shared server can spare.
    """
    return make_harmless(variant, spec, check_in_passing)
