"""Find a browser, start the server for tests and screenshots, and play on its pages."""

import contextlib
import json
import os
import re
import shutil
import time
import urllib.request

from tests.conftest import ROOT
from tests.support.commands import process

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WAIT = 120_000  # milliseconds, for a busy machine that also compiles kernels


def find():
    """The path of Chromium: $CHROMIUM, or one on the PATH. None if there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


SERVE = """
import json, sys
from dice_envs import configure
from dice_envs.experiments.jobs.guard import ends_at_once
from dice_envs.experiments.web.server import serve
from dice_envs.table.sitting import Sitting
sittings = [Sitting(configure(name, **options), seed, seats) for name, options, seed, seats in json.loads(sys.argv[1])]
with ends_at_once():
    serve(sittings, host=sys.argv[3], show=False, pause=float(sys.argv[2]))
"""


@contextlib.contextmanager
def started(games, pause=0.05, log=None, host="127.0.0.1"):
    """Run a server with tables for the games, until the end of the block. Yields its process and the lines that it prints.

    Args:
        games: name, options, seed and seats of each.
        pause: seconds before an agent's move.
        log: file for the server's errors.
        host: to listen on.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NICEGUI"))}
    environment["PYTHONPATH"] = str(ROOT)
    with process("-c", SERVE, json.dumps(games), pause, host, stderr=log, env=environment) as server:
        try:
            lines = list(iter(server.stdout.readline, "Ctrl-C ends it\n"))
            for _ in range(600):  # until it answers
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(lines[0].split()[-1], timeout=5).close()
                    break
                time.sleep(0.1)
            yield server, lines
        finally:
            server.terminate()
            server.wait(30)


@contextlib.contextmanager
def serving(games, **options):
    """Run a server, see `started`. Yields its address and the links to the games."""
    with started(games, **options) as (_, lines):
        links = [line.split()[-1] for line in lines]
        yield re.match(r"http://[^/]+", links[0]).group(), links[: len(games)]


# --- a page of a table ------------------------------------------------------------------------------------------------

STANDS = ".moves[data-stands={}]"
ENABLED = ".moves button[data-name^=action]:enabled"
CLICKED = ".moves button:is([data-name^=action], [data-name^=face]:not([aria-disabled])):enabled:visible"


def stands(page):
    return page.locator(".moves").get_attribute("data-stands")


def moves_made(page):
    return int(page.locator(".moves").get_attribute("data-moves"))


def wait_for(page, *states):
    page.wait_for_selector(", ".join(map(STANDS.format, states)))


def new_game(page):
    """Begin a new game, and wait until the page shows it: the old one may stand the same, and a click go to its end."""
    game = page.locator(".moves").get_attribute("data-games")
    page.click("[data-name=again]")
    page.wait_for_selector(f".moves:not([data-games='{game}'])")
    wait_for(page, "mine", "over")


def click_move(page, button):
    """Click a move, and wait until it is shown."""
    before = moves_made(page)
    button.click()
    page.wait_for_function(f"Number(document.querySelector('.moves').dataset.moves) > {before}")
    wait_for(page, "mine", "over")


def ask_hint(page):
    """Press Hint, and open what every choice is worth."""
    page.click("[data-name=hint]")
    page.wait_for_selector("[data-name=choices]")
    if page.locator(".hint td").count() == 0:
        page.click("[data-name=choices]")
    page.wait_for_selector(".hint td")


def play_on(page, rng, moves=500, among=1000):
    """Click a number of moves, each one of the first ones on the page, or until the game is over."""
    wait_for(page, "mine", "over")
    for _ in range(moves):
        if stands(page) == "over":
            return
        buttons = page.locator(CLICKED)
        click_move(page, buttons.nth(rng.randrange(min(buttons.count(), among))))
    assert moves < 500, "the game does not end"
