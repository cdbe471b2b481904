"""What the server refuses: hosts, other sites' pages, wrong links. Without a browser."""

import socket
import urllib.error
import urllib.request
from urllib.parse import quote

import pytest

from dice_envs.table.sitting import PERSON
from tests.experiments.web.browser import serving, started

pytest.importorskip("nicegui")
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from dice_envs.experiments.web.server import OwnPages, names_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Starlette's test client


async def behind(scope, receive, send):
    if scope["type"] == "http":
        await PlainTextResponse("in", headers={"X-Frame-Options": "ALLOWALL"})(scope, receive, send)
    else:
        await WebSocket(scope, receive, send).accept()


def client(host="127.0.0.1"):
    return TestClient(TrustedHostMiddleware(OwnPages(behind), names_of(host), www_redirect=False))


def opens(asked, **headers):
    """Whether both a request and a web socket are let in; they must not differ."""
    answer = asked.get("/", headers=headers)
    try:
        with asked.websocket_connect("/", headers=headers):
            socket_opens = True
    except (WebSocketDisconnect, WebSocketDenialResponse):
        socket_opens = False
    assert socket_opens == (answer.status_code == 200)
    assert socket_opens == (answer.text == "in")
    return socket_opens


def test_hosts_by_which_the_server_is_not_known_are_refused():
    alone, shared, named = client(), client("0.0.0.0"), client("games.example")
    for host in ("127.0.0.1:8080", "localhost:9000", "LOCALHOST", "[::1]:8080"):
        assert opens(alone, host=host), host
        assert opens(shared, host=host), host
    for host in ("evil.example:8080", "localhost.evil.example", "evil@localhost", "127.0.0.1.evil.example", "localhost:x"):
        assert not opens(alone, host=host), host
        assert not opens(shared, host=host), host
    for asked, name in ((shared, socket.gethostname()), (named, socket.gethostname()), (named, "games.example")):
        assert opens(asked, host=f"{name}:80")
        assert not opens(alone, host=f"{name}:80")
    assert opens(client("::"), host="[::1]:8080")


def test_other_sites_are_refused():
    asked, host = client(), "localhost:8080"
    assert opens(asked, host=host)
    assert opens(asked, host=host, origin="http://localhost:8080")
    for origin in ("http://evil.example", "null", "http://localhost:9000", "http://127.0.0.1:8080", ""):
        assert not opens(asked, host=host, origin=origin), origin
    for site in ("same-origin", "same-site", "none"):
        assert opens(asked, **{"host": host, "sec-fetch-site": site}), site
    assert not opens(asked, **{"host": host, "sec-fetch-site": "cross-site"}), "images have no origin"


def test_every_answer_forbids_frames_and_foreign_content():
    for headers in ({}, {"origin": "http://evil.example"}):
        found = client().get("/", headers={"host": "localhost", **headers}).headers
        assert found.get_list("x-frame-options") == ["DENY"]
        assert "frame-ancestors 'none'" in found["content-security-policy"]
        assert "default-src 'self'" in found["content-security-policy"]


def status(url, **headers):
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


@pytest.mark.slow
def test_a_server_refuses_what_it_should_and_makes_nothing_for_it(tmp_path):
    """NiceGUI's answers contain the identity of a page's client; if no client was made there is none."""
    game = ("thirties", {}, 1, [PERSON, "random"])
    socket_path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    with (tmp_path / "log").open("w+") as log, serving([game], log=log) as (address, (link,)):
        assert "client_id" in status(link)[1]
        for path in ("/", socket_path):
            assert status(address + path)[0] == 200
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                code, body = status(address + path, **headers)
                assert code in (400, 403)
                assert "client_id" not in body
        for path in ("/nothing", "/seat/x", link.removeprefix(address).replace("/seat/", "/maker/"), "/?game=chess"):
            code, body = status(address + path)
            assert code == 404
            assert "nothing here" in body
            assert "client_id" not in body
        log.seek(0)
        assert "Traceback" not in log.read()


@pytest.mark.slow
def test_a_network_needs_the_token_of_the_printed_link_and_is_warned_of():
    with started([("thirties", {}, 1, [PERSON, PERSON])], host="0.0.0.0") as (_, (maker, start, warning)):
        start = start.split()[-1]
        address, token = start.split("/?token=")
        assert len(token) > 20
        assert warning.startswith("warning: ")
        assert status(start)[0] == status(maker.split()[-1])[0] == 200
        for wrong in ("/", "/?token=", f"/?token={token[:-1]}", f"/?token=é{token}"):
            assert status(address + quote(wrong, "/?="))[0] == 404
