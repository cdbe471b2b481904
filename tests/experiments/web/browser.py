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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
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
serve(sittings, show=False, pause=float(sys.argv[2]))
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
def serving(games, pause=0.05, log=None):
    """Run a server with tables for the games. Yields its address and the links that it prints.

    Args:
        games: {"game", "options", "seed", "seats"} each.
        pause: seconds before an agent's move.
        log: file for the server's errors.
    """
    command = [sys.executable, "-c", SERVE, json.dumps(games), str(pause)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NICEGUI"))}
    environment["PYTHONPATH"] = str(ROOT)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=ROOT) as server:
        try:
            lines = []
            for line in server.stdout:
                lines.append(line)
                if line.startswith("Ctrl-C"):
                    break
            else:
                raise RuntimeError(f"the server did not start: {''.join(lines)}")
            links = [line.split()[-1] for line in lines]
            address = re.match(r"http://[^/]+", links[-2]).group()
            wait_for(address)
            yield address, links[: len(games)]
        finally:
            server.terminate()
            server.wait(30)
