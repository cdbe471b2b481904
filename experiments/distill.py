"""A solution of two-player Liar's Dice in one small network, trained to play as the solution does."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dice_envs import Batch, Measures, Turn, Variant, agents, configure, measure
from dice_envs.agent import draw_actions
from dice_envs.agents.about import measures_as_dicts
from dice_envs.agents.base import Deterministic
from dice_envs.agents.ppo import NetworkPolicy, block_inputs, history_inputs, in_half, save_policy
from dice_envs.core.dice import new_streams
from dice_envs.core.files import atomic
from dice_envs.core.options import check_range, shown
from dice_envs.exact.liars_dice.measures import check_measurable
from dice_envs.exact.liars_dice.solution import LEAST_PRECISION, Solution, solve, throttled
from dice_envs.experiments.solve.liars_dice import line_of
from dice_envs.experiments.ui.console import console, finish, print_mode
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.measures import measuring
from dice_envs.experiments.ui.measures import show as show_measures
from dice_envs.experiments.ui.options import game_options, seed_or_fresh
from dice_envs.experiments.ui.progress import progress

__all__ = ["Learner", "Positions", "Settings", "best_floor", "distill", "hidden_sizes", "train"]

GAMES = 8192  # played side by side
EXPLORERS = (0.0, 0.15, 0.5, 1.0)  # the share of random actions of the player who explores, drawn for each game
NUMBERS = 0.2  # the share of games in which that player is a numbers agent
BATCH = 2048  # positions of one update
COLLECTED = 96  # batches collected at once
PASSES = 3  # how often each position is learned from
FLOORS = (0.005, 0.01, 0.02, 0.05)  # from which the one with the lowest exploitability is chosen
LEAST_LOGIT = -1e9  # stands for an illegal action's
MOST_STEPS = 10**9
MOST_HIDDEN = 4096
SAY_EVERY = 500  # updates


class Settings(NamedTuple):
    """How to distill.

    Attributes:
        hidden: the sizes of the network's hidden layers.
        steps: updates.
        minutes: training stops after so many minutes, however many updates it has made; it is then not repeatable.
        rate: Adam's learning rate, which falls to 0 along a cosine.
        memoryless: whether the network sees the last bid only, and not the bids before it.
        precision: the exploitability of the solution.
    """

    hidden: tuple[int, ...] = (512, 512)
    steps: int = 9_000
    minutes: float = math.inf
    rate: float = 7e-3
    memoryless: bool = False
    precision: float = 1e-3

    def check(self) -> None:
        """Raise ValueError, naming the setting, for one that is out of range."""
        if not self.hidden:
            raise ValueError("hidden must name the size of one layer or more, such as 512,512")
        for size in self.hidden:
            check_range("hidden", size, 1, MOST_HIDDEN)
        check_range("steps", self.steps, 1, MOST_STEPS)
        if not self.minutes > 0:
            raise ValueError(f"minutes must be above 0, not {self.minutes}")
        check_range("rate", self.rate, 1e-6, 1, whole=False)
        check_range("precision", self.precision, LEAST_PRECISION, 1, whole=False)


class Positions:
    """Positions of one player who plays the solution, against players who explore: an endless stream of them.

    In each game one seat is the learner's. Games go on from one collection to the next; the other seat's play is drawn
    for each game: the solution, the solution with a share of random actions, or a numbers agent.

    Args:
        variant: the game.
        solution: its solution.
        seed: fixes all games.
    """

    def __init__(self, variant: Variant, solution: Solution, seed: int) -> None:
        self.variant, self.solution = variant, solution
        self.batch = Batch(variant, GAMES, seed)
        self.rng = np.random.default_rng(seed)
        self.streams = new_streams(int(self.rng.integers(2**31)), GAMES)
        self.numbers = agents.make("numbers:bluff=0.5")
        self.learner = np.zeros(GAMES, np.int64)
        self.explores = np.zeros(GAMES)
        self.counts = np.zeros(GAMES, bool)
        self._cast(np.arange(GAMES))

    def _cast(self, games: np.ndarray) -> None:
        """Choose the players of new games."""
        self.learner[games] = self.rng.integers(2, size=len(games))
        self.explores[games] = self.rng.choice(EXPLORERS, len(games))
        self.counts[games] = self.rng.random(len(games)) < NUMBERS

    def step(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make one move in every game.

        Returns:
            Of the positions at which a player of the solution had a choice: observations (n, size) float32, action
            masks (n, actions) int8, and the solution's probabilities (n, actions) float32.
        """
        states, seats = self.batch.states, self.batch.seats.astype(np.int64)
        masks, observations = self.batch.legal(), self.batch.observe()
        chances = self.solution.probabilities(states)
        other = seats != self.learner
        plain = other & (self.explores == 0) & ~self.counts  # the solution too: a position to learn from as well
        kept = (~other | plain) & (masks.sum(axis=1) > 1)
        found = observations[kept], masks[kept], chances[kept].astype(np.float32)
        actions = draw_actions(self.streams, chances)
        wild = other & ~self.counts & (self.rng.random(GAMES) < self.explores)
        legal = masks[wild] / masks[wild].sum(axis=1, keepdims=True)
        streams = self.streams[wild]
        actions[wild] = draw_actions(streams, legal)
        self.streams[wild] = streams
        counting = np.flatnonzero(other & self.counts)
        if len(counting):
            streams = self.streams[counting]
            actions[counting] = self.numbers.act(Turn(self.variant, states, counting, streams))
            self.streams[counting] = streams
        self.batch.play(actions)
        over = np.flatnonzero(self.batch.seats < 0)
        self.batch.deal(over)
        self._cast(over)
        return found

    def collect(self, number: int) -> list[np.ndarray]:
        """Observations, masks and probabilities of at least `number` positions."""
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        while sum(len(part[0]) for part in parts) < number:
            parts.append(self.step())
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


class Learner:
    """A network on its way to the solution.

    It sees nothing of past rounds, which mean nothing to the solution.

    Args:
        variant: the game.
        settings: the network's sizes, and what it sees of the present round.
        seed: of its first weights.
    """

    def __init__(self, variant: Variant, settings: Settings, seed: int) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.variant, self.settings = variant, settings
        blind = history_inputs(variant) if settings.memoryless else block_inputs(variant, "past_bids")
        self.seen = np.setdiff1d(np.arange(variant.facts.observation_size), blind)
        sizes = [len(self.seen), *settings.hidden, variant.facts.num_actions]
        dense = [torch.nn.Linear(before, after) for before, after in itertools.pairwise(sizes)]
        # Counts are shown as shares of the largest one. The first weights are those of a network that sees counts.
        largest = np.concatenate([np.full(block.size, block.high, np.float32) for block in variant.blocks])
        with torch.no_grad():
            dense[0].weight *= torch.from_numpy(np.maximum(largest[self.seen], 1))
        parts = [part for layer in dense for part in (layer, torch.nn.Tanh())]
        self.dense = dense
        self.network = torch.nn.Sequential(*parts[:-1])
        self.optimizer = torch.optim.Adam(self.network.parameters(), settings.rate, fused=True)

    def learn(self, observations: np.ndarray, masks: np.ndarray, chances: np.ndarray, share: float) -> float:
        """One update, after a share of the training; returns the mean Kullback-Leibler divergence before it."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate * (1 + math.cos(math.pi * share)) / 2
        wanted = torch.from_numpy(chances)
        logits = self.network(torch.from_numpy(observations[:, self.seen]))
        logits = logits.masked_fill(torch.from_numpy(masks) == 0, LEAST_LOGIT)
        loss = -(wanted * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        entropy = -(chances * np.log(np.where(chances > 0, chances, 1))).sum(axis=1).mean()
        return float(loss.detach()) - float(entropy)

    def policy(self) -> NetworkPolicy:
        """The network as a policy in float16, with zeros for the inputs that it does not see."""
        layers: list[tuple[np.ndarray, np.ndarray]] = []
        for dense in self.dense:
            weights, biases = (each.detach().numpy().copy() for each in (dense.weight, dense.bias))
            if not layers:
                seen = weights
                weights = np.zeros((len(seen), self.variant.facts.observation_size), np.float32)
                weights[:, self.seen] = seen
            layers.append((weights, biases))
        return in_half(NetworkPolicy(self.variant.game.name, self.variant.changed_options(), layers))


def train(learner: Learner, positions: Positions, done: Callable[[int, float], Any]) -> int:
    """Make the updates, or as many as the time allows; returns how many. `done` is told of each: its number and loss."""
    settings, rng = learner.settings, np.random.default_rng(positions.rng.integers(2**31))
    start, made = time.monotonic(), 0
    while True:
        data = positions.collect(BATCH * COLLECTED)
        for _ in range(PASSES):
            for rows in np.array_split(rng.permutation(len(data[0])), len(data[0]) // BATCH):
                share = max(made / settings.steps, (time.monotonic() - start) / (60 * settings.minutes))
                if share >= 1:
                    return made
                made += 1
                observations, masks, chances = (array[rows] for array in data)
                done(made, learner.learn(observations, masks, chances, share))


def best_floor(policy: NetworkPolicy) -> tuple[NetworkPolicy, Measures, float]:
    """The policy with the floor, among FLOORS, for which best responses win least; what they win; and the seconds that
    measuring it takes."""
    measure(policy.variant, "random")  # which scores refer to: not counted in the seconds
    best: tuple[NetworkPolicy, Measures, float] | None = None
    for floor in FLOORS:
        candidate = NetworkPolicy(policy.game, policy.options, policy.layers, policy.about, floor)
        name, start = f"floor {floor:g}", time.monotonic()
        with measuring(name) as done:
            measured = dataclasses.replace(measure(policy.variant, candidate, done=done), agent=name)
        console.print(f"{name}: best responses win {100 * measured.measures[1].value:.3f} %")
        if best is None or measured.measures[0].value < best[1].measures[0].value:
            best = candidate, measured, time.monotonic() - start
    assert best is not None
    return best


class _Greedy(Deterministic):
    """The likeliest action of a policy."""

    def __init__(self, policy: NetworkPolicy) -> None:
        self.policy, self.memoryless = policy, policy.memoryless

    def act(self, turn: Turn) -> np.ndarray:
        return self.policy.act(turn, greedy=True)


def distill(
    game: str, option: Sequence[str], settings: Settings, out: Path | None, seed: int | None, json: Path | None
) -> dict[str, Any]:
    """Solve, train, measure and save; the arguments are those of the command `distill`.

    Returns:
        What the policy's header says of it (see `dice_envs.agents.about.check_about`), with the solution's own exploitability.

    Raises:
        ValueError: a game that is not solved or cannot be measured, or wrong settings.
    """
    plain = configure(game).game.name
    if plain != "liars_dice":
        raise ValueError(f"distill takes liars_dice, not {plain}: no solution of another game is held as probabilities")
    options = game_options(option)
    variant = configure(plain, **options)
    check_measurable(variant, "distilling, which measures the network,")
    settings.check()
    seed = seed_or_fresh(seed)
    out = out or Path("runs") / "liars_dice_distilled.npz"
    check_writable(out)
    check_writable(json)
    print_mode(variant)
    say = throttled(lambda each: console.print(line_of(each)), 2.0, ends=True)
    solution = solve(variant, settings.precision, resume=True, done=say)
    learner, positions = Learner(variant, settings, seed), Positions(variant, solution, seed)
    losses: list[float] = []
    start = time.monotonic()
    with progress("updates", settings.steps) as done:

        def told(made: int, loss: float) -> None:
            done(1)
            losses.append(loss)
            if made % SAY_EVERY == 0:
                mean = float(np.mean(losses[-SAY_EVERY:]))
                console.print(f"{made:>8,} updates  {time.monotonic() - start:>6,.0f} s  divergence {mean:.5f}")

        made = train(learner, positions, told)
    minutes = (time.monotonic() - start) / 60
    policy, measured, seconds = best_floor(learner.policy())
    with measuring("greedy") as told_share:
        greedy = dataclasses.replace(measure(variant, _Greedy(policy), done=told_share), agent="greedy")
    policy.about = {
        "command": _command(option, settings, seed),
        "method": "distill",
        "seed": seed,
        "steps": made,
        "minutes": round(minutes, 2),
        "measures": measures_as_dicts(measured),
        "greedy_measures": measures_as_dicts(greedy),
        "measuring_seconds": round(seconds, 2),
        "solution": {"exploitability": solution.exploitability, "value": solution.value},
        "divergence": float(np.mean(losses[-SAY_EVERY:])),
    }
    finish(
        lambda: _save(out, policy),
        lambda: show_measures(dataclasses.replace(measured, agent="distilled")),
        lambda: show_measures(greedy),
        lambda: console.print(f"the solution's own exploitability: at most {solution.exploitability:.6f}"),
        lambda: write_json(json, policy.about),
        lambda: console.whole_line(f"saved: ppo:{out}, {out.stat().st_size:,} bytes"),
    )
    return policy.about


def _save(out: Path, policy: NetworkPolicy) -> None:
    with atomic(out) as temporary:
        save_policy(temporary, policy, half=True)


def _command(option: Sequence[str], settings: Settings, seed: int) -> str:
    """The command that makes the policy, but for its file's name; with a limit of time it may make another one."""
    given = [f"-o {each}" for each in option]
    given += [f"--hidden {','.join(map(str, settings.hidden))}", f"--steps {settings.steps}", f"--rate {settings.rate:g}"]
    given += [f"--minutes {settings.minutes:g}"] if math.isfinite(settings.minutes) else []
    given += ["--memoryless"] if settings.memoryless else []
    given += [f"--precision {settings.precision:g}", f"--seed {seed}"]
    return " ".join(["python -m experiments distill liars_dice", *given])


def hidden_sizes(text: str) -> tuple[int, ...]:
    """The sizes in `512,512`; ValueError for anything else."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise ValueError(f"hidden must be sizes of layers such as 512,512, not {shown(text)}")
    return tuple(map(int, parts))
