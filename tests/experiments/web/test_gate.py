"""What the server accepts: hosts, origins, events, and agents named by a page. Without a browser."""

import asyncio
import contextlib
import json
import re
import urllib.error
import urllib.request

import pytest

from dice_envs import agents, configure, load, names
from dice_envs.agents import NOT_FOUND, for_game
from dice_envs.agents.ppo import POLICIES
from dice_envs.experiments.web.forms import fields_of, options_of
from dice_envs.experiments.web.gate import Gate, check_value, make_agent, names_of_machine
from dice_envs.experiments.web.tables import MOST_STARTS, STARTS_WITHIN, Tables
from dice_envs.table.sitting import PERSON, Sitting
from tests.experiments.web.browser import serving
from tests.experiments.web.test_tables import Clock, liars

ALONE = {"names": frozenset(), "addresses": False, "most": 100}
SHARED = {"names": names_of_machine("0.0.0.0") | {"games.example"}, "addresses": True, "most": 100}


def answer(settings, kind="http", path="/", **headers):
    """A gate's answer: a status, or "in" if it let the request through; and the headers."""
    sent = []

    async def behind(scope, receive, send):
        await send({"type": "http.response.start", "status": 299, "headers": [(b"X-Frame-Options", b"ALLOWALL")]})

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": kind,
        "path": path,
        "headers": [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()],
    }
    asyncio.run(Gate(behind, **settings)(scope, receive, send))
    if sent[0]["type"] == "websocket.close":
        return 403, {}
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return ("in" if sent[0]["status"] == 299 else sent[0]["status"]), found


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_hosts_by_which_the_server_is_not_known_are_refused(kind):
    served = ["127.0.0.1:8080", "localhost:9000", "LOCALHOST", "[::1]:8080", "127.8.8.8", "localhost."]
    foreign = [
        "evil.example:8080",
        "localhost.evil.example",
        "evil@localhost",
        "127.0.0.1.evil.example",
        "",
        "localhost:x",
        "é",
    ]
    others = ["192.168.0.2:8080", "[fe80::1]:80"]
    named = ["games.example:80", f"{next(iter(names_of_machine('x')))}:8080"]
    for host in served:
        assert answer(ALONE, kind, host=host)[0] == answer(SHARED, kind, host=host)[0] == "in", host
    for host in foreign:
        assert answer(ALONE, kind, host=host)[0] == answer(SHARED, kind, host=host)[0] == 403, host
    for host in others:
        assert (answer(ALONE, kind, host=host)[0], answer(SHARED, kind, host=host)[0]) == (403, "in"), host
    assert answer(SHARED, kind, host=named[0])[0] == "in"
    assert answer(SHARED, kind, host=named[1].replace("x", "localhost"))[0] == "in"
    assert answer(ALONE, kind)[0] == 403, "no host at all"


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_other_sites_are_refused(kind):
    for origin in ("http://localhost:8080", "https://localhost:8080", "http://LOCALHOST:8080"):
        assert answer(ALONE, kind, host="localhost:8080", origin=origin)[0] == "in", origin
    for origin in ("http://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:8080", "localhost:8080", ""):
        assert answer(ALONE, kind, host="localhost:8080", origin=origin)[0] == 403, origin
    for site, found in (
        ("cross-site", 403),
        ("same-origin", "in"),
        ("same-site", "in"),
        ("none", "in"),
    ):  # images have no origin
        assert answer(ALONE, kind, host="localhost:8080", sec_fetch_site=site)[0] == found, site


def test_every_answer_forbids_frames_and_foreign_content():
    for host in ("localhost", "evil.example"):
        headers = answer(ALONE, host=host)[1]
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'self'" in headers["content-security-policy"]


def test_uploads_that_are_too_long_or_of_unknown_length_are_refused():
    path = "/_nicegui/client/x/upload/3"
    assert answer(ALONE, path=path, host="localhost", content_length="100")[0] == "in"
    for length in ({"content_length": "101"}, {}, {"content_length": "-1"}):
        assert answer(ALONE, path=path, host="localhost", **length)[0] == 413


# --- a server ---------------------------------------------------------------------------------------------------------


def status(url, **headers):
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, found.read().decode(), found.headers
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode(), problem.headers


@pytest.mark.slow
def test_a_server_refuses_what_it_should_and_makes_nothing_for_it(tmp_path):
    """NiceGUI's answers contain the identity of a page's client; if no client was made there is none."""
    game = {"game": "thirties", "seed": 1, "seats": [PERSON, "random"]}
    socket_path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    with (tmp_path / "log").open("w+") as log, serving([game], log=log) as (address, (link,)):
        assert status(link)[0] == 200
        for path in ("/", socket_path):
            assert status(address + path)[0] == 200
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                assert status(address + path, **headers)[0] == 403
        nowhere = (
            "/nothing", "/seat/" + "x" * 32, link.removeprefix(address).replace("/seat/", "/maker/"), "/?game=chess",
            "/_nicegui/client/none",
        )  # fmt: skip
        for path in nowhere:
            code, body, headers = status(address + path)
            assert code == 404
            assert "nothing here" in body
            assert "client_id" not in body
            assert headers["X-Frame-Options"] == "DENY"
        assert "client_id" in status(link)[1]
        log.seek(0)
        assert "Traceback" not in log.read()


@pytest.mark.slow
def test_malformed_events_end_in_a_line_of_the_log(tmp_path):
    socketio = pytest.importorskip("socketio")
    pytest.importorskip("aiohttp")

    async def attack(address):
        html = urllib.request.urlopen(f"{address}/?game=liars_dice", timeout=60).read().decode()
        elements = json.loads(html_json(html))
        client_id = re.search(r"'client_id': '([^']+)'", html)[1]
        sio = socketio.AsyncClient()
        await sio.connect(f"{address}?client_id={client_id}", socketio_path="/_nicegui_ws/socket.io", transports=["websocket"])
        shake = {"client_id": client_id, "tab_id": "t", "document_id": "d", "next_message_id": 0}
        assert await sio.call("handshake", shake)
        sent = 0
        for number, element in elements.items():
            for listener in element.get("events", []):
                for value in ({"a": 1}, [1], "x" * 9, "1" * 99_999, -1, {"value": 99}, None, True, "1e999", {"value": "0"}):
                    message = {"client_id": client_id, "id": int(number), "listener_id": listener["listener_id"]}
                    await sio.emit("event", {**message, "args": [json.dumps(value)]})
                    sent += 1
        for name in ("event", "javascript_response", "ack", "log", "handshake"):
            for message in (None, 3, "x", [], {}, {"client_id": client_id}, {"client_id": client_id, "id": 4, "args": ["{"]}):
                await sio.emit(name, message)
        assert await sio.call("handshake", {}) is False  # everything sent before has been processed
        await sio.disconnect()
        for query in ("implicit_handshake=true", f"implicit_handshake=true&client_id={client_id}"):
            with contextlib.suppress(socketio.exceptions.ConnectionError):
                await sio.connect(f"{address}?{query}", socketio_path="/_nicegui_ws/socket.io", transports=["websocket"])
                await sio.disconnect()
        return sent

    with (tmp_path / "log").open("w+") as log, serving([], log=log) as (address, _):
        assert asyncio.run(attack(address)) > 50
        assert status(address)[0] == 200
        log.seek(0)
        text = log.read()
    assert "malformed event" in text
    assert "Traceback" not in text, text[-3000:]


def html_json(html):
    """The elements of NiceGUI's page, as JSON."""
    text = re.search(r"parseElements\(String\.raw`(.*?)`\)", html, re.DOTALL)[1]
    for sign, code in (("$", "&#36;"), ("`", "&#96;"), (">", "&gt;"), ("<", "&lt;"), ("&", "&amp;")):
        text = text.replace(code, sign)
    return text


# --- values -----------------------------------------------------------------------------------------------------------


def test_values_that_no_browser_sends_are_refused():
    for value, kind in ((3, "number"), ("2.5", "number"), ("", "number"), ("x", "text"), ({"value": 1}, "choice")):
        check_value(value, kind, 2)
    check_value(None, "number")
    check_value(None, "text")
    wrong = {
        "number": ({"a": 1}, [1], "x", "1e999", True, "9" * 5000),
        "text": (3, {"a": 1}, ["x"], "x" * 10_000),
        "choice": (1, "x", {"value": 2}, {"value": -1}, {"value": "0"}, {"value": True}, {}, None),
        "position": (None, "3", {}, True),
    }
    for kind, values in wrong.items():
        for value in values:
            with pytest.raises(ValueError, match=r"no browser|convert"):
                check_value(value, kind, 2)


@pytest.mark.parametrize("game", names())
def test_a_form_with_any_value_is_read_or_refused_by_name(game):
    for field in fields_of(load(game)):
        for value in ({"a": 1}, [1], float("nan"), float("inf"), True, -1, "x", None, "", 10**400):
            problem = ""
            try:
                options_of(load(game), {field.name: value})
            except ValueError as found:
                problem = str(found)
            assert not problem or (field.name in problem and "\n" not in problem)


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with files that the page must not reveal, and runs with policies."""
    policy = next(path for path in POLICIES.glob("*.npz") if "liars" in path.name).read_bytes()
    for name in ("secret.npz", "runs/mine.npz", "runs/run/policy.npz", "word/policy.npz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(policy)
    (tmp_path / "runs/text.npz").write_text("no policy")
    (tmp_path / "runs/out.npz").symlink_to(tmp_path / "secret.npz")
    (tmp_path / "runs/outside").symlink_to(tmp_path)
    (tmp_path / "runs/empty").mkdir()
    (tmp_path / "runs/linked").mkdir()
    (tmp_path / "runs/linked/policy.npz").symlink_to(tmp_path / "secret.npz")
    (tmp_path / "runs/loop").symlink_to(tmp_path / "runs/loop")
    (tmp_path / "code.py").write_text("raise SystemExit('code was run')\ndef choose(throw): return 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def refused(variant, spec):
    with pytest.raises(ValueError) as problem:  # noqa: PT011
        make_agent(variant, spec)
    return str(problem.value)


def test_a_page_names_policies_below_runs_only_and_learns_nothing_of_other_files(folder):
    from dice_envs.agents.ppo import load_policy

    variant = load_policy(folder / "runs/mine.npz").variant
    for spec in ("ppo:runs/mine.npz", "ppo:runs/run", "ppo:path=runs/run,greedy=true", "random", "numbers:bluff=0.25"):
        make_agent(variant, spec)
    paths = [
        "secret.npz", "./secret.npz", "runs/../secret.npz", "runs/out.npz", "runs/outside/secret.npz", "runs/linked", "word",
        "runs/none.npz", "runs/text.npz", "runs/empty", "runs/loop", "/etc/passwd", "/none", str(folder / "secret.npz"),
        str(folder / "runs/mine.npz"), "~/x", "runs/" + "x" * 300, "none", "runs/a\0b", ".", "runs",
    ]  # fmt: skip
    assert {refused(variant, f"ppo:{path}") for path in paths} == {NOT_FOUND}
    other = configure("thirties")
    assert refused(other, "ppo:runs/mine.npz") == NOT_FOUND, "it does not play that"
    assert refused(other, "thirties:code.choose") == NOT_FOUND
    stones = configure("fatestones")
    make_agent(stones, "best_response:nash")
    make_agent(stones, "best_response:best_response:random")
    for path in ("secret.npz", "/etc/passwd", "runs/mine.npz", "runs/none"):
        assert refused(stones, f"best_response:ppo:{path}") == NOT_FOUND
        assert refused(stones, f"best_response:opponent=best_response:ppo:{path}") == NOT_FOUND
    assert "unknown agent" in refused(stones, "/etc/passwd")
    assert "plays liars_dice only" in refused(stones, "numbers")


LONG = {"thirties": {"num_players": 6, "rounds": 1000}, "shakes": {"num_players": 6, "num_patients": 200}}
TOO_MUCH = [  # game, options, spec, what the error names
    ("fatestones", {}, "mcts:10000000", "simulations must be at most 50,000 where people wait for a move, not 10000000"),
    ("liars_dice", {}, "mcts:100001", "simulations must be at most 100,000"),
    ("liars_dice", {}, "mcts:10,memory=2.5", "memory must be at most 2 where people wait for a move, not 2.5"),
    ("liars_dice", {}, "mcts:10,threads=2", "threads must be at most 1"),
    ("thirties", LONG["thirties"], "mcts:1000", "simulations must be at most"),
    ("fatestones", {}, "best_response:mcts:1000", "in about 500 positions: simulations must be at most 100 "),
    ("fatestones", {}, "best_response:opponent=best_response:mcts", "about 250,000 positions: simulations must be at most 1 "),
    ("fatestones", {"hand_size": 5}, "best_response:" * 4 + "random", "at most 2 times"),
    ("liars_dice", {}, "nash:precision=1e-5", "precision must be at least 0.001"),
    ("liars_dice", {}, "adaptive:precision=1e-5", "precision must be at least 0.001"),
    ("liars_dice", {"num_dice": 6}, "nash", "in passing up to"),
    ("shakes", LONG["shakes"], "bayes", "in passing up to"),
    ("score_dice", {"pool_a": (6,) * 8, "pool_b": (6,) * 8}, "score_response", "are too large"),
]  # fmt: skip


@pytest.mark.parametrize(("game", "options", "spec", "names_it"), TOO_MUCH, ids=[case[2][:30] for case in TOO_MUCH])
def test_agents_that_take_too_long_are_refused_before_they_are_asked(game, options, spec, names_it):
    variant = configure(game, **options)
    assert names_it in refused(variant, spec)
    seats = [PERSON, *[spec] * (variant.facts.num_seats - 1)]
    saved = Sitting(variant, 1, [PERSON] * len(seats)).save()
    with pytest.raises(ValueError, match="^seats: ") as problem:
        Sitting.load({**saved, "seats": seats}, make_agent)
    assert names_it in str(problem.value)


@pytest.mark.parametrize("game", names())
def test_agents_as_they_are_usually_are_let_in(game):
    """No agent needs a parameter to be allowed on the page, and search is allowed in the longest games."""
    variants = [configure(game), *([configure(game, **LONG[game])] if game in LONG else [])]
    for variant in variants:
        make_agent(variant, "mcts")
    for name, factory in for_game(game).items():
        if game == "score_dice" and name == "score_nash":
            continue  # the default pools are too large for it
        assert name in ("ppo", "dogmatic", "chat") or make_agent(variants[0], name), factory


def test_agents_need_not_be_dataclasses(monkeypatch):
    class Plain:
        def __init__(self, word: str = ""):
            self.word = word

        def act(self, turn):
            return turn.legal.argmax(axis=1)

    monkeypatch.setitem(agents.factories(), "plain", Plain)
    assert make_agent(configure("thirties"), "plain:word=some").word == "some"
    with pytest.raises(ValueError, match=NOT_FOUND):
        make_agent(configure("thirties"), "plain:word=a.b")


def test_an_agent_that_cannot_be_played_is_refused_as_everywhere():
    assert "needs variation" in refused(configure("shakes", variation="competitive"), "bayes")
    assert "plays liars_dice only" in refused(configure("thirties"), "adaptive")
    assert "plays shakes only" in refused(configure("thirties"), "bayes")


def test_the_owner_of_the_server_is_not_limited():
    Sitting(configure("fatestones"), 1, [PERSON, "mcts:10000000"])


def test_a_saved_game_from_a_page_names_no_other_files_either(folder):
    game = Sitting(configure("liars_dice", num_dice=1), 1, [PERSON, "random"]).save()
    texts = set()
    for path in ("secret.npz", "/etc/passwd", "none.npz"):
        with pytest.raises(ValueError) as problem:  # noqa: PT011
            Sitting.load({**game, "seats": [PERSON, f"ppo:{path}"]}, make_agent)
        texts.add(str(problem.value))
    assert texts == {f"seats: {NOT_FOUND}"}


# --- tables -----------------------------------------------------------------------------------------------------------


def test_a_table_with_somebody_connected_is_not_pushed_out():
    clock = Clock()
    tables = Tables(most=3, forget_after=100, clock=clock)
    living = tables.add(liars(PERSON, "random"))
    living.listeners.append(lambda: None)
    for second in range(1, 10):
        clock.now = second
        tables.add(liars(PERSON, "random"))
    assert len(tables) == 3
    assert tables.links(living)
    clock.now = 1000
    tables.forget()
    assert len(tables) == 1
    for _ in range(2):
        tables.add(liars(PERSON, "random")).listeners.append(lambda: None)
    with pytest.raises(ValueError, match="people are at all of its 3 tables"):
        tables.add(liars(PERSON, "random"))
    assert len(tables) == 3


def test_tables_are_made_at_a_limited_rate():
    clock = Clock()
    tables = Tables(clock=clock)
    for k in range(MOST_STARTS):
        clock.now = 4 * k / MOST_STARTS
        tables.admit()
    with pytest.raises(ValueError, match=f"try again in {int(STARTS_WITHIN) - 3} seconds"):
        tables.admit()
    clock.now = STARTS_WITHIN + 0.5  # the attempts of the first four seconds expire one after another
    tables.admit()
