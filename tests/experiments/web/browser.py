"""Find a browser, and start the server for tests and screenshots."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

from tests.conftest import ROOT

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WAIT = 120_000  # milliseconds, for a busy machine that also compiles kernels


def find():
    """The path of Chromium: $CHROMIUM, or one on the PATH. None if there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


SERVE = """
import json, sys
from dice_envs import configure
from dice_envs.table.sitting import Sitting
from dice_envs.experiments.web.server import serve
games = json.loads(sys.argv[1])
sittings = [Sitting(configure(game["game"], **game.get("options", {})), game["seed"], game["seats"]) for game in games]
serve(sittings, host=sys.argv[3], show=False, pause=float(sys.argv[2]))
"""


def wait_for(address):
    """Wait until the server answers."""
    for _ in range(600):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address, timeout=5).close()
            return
        time.sleep(0.1)
    raise RuntimeError(f"{address} does not answer")


@contextlib.contextmanager
def started(games, pause=0.05, log=None, host="127.0.0.1"):
    """Run a server with tables for the games, until the end of the block. Yields the lines that it prints.

    Args:
        games: {"game", "options", "seed", "seats"} each.
        pause: seconds before an agent's move.
        log: file for the server's errors.
        host: to listen on.
    """
    command = [sys.executable, "-c", SERVE, json.dumps(games), str(pause), host]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NICEGUI"))}
    environment["PYTHONPATH"] = str(ROOT)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=ROOT) as server:
        try:
            lines = []
            for line in server.stdout:
                if line.startswith("Ctrl-C"):
                    break
                lines.append(line)
            else:
                raise RuntimeError(f"the server did not start: {''.join(lines)}")
            wait_for(lines[0].split()[-1])
            yield lines
        finally:
            server.terminate()
            server.wait(30)


@contextlib.contextmanager
def serving(games, **options):
    """Run a server, see `started`. Yields its address and the links to the games."""
    with started(games, **options) as lines:
        links = [line.split()[-1] for line in lines]
        yield re.match(r"http://[^/]+", links[0]).group(), links[: len(games)]
