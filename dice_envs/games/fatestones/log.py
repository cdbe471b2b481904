"""Logs of games in the source's format: CSV, one line for each roll. Ten columns: player 1's dice (three codes, empty for dice
that are gone), player 2's dice, the two choices (index from 0 among the dice left), and the two results.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.options import shown
from dice_envs.games.fatestones import CODES, DIE_OF_CODE, FACES, GONE
from dice_envs.games.fatestones.exact import edge_ratio
from dice_envs.games.fatestones.exact.draws import edges

MOST_BYTES = 2**28  # of a log that is read
COLUMNS = 10
HAND = 3


@dataclasses.dataclass(frozen=True)
class Log:
    """The rolls of a log, in order."""

    hands: np.ndarray  # (n, 2, 3) int64, each player's dice as indices of rows of FACES, then GONE
    sizes: np.ndarray  # (n,) number of dice in each hand
    choices: np.ndarray  # (n, 2) indices from 0
    results: np.ndarray  # (n, 2) faces rolled, 1 to 6

    def record(self) -> tuple[int, int, int]:
        """Return the numbers of rolls that player 1 won, lost and tied."""
        ahead = np.sign(self.results[:, 0] - self.results[:, 1])
        return int((ahead > 0).sum()), int((ahead < 0).sum()), int((ahead == 0).sum())

    def edge_share(self, player: int = 0) -> tuple[float, float]:
        """Return the share of the edge that a player's choices capture, and the half-width of its 95 % interval.

        The edge of a die is its value above a random die, if all other choices, also those after ties, are uniformly random
        (see `dice_envs.games.fatestones.exact.draws.edges`). The share is the sum of the chosen dice's edges / that of the best
        dice's.
        """
        own = edges(self.hands[:, ::-1] if player else self.hands, self.sizes)
        return edge_ratio(own[np.arange(len(own)), self.choices[:, player]], own[:, :HAND].max(axis=1))


def _parse(line: str) -> tuple[list[list[int]], list[int], list[int]]:
    """Return hands, choices and results of one line; ValueError if it is malformed."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != COLUMNS:
        raise ValueError(f"{len(cells)} columns instead of {COLUMNS}")
    hands = []
    for player in range(2):
        codes = cells[HAND * player : HAND * (player + 1)]
        dice = [code for code in codes if code]
        if codes != dice + [""] * (HAND - len(dice)) or not dice:
            raise ValueError(f"player {player + 1}'s dice must stand first and empty cells last, not {shown(','.join(codes))}")
        for text in dice:
            if not (text.isascii() and text.isdigit() and len(text) == len(FACES[0]) and int(text) in DIE_OF_CODE):
                raise ValueError(f"die {shown(text)} must be a code of six faces 1 to 6 in rising order")
        hands.append([DIE_OF_CODE[int(code)] for code in dice])
    if len(hands[0]) != len(hands[1]):
        raise ValueError(f"player 1 has {len(hands[0])} dice, player 2 has {len(hands[1])}")
    choices, results = [], []
    for player in range(2):
        choice, result = cells[2 * HAND + player], cells[2 * HAND + 2 + player]
        if choice not in [str(place) for place in range(len(hands[player]))]:
            raise ValueError(f"player {player + 1}'s choice must be 0 to {len(hands[player]) - 1}, not {shown(choice)}")
        if result not in [str(face) for face in FACES[hands[player][int(choice)]]]:
            code = CODES[hands[player][int(choice)]]
            raise ValueError(f"player {player + 1}'s result must be a face of die {code}, not {shown(result)}")
        choices.append(int(choice))
        results.append(int(result))
    return hands, choices, results


def read_log(path: Path | str) -> Log:
    """Read a log in the source's format.

    Raises:
        ValueError: a line is malformed, or the log is empty; the message has file, line number and reason.
        OSError: the file cannot be read.
    """
    rows = []
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)  # limited: it may be an endless device
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path}: a log has at most {MOST_BYTES:,} bytes")
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path}: not a text file ({problem.reason})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_parse(line))
        except ValueError as problem:
            raise ValueError(f"{path}, line {number}: {problem}") from None
    if not rows:
        raise ValueError(f"{path}: no rolls in this log")
    hands = np.full((len(rows), 2, HAND), GONE, np.int64)
    for i, (both, _, _) in enumerate(rows):
        for player in range(2):
            hands[i, player, : len(both[player])] = both[player]
    sizes = np.array([len(both[0]) for both, _, _ in rows])
    return Log(hands, sizes, np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))


class Writer:
    """Collects the rolls of a tournament's games. Player 1 is the first agent, at any seat."""

    def __init__(self, variant: Variant) -> None:
        if variant.params.hand_size > HAND:
            raise ValueError(f"a FateStones log holds hands of up to {HAND} dice, so hand_size must be at most {HAND}")
        self._games: list[np.ndarray] = []
        self._parts: list[Log] = []

    def after_move(self, states: np.ndarray, games: np.ndarray, shift: np.ndarray) -> None:
        """Collect the rolls among the moves just made: a move is a roll unless seat 1 is to choose after it."""
        rolled = states["seat"] != 1
        if not rolled.any():
            return
        states, rows = states[rolled], np.arange(rolled.sum())[:, None]
        seats = np.stack([shift[rolled], 1 - shift[rolled]], axis=1)
        hands = states["shown_hands"][rows, seats][:, :, :HAND].astype(np.int64)
        choices, results = (states[name][rows, seats].astype(np.int64) for name in ("choices", "results"))
        self._games.append(games[rolled])
        self._parts.append(Log(hands, states["shown_left"].astype(np.int64), choices, results))

    def log(self) -> Log:
        """Return the rolls, game after game, each in the order of play."""
        order = np.argsort(np.concatenate(self._games), kind="stable")
        columns = zip(*(vars(part).values() for part in self._parts), strict=True)
        return Log(*(np.concatenate(column)[order] for column in columns))

    def text(self) -> str:
        """Return the log in the source's format; empty before the first roll."""
        if not self._parts:
            return ""
        log = self.log()
        code_of = [str(code) for code in CODES] + [""]  # GONE is the last
        return "".join(
            ",".join([*(code_of[die] for die in hands.ravel()), *map(str, choices), *map(str, results)]) + "\n"
            for hands, choices, results in zip(log.hands, log.choices.tolist(), log.results.tolist(), strict=True)
        )
