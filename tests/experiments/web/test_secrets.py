"""A browser receives nothing that its seat may not know."""

import re

import pytest

from dice_envs import configure
from dice_envs.pictures.render import svg
from dice_envs.table.sitting import PERSON, Sitting

pytestmark = pytest.mark.web

RULES = {
    "liars": ("liars_dice", {"num_dice": 2, "starter": "first"}),
    "pools": ("score_dice", {"pool_a": [6, 6], "pool_b": [6, 6]}),
    "stones": ("fatestones", {"hand_size": 2, "dice": [123456, 222555, 333444, 222555]}),
}


def twins(game, options):
    """Two seeds with different deals that look the same to seat 0."""
    seen = {}
    for seed in range(2000):
        sitting = Sitting(configure(game, **options), seed, [PERSON, PERSON])
        everything = svg(sitting.picture())
        other = seen.setdefault(svg(sitting.picture(0)), (seed, everything))
        if sitting.mover == 0 and other[1] != everything:
            return other[0], seed
    raise AssertionError("no twins")


def games():
    seeds = {"liars": twins(*RULES["liars"]), "pools": (*twins(*RULES["pools"]), 1, 1), "stones": (1, 1)}
    return {
        f"{name} {letter}": (*RULES[name], seed, [PERSON, PERSON])
        for name, given in seeds.items()
        for letter, seed in zip("abcd", given, strict=False)
    }


UNLIKE = (  # also differs between two visits to the same page
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",  # of a browser's connection
    r"/(seat|together|maker)/[\w-]{32}",
    r'"sid":"[\w-]+"',
    r"\b1[0-9]{9}(\.[0-9]+)?\b",  # the time
)


class Receiver:
    """Keeps everything that a page receives."""

    def __init__(self, page):
        self.texts = []
        page.on("response", self._response)
        page.on("websocket", lambda socket: socket.on("framereceived", self._frame))

    def _response(self, response):
        if "/_nicegui/" not in response.url or "socket" in response.url:  # the library's own files are left out
            self.texts.append(response)

    def _frame(self, payload):
        if payload not in ("2", "3"):  # engine.io's pings
            self.texts.append(payload if isinstance(payload, str) else payload.decode())

    def read(self):
        parts = [part if isinstance(part, str) else part.text() for part in self.texts]
        text = "\n".join(parts)
        for pattern in UNLIKE:
            text = re.sub(pattern, "…", text)
        return text


@pytest.fixture
def sit_down(server, open_page):
    """Open a seat of a table; returns the page and what it receives."""

    def sit(name, seat):
        maker = open_page(server[1][name])
        link = maker.locator("a.seat-link").nth(seat).get_attribute("href")
        page = open_page("about:blank")
        receiver = Receiver(page)
        page.goto(f"{server[0]}{link}")
        page.wait_for_selector(".moves[data-stands]")
        page.wait_for_timeout(1000)
        return page, receiver

    return sit


def click(page, action):
    page.click(f"[data-name=action-{action}]")
    page.wait_for_selector(".moves[data-stands=theirs]")
    page.wait_for_timeout(500)


def first_action(page):
    page.wait_for_selector(".moves[data-stands=mine]")
    return page.locator(".moves button[data-name^=action]:enabled").first.get_attribute("data-name").removeprefix("action-")


@pytest.mark.parametrize("game", ["liars", "pools"])
def test_hidden_dice_make_no_difference_to_what_is_received(game, sit_down):
    received = []
    for name in (f"{game} a", f"{game} b"):
        page, receiver = sit_down(name, 0)
        click(page, first_action(page))
        received.append(receiver.read())
        assert page.locator("[data-name=save]").is_disabled()
        assert page.locator("[data-name=undo], [data-name=again]").count() == 0
    assert "<svg" in received[0]
    assert received[0] == received[1]


@pytest.mark.parametrize(("game", "actions"), [("stones", "ab"), ("pools", "cd")])
def test_a_choice_is_not_sent_before_all_have_chosen(game, actions, sit_down):
    received = []
    for choice, name in enumerate(actions):
        page, receiver = sit_down(f"{game} {name}", 1)
        other, _ = sit_down(f"{game} {name}", 0)
        other.wait_for_selector(".moves[data-stands=mine]")
        click(other, choice)
        page.wait_for_selector(".moves[data-stands=mine]")
        page.wait_for_timeout(500)
        received.append(receiver.read())
        assert "has chosen" in page.inner_text(".entries")
    assert received[0] == received[1]
