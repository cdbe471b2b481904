"""Monte Carlo tree search for every game of the suite, in compiled code.

One engine serves turns and simultaneous choices, chance and hidden information. It knows a game by its kernels only:

- Every simulation starts from the searched state with all that is hidden from the searcher drawn again, future dice
  included: information set MCTS (Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", IEEE
  TCIAIG 4(2), 2012, section IV; each seat has its own tree here, their MO-ISMCTS).
- A node is the information state of the seat to move, found by a hash of its observation. So there are no chance
  nodes: a throw leads to the node of whatever the mover sees next. Seats that choose at the same time cannot see each
  other's choice, so they select independently: decoupled selection (Tak, Lanctot, Winands, "Monte Carlo Tree Search
  Variants for Simultaneous Move Games", IEEE CIG 2014).
- A simulation adds one leaf. From there a rollout policy plays to the end.
- The tree has a memory limit. Once it is full, simulations add no nodes: in positions without a node the rollout policy
  chooses.
- If a game provides `Game.expect`, a simulation can add the roll's expected reward, continue in the non-terminal outcome
  and be weighted by its probability (the agent's parameter `expect`). This removes dice noise.

Three kinds of kernels are put together into one search: a rollout policy, a selection rule and how a turn is played.

Here are the agent `mcts`, its parameters, and searches of many games on several threads. Modules:
    search     the engine: simulations, their turns, and the policy that they make; rollout policies
    tree       the arrays of the tree, its nodes, and how simulations choose in it and learn: UCB1, regret matching
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

import numpy as np

from dice_envs.agent import Drawing, Promises, Turn
from dice_envs.core.game import Facts, Variant
from dice_envs.core.machine import check_threads
from dice_envs.core.options import Range, check_choice, check_range, shown
from dice_envs.core.work import limits

from ..base import Checked
from .search import RANDOM, Searches, Turns, WorkSpace, compile_search, rollout_of, rollouts
from .tree import REGRET, UCT, Selection, Settings, most, new_tree, warn_full

MAX_SIMULATIONS = 10_000_000
# The largest search where people wait for moves. Its tree takes a few hundred MiB at most.
# Where people wait for its moves:
CHOICES = 30  # in a game
MOVES_A_SECOND = 15_000_000  # of simulations, in games of the greatest length
MOST_WAITING, MOST_GIB_WAITING = 100_000, 2  # simulations and memory
SELECTIONS = {"uct": UCT, "regret": REGRET}
FIRST_CHUNK = 64  # simulations until the first moment at which a search can be stopped
MOST_A_SECOND = 3_000_000  # simulations a second for which a tree has room; only games with few positions exceed that
LONGEST_CHUNK = 0.2  # seconds between two such moments


def next_chunk(simulations: int, seconds: float, longest: float = LONGEST_CHUNK) -> int:
    """Return the size of the next chunk, which may take `longest`: the last one had `simulations` and took `seconds`."""
    if seconds > longest:
        return max(1, simulations // 2)
    return simulations if seconds > longest / 2 else 2 * simulations


@dataclasses.dataclass(frozen=True)
class MCTS(Checked, Drawing):
    """Monte Carlo tree search, for every game: `mcts:50`, `mcts:seconds=0.1`, `mcts:1000,select=regret`,
    `mcts:50,opponent=random,expect=true`.

    Attributes:
        simulations: for each move, 1 to 10,000,000; None: 100, or as many as `seconds` allow.
        seconds: of thinking for each move, 0.001 to 3600, if that ends before its simulations. How many simulations these are
            depends on the machine and on what else it does, so a seed does not repeat such play. A move has some dozens
            of simulations, however short its time.
        select: "uct"; "regret": regret matching, for simultaneous choices.
        exploration: "uct": the constant of UCB1 on returns scaled to a range of 1 (default 1.4); "regret": how often the
            learning seat picks at random (default 0.2).
        opponent: "search": the tree search chooses for the others too; "random": they are modelled as uniformly random.
        expect: take the expectation over rolls instead of sampling them, and over a random opponent's simultaneous
            choice; only for games that support it.
        rollout: how simulations continue below the tree: "random"; "numbers" (Liar's Dice); "strongest" (FateStones).
        final: "best" plays the most visited action, "mixed" in proportion to visits or, for "regret", the average
            strategy; None: "mixed" for "regret", else "best".
        memory: GiB that the tree of each thread may take, 0.01 to 1000. Simulations in a full tree add no nodes.
        threads: threads that search games in parallel, 1 to 256, and as many as there are cores at most. Results do not
            depend on it, but for `seconds`.
    """

    simulations: Annotated[int, Range(1, MAX_SIMULATIONS)] | None = None
    select: Literal["uct", "regret"] = "uct"
    exploration: float | None = None
    opponent: Literal["search", "random"] = "search"
    expect: bool = False
    rollout: str = RANDOM
    final: Literal["best", "mixed"] | None = None
    memory: Annotated[float, Range(0.01, 1000)] = 2.0
    threads: int = 1
    seconds: Annotated[float, Range(0.001, 3600)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exploration is not None:
            check_range("exploration", self.exploration, 0, 1 if self.select == "regret" else 100, whole=False)
        check_choice("rollout", self.rollout, (RANDOM, *rollouts()))
        check_threads(self.threads)

    @property
    def _most(self) -> int:
        """Simulations of a move at most."""
        if self.simulations is None:
            return 100 if self.seconds is None else MAX_SIMULATIONS
        return self.simulations

    @property
    def promises(self) -> Promises:
        """With a limit in seconds it thinks by the clock."""
        return Promises(by_clock=self.seconds is not None, needs=self._needs)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a game without the kernels that the parameters need, or that needs more `memory`."""
        if self.expect and variant.game.expect is None:
            raise ValueError(f"expect must be false for {variant.game.name}, which offers no exact expectation of a roll")
        rollout_of(variant.game, self.rollout)
        self._room(variant)

    def _needs(self, variant: Variant, positions: int) -> None:
        """Raise ValueError for a search that takes too much of the time for a game, too much memory, or several threads."""
        seconds = limits()[0] / CHOICES / positions
        simulations = max(1, math.floor(min(MOST_WAITING, seconds * MOVES_A_SECOND / variant.facts.max_steps)))
        for name, value, allowed in (
            ("simulations", 1 if self.seconds is not None else self._most, simulations),
            ("seconds", self.seconds or 0, seconds),
            ("memory", self.memory, MOST_GIB_WAITING),
            ("threads", self.threads, 1),
        ):
            if value > allowed:
                raise ValueError(f"{name} must be at most {allowed:,} where people wait for a move, not {shown(value)}")

    def search(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Search every game of the turn. Return policies (n, num_actions) and the searchers' mean returns (n,), float64.

        Raises:
            ValueError: the game does not support the parameters, or `memory` is too little for it.
        """
        self.check_variant(turn.variant)
        policies = np.empty((len(turn), turn.variant.facts.num_actions))
        searches = Searches(turn.states, turn.streams, policies, np.empty(len(turn)))
        threads = min(check_threads(self.threads), len(turn))
        if threads <= 1:
            self._search_all(turn.variant, searches, threading.Event())
        else:
            ends = [len(turn) * number // threads for number in range(threads + 1)]
            shares = [Searches(*(array[first:last] for array in searches)) for first, last in itertools.pairwise(ends)]
            stop = threading.Event()
            with ThreadPoolExecutor(threads) as pool:
                try:
                    list(pool.map(lambda share: self._search_all(turn.variant, share, stop), shares))
                except BaseException:  # Ctrl-C, or an error in one of them: the others are not worth waiting for
                    stop.set()
                    raise
        return searches.policies, searches.values

    def _search_all(self, variant: Variant, searches: Searches, stop: threading.Event) -> None:
        """Search states one after another, with one tree. In place. Ends early, with nothing to use, once `stop` is set."""
        game, facts = variant.game, variant.facts
        settings = self._settings(facts)
        search = compile_search(game, self.rollout, self.selection, self._turns(facts))
        copies = np.zeros(facts.num_actions + 1, game.state)
        scratch = WorkSpace(copies, np.zeros(facts.num_actions), np.zeros(facts.num_actions))
        try:
            tree = new_tree(*self._room(variant), facts)
        except MemoryError:
            raise ValueError(f"memory must be less than {self.memory:g}: the system has no room for so large a tree") from None
        longest = LONGEST_CHUNK if self.seconds is None else min(LONGEST_CHUNK, self.seconds / 8)
        chunk, start = FIRST_CHUNK, time.monotonic()
        searched, began = -1, start  # the game that is searched, and since when, but for its first chunk: it may compile
        tree.runs["left"] = chunk
        while search(variant.params, settings, searches, scratch, tree):
            if stop.is_set():
                return
            now = time.monotonic()
            if tree.runs["game"][0] != searched:
                searched, began = tree.runs["game"][0], now
            elif self.seconds is not None and now - began >= self.seconds:
                tree.runs["simulation"], chunk = settings.simulations, FIRST_CHUNK  # this search is over
            chunk, start = next_chunk(chunk, now - start, longest), now
            tree.runs["left"] = chunk
        if tree.runs["full"][0]:
            warn_full(self.memory, int(tree.runs["nodes"][0]))

    @property
    def selection(self) -> Selection:
        """The kernels of the selection rule; a subclass may have others."""
        return SELECTIONS[self.select]

    def _turns(self, facts: Facts) -> Turns:
        if not self.expect:
            return "sampled"
        return "averaged" if self.opponent == "random" and facts.simultaneous and facts.num_seats == 2 else "expected"

    def _settings(self, facts: Facts) -> Settings:
        regret = self.select == "regret"
        exploration = self.exploration if self.exploration is not None else (0.2 if regret else 1.4)
        return Settings(
            simulations=int(self._most),
            exploration=float(exploration),
            opponent_random=self.opponent == "random",
            best=(self.final or ("mixed" if regret else "best")) == "best",
            span=max(float(facts.likely_returns[1] - facts.likely_returns[0]), 1e-9),
            seats=facts.num_seats,
        )

    def _room(self, variant: Variant) -> tuple[int, int]:
        """Return the most nodes and edges of a tree. ValueError if `memory` is too little."""
        simulations = int(self._most)
        if self.seconds is not None:  # a search clears the table of all nodes that it may have, which takes time
            simulations = min(simulations, math.ceil(MOST_A_SECOND * self.seconds))
        return most(self.memory, simulations, variant.game, variant.facts)

    def probabilities(self, turn: Turn) -> np.ndarray:
        """Return the policy of one search for each game, (n, num_actions) float64. It differs between searches."""
        return self.search(turn)[0]


AGENTS = {"mcts": MCTS}
