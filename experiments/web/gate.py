"""What is let in: hosts and origins, uploads, events, and agents that the page may name; and the headers of every answer."""

from __future__ import annotations

import inspect
import ipaddress
import json
import logging
import math
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dice_envs import agents
from dice_envs.agent import Agent, check_in_passing, check_plays
from dice_envs.agent.casting import make_player
from dice_envs.agents.ppo import POLICIES
from dice_envs.core.game import Variant
from dice_envs.core.own import split_own

__all__ = ["Gate", "check_value", "drop_malformed_events", "is_loopback", "make_agent", "names_of_machine", "runs"]

_log = logging.getLogger(__name__)

# --- requests ---------------------------------------------------------------------------------------------------------

# NiceGUI's page begins with scripts of its own and evaluates what the server sends, so those two cannot be forbidden.
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
MISDIRECTED = "This address is not served here: open the one that the command has printed.\n"
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone, by its name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_of_machine(host: str) -> frozenset[str]:
    """The names by which others may reach a server that listens on `host`: that one and the machine's own."""
    own = {socket.gethostname(), socket.getfqdn(), f"{socket.gethostname().partition('.')[0]}.local"}
    return frozenset(name.lower().rstrip(".") for name in (host, "localhost", *own))


class Gate:
    """Refuses requests and web sockets that another site has sent, before anything is done for them.

    A page of another site can have its name resolve to this machine. The browser then takes it for the same site, but
    names it as the host. An address cannot be made to point elsewhere, so addresses are always let in; of names, those that
    are given.

    Args:
        app: what is behind the gate.
        names: of hosts that are let in.
        addresses: whether any IP address is, or those of the loopback alone.
        most: bytes of an upload.
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
        """The status with which the request is refused; None if it is not."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or not self._serves(hosts[0]):
            return 403
        # A page of this server names the server itself, by the host that its address has.
        if any(origin.lower() not in (f"http://{hosts[0]}".lower(), f"https://{hosts[0]}".lower())
               for origin in _values(scope, b"origin")):  # fmt: skip
            return 403
        if scope["type"] == "http" and "/upload/" in scope["path"]:
            lengths = _values(scope, b"content-length")
            if len(lengths) != 1 or not lengths[0].isdecimal() or int(lengths[0]) > self.most:
                return 413  # before it is read: the page's own limit binds only honest browsers
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
    async def told(message: Any) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message.get("headers", ()) if pair[0].decode("latin-1").lower() not in HEADERS]
            message = {**message, "headers": others + [(name.encode(), value.encode()) for name, value in HEADERS.items()]}
        await send(message)

    return told


# --- events -----------------------------------------------------------------------------------------------------------

MOST_TEXT = 4096  # characters of a value
MOST_SHOWN = 200  # of a problem


def check_value(value: Any, kind: str, choices: int = 0) -> None:
    """Raise ValueError for a value that no browser sends.

    Args:
        value: as the browser has sent it.
        kind: of the field: "number", "position" of a slider, "text", or "choice", which is sent as an object with the place in
            the list. Numbers and texts may be None: nothing was entered.
        choices: how many there are.
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
    """Let each message of a browser through to NiceGUI only if it is well-formed; others end in a line of the log."""
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
        except Refused:  # by NiceGUI, since the page is gone
            raise
        except Exception as problem:
            _log.warning("a page has sent a malformed %s: %.*s", name, MOST_SHOWN, repr(problem))
            return False

    return handle


def _check_event(message: Any) -> None:
    """Raise an exception if the value that an event brings is none of its field's."""
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

NOT_FOUND = (
    "from the page an agent may name a policy that comes with the package or one below runs/, and no other file or module; "
    "this names none that plays the game"
)
_WORD = re.compile(r"[A-Za-z0-9_-]*")


def runs() -> Path:
    """The folder in which `train` saves its runs."""
    return Path("runs")


def make_agent(variant: Variant, spec: str) -> Agent:
    """The agent of a spec that has come from a page, or with a saved game from there.

    Raises:
        ValueError: there is no such agent, it does not play the variant, it names code, or it takes more time, memory or
            threads than people at other tables can spare. One message for all files, whether they are there or not, so that
            nobody learns which are.
    """
    if split_own(spec) is not None:
        raise ValueError(NOT_FOUND)
    named = spec.partition(":")[0] in agents.factories() and _names_file(spec)
    try:
        player = make_player(variant, spec)
        check_in_passing(player, variant)  # first: to see whether they play it, some solve the game
        check_plays(player, variant)
        return player
    except (ValueError, OSError):
        if named:
            raise ValueError(NOT_FOUND) from None
        raise


def _names_file(spec: str) -> bool:
    """Whether a spec names a file. ValueError for one that the page may not name, or for a module."""
    factory, parameters = agents.parse(spec)
    files = getattr(factory, "files", ())
    named = False
    for name in agents.parameters_of(factory):
        value = parameters.get(name, "")
        if name in files:
            if value and not _may_be_read(str(value)):
                raise ValueError(NOT_FOUND)
            named |= bool(value)
        elif not isinstance(value, (bool, int, float, type(None))) and not _WORD.fullmatch(str(value)):
            if str(value).partition(":")[0] not in agents.factories():
                raise ValueError(NOT_FOUND)  # a module, for one
            named |= _names_file(str(value))  # an agent's agent
    return named


def _may_be_read(path: str) -> bool:
    """Whether a path leads to a policy below `runs` or to one of the package, whatever links there are on the way."""
    given = Path(path)
    if given.is_absolute() or given.drive or ".." in given.parts:
        return False
    try:
        roots = [runs().resolve(), POLICIES.resolve()]
        ends = [given.resolve(), (given / "policy.npz").resolve()]  # a folder stands for the file in it
        return any(all(end.is_relative_to(root) for end in ends) for root in roots)
    except (OSError, ValueError, RuntimeError):  # a loop of links, a name that cannot be one
        return False
