"""`distill`: turns the solution of a game of two players into one small network, and measures it exactly."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import Batch, Measures, Variant, configure, measure
from dice_envs.agent import ask, draw_actions
from dice_envs.agent.specs import make_agent
from dice_envs.agents.ppo import Likeliest, NetworkPolicy, block_inputs, in_half, measures_as_dicts, save_policy
from dice_envs.core.dice import derived_seeds, new_streams
from dice_envs.core.game import load, names
from dice_envs.core.machine import torch_device, torch_threads
from dice_envs.core.options import Range, check_types
from dice_envs.core.work import advance
from dice_envs.exact import offered
from dice_envs.exact.contract import LEAST_PRECISION, Equilibrium
from dice_envs.experiments import ui
from dice_envs.experiments.sweep import layer_sizes
from dice_envs.experiments.ui.grids import measures_grid, show_all
from dice_envs.experiments.ui.pages import command_line

SAY_EVERY = 500  # updates

GAMES = 8192  # played side by side
EXPLORERS = (0.0, 0.15, 0.5, 1.0)  # the exploring player's share of random actions, drawn for each game
VISITS = 0.2  # share of games in which that player is the solution's visitor
BATCH = 2048  # positions of one update
COLLECTED = 96  # batches collected at once
PASSES = 3  # updates from each position
FLOORS = (0.005, 0.01, 0.02, 0.05)  # of the policy, to try; the one with the lowest exploitability is chosen
LEAST_LOGIT = -1e9  # of illegal actions


@dataclasses.dataclass(frozen=True)
class DistillSettings:
    """How to distill.

    Attributes:
        hidden: the sizes of the network's hidden layers.
        steps: updates.
        minutes: most minutes of training; a run that they end is not repeatable.
        rate: Adam's learning rate, which falls to 0 along a cosine.
        precision: the exploitability of the solution.
    """

    hidden: tuple[Annotated[int, Range(1, 4096)], ...] = (512, 512)
    steps: Annotated[int, Range(1, 10**9)] = 9_000
    minutes: float = math.inf
    rate: Annotated[float, Range(1e-6, 1)] = 7e-3
    precision: Annotated[float, Range(LEAST_PRECISION, 1)] = 1e-3

    def __post_init__(self) -> None:
        check_types(self)
        if not self.hidden:
            raise ValueError("hidden must name the size of one layer or more, such as 512,512")
        if not self.minutes > 0:
            raise ValueError(f"minutes must be above 0, not {self.minutes}")


def main(
    game: ui.GameArgument,
    option: ui.OptionOption = None,
    hidden: Annotated[str, typer.Option(help="The sizes of the hidden layers, separated by commas.")] = "512,512",
    steps: Annotated[int, ui.count_option(help="Updates of the network, each from 2,048 positions.")] = DistillSettings().steps,
    minutes: Annotated[
        float | None, typer.Option(help="Stop training after this many minutes; the seed alone does not repeat the run then.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Adam's learning rate, which falls to 0.")] = DistillSettings().rate,
    precision: Annotated[float, typer.Option(help="The solution's exploitability.")] = DistillSettings().precision,
    out: Annotated[Path | None, typer.Option(help="The policy file; runs/GAME_distilled.npz if left out.")] = None,
    seed: ui.SeedOption = None,
    device: ui.DeviceOption = "cpu",
    json: ui.JsonOption = None,
) -> None:
    """Train one small network to play as the solution of a game of two players does, and measure it exactly.

    The network is saved as a policy, which `ppo:OUT` plays. It never takes actions that are much less likely than the
    likeliest; the threshold is the one for which best responses win least.

    Example: distill liars_dice -o num_dice=3 --hidden 256,256 --steps 3000
    """
    limit = math.inf if minutes is None else minutes
    settings = DistillSettings(layer_sizes(hidden, ","), steps, limit, rate, precision)
    variant = configure(game, **ui.game_options(option))
    name = variant.game.name
    equilibrium = offered(variant.game, "equilibrium")
    if equilibrium is None:
        having = ", ".join(each for each in names() if offered(load(each), "equilibrium"))
        raise ValueError(f"distill takes {having}, not {name}: only its solutions are stored as probabilities")
    seed, device = ui.seed_or_fresh(seed), torch_device(device)
    out = out or Path("runs") / f"{name}_distilled.npz"
    ui.check_writable(out)
    solution: Equilibrium = equilibrium(variant, settings.precision, ui.console.print)
    learner = Learner(variant, solution.unseen, settings, seed, device)
    positions = TrainingPositions(variant, solution, seed)
    losses: list[float] = []
    start = time.monotonic()
    with ui.progress("updates", settings.steps):

        def report(made: int, loss: float) -> None:
            advance()
            losses.append(loss)
            if made % SAY_EVERY == 0:
                mean = float(np.mean(losses[-SAY_EVERY:]))
                ui.console.print(f"{made:>8,} updates  {time.monotonic() - start:>6,.0f} s  divergence {mean:.5f}")

        made = train(learner, positions, report)
    minutes = (time.monotonic() - start) / 60
    policy, measured, seconds = best_floor(learner.policy())
    with ui.progress("measuring greedy") as bar:
        greedy = dataclasses.replace(measure(variant, Likeliest(policy), done=bar.advance), agent="greedy")
    policy.about = {
        "command": _command(name, option or [], settings, seed, device),
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
    ui.finish(
        lambda: save_policy(out, policy, half=True),
        lambda: show_all([measures_grid(dataclasses.replace(measured, agent="distilled"))]),
        lambda: show_all([measures_grid(greedy)]),
        lambda: ui.console.print(f"the solution's own exploitability: at most {solution.exploitability:.6f}"),
        lambda: ui.write_json(json, policy.about),
        lambda: ui.console.whole_line(f"saved: ppo:{out}, {out.stat().st_size:,} bytes"),
    )


def best_floor(policy: NetworkPolicy) -> tuple[NetworkPolicy, Measures, float]:
    """Return the policy with the floor for which best responses win least, its measures, and the seconds of measuring."""
    measure(policy.variant, "random")  # the scores' reference, computed first so that its seconds do not count
    found: list[tuple[NetworkPolicy, Measures, float]] = []
    for floor in FLOORS:
        candidate = NetworkPolicy(policy.game, policy.options, policy.layers, policy.about, floor)
        name, start = f"floor {floor:g}", time.monotonic()
        with ui.progress(f"measuring {name}") as bar:
            measured = dataclasses.replace(measure(policy.variant, candidate, done=bar.advance), agent=name)
        ui.console.print(f"{name}: best responses win {100 * measured.measures[1].value:.3f} %")
        found.append((candidate, measured, time.monotonic() - start))
    return min(found, key=lambda each: each[1].measures[0].value)


def _command(game: str, option: list[str], settings: DistillSettings, seed: int, device: str) -> str:
    """The command that makes the same policy again, without --out; a time limit may make it another one."""
    typed = {"option": option, "hidden": ",".join(map(str, settings.hidden)), "steps": settings.steps}
    typed |= {"rate": f"{settings.rate:g}", "minutes": f"{settings.minutes:g}" if math.isfinite(settings.minutes) else None}
    typed |= {"precision": f"{settings.precision:g}", "seed": seed, "device": None if device == "cpu" else device}
    return command_line(f"distill {game}", typed)


# --- training ---------------------------------------------------------------------------------------------------------


class TrainingPositions:
    """An endless stream of positions of a player of the solution, against exploring players.

    In each game one seat is the learner's. The other seat's player is drawn for each game: the solution, the solution with a
    share of random actions, or its visitor. Games continue from one collection to the next.
    """

    def __init__(self, variant: Variant, solution: Equilibrium, seed: int) -> None:
        self.variant, self.solution = variant, solution
        deals, players, actions = derived_seeds(seed, "positions", 3)
        self.batch = Batch(variant, GAMES, deals)
        self.rng = np.random.default_rng(players)
        self.streams = new_streams(actions, GAMES)
        self.visitor = make_agent(solution.visitor)
        self.learner = np.zeros(GAMES, np.int64)
        self.explores = np.zeros(GAMES)
        self.visits = np.zeros(GAMES, bool)
        self._choose_players(np.arange(GAMES))

    def _choose_players(self, games: np.ndarray) -> None:
        """Choose the players of new games."""
        self.learner[games] = self.rng.integers(2, size=len(games))
        self.explores[games] = self.rng.choice(EXPLORERS, len(games))
        self.visits[games] = self.rng.random(len(games)) < VISITS

    def step(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make one move in every game.

        Returns:
            Observations (n, size) float32, action masks (n, actions) int8, and the solution's probabilities (n, actions)
            float32 at the positions where a player of the solution had a choice.
        """
        states, seats = self.batch.states, self.batch.seats.astype(np.int64)
        masks, observations = self.batch.legal(), self.batch.observe()
        chances = self.solution.probabilities(states)
        other = seats != self.learner
        plain = other & (self.explores == 0) & ~self.visits  # plays the solution too, so its positions serve as well
        kept = (~other | plain) & (masks.sum(axis=1) > 1)
        found = observations[kept], masks[kept], chances[kept].astype(np.float32)
        actions = draw_actions(self.streams, chances)
        wild = other & ~self.visits & (self.rng.random(GAMES) < self.explores)
        legal = masks[wild] / masks[wild].sum(axis=1, keepdims=True)
        streams = self.streams[wild]
        actions[wild] = draw_actions(streams, legal)
        self.streams[wild] = streams
        visiting = np.flatnonzero(other & self.visits)
        if len(visiting):
            actions[visiting] = ask(self.visitor, self.variant, states, visiting, self.streams)
        self.batch.play(actions)
        over = np.flatnonzero(self.batch.seats < 0)
        self.batch.deal(over)
        self._choose_players(over)
        return found

    def collect(self, number: int) -> list[np.ndarray]:
        """Observations, masks and probabilities of at least `number` positions."""
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        while sum(len(part[0]) for part in parts) < number:
            parts.append(self.step())
        return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


class Learner:
    """A network that learns the solution's probabilities. It does not see the blocks `unseen`, which the solution ignores.

    `settings` are its sizes and the learning rate; `seed` fixes its initial weights.
    """

    def __init__(
        self, variant: Variant, unseen: Collection[str], settings: DistillSettings, seed: int, device: str = "cpu"
    ) -> None:
        import torch

        from dice_envs.learn.networks import mlp

        self.variant, self.settings, self.device = variant, settings, device
        self.seen = np.setdiff1d(
            np.arange(variant.facts.observation_size), block_inputs(variant, lambda block: block.name in unseen)
        )
        (weights,) = derived_seeds(seed, "weights")
        drawn = torch.Generator().manual_seed(weights)
        self.network: Any = mlp([len(self.seen), *settings.hidden, variant.facts.num_actions], drawn)
        # Inputs are counts divided by their largest values. Scaled like this, the network begins like one that sees the counts.
        largest = np.concatenate([np.full(block.size, block.high, np.float32) for block in variant.blocks])
        with torch.no_grad():
            self.network[0].weight *= torch.from_numpy(np.maximum(largest[self.seen], 1))  # type: ignore[operator]
        self.network.to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), settings.rate, fused=True)

    def learn(self, observations: np.ndarray, masks: np.ndarray, chances: np.ndarray, share: float) -> float:
        """Make an update after a share of the training; return the mean Kullback-Leibler divergence before it."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate * (1 + math.cos(math.pi * share)) / 2
        seen, legal, wanted = (torch.from_numpy(each).to(self.device) for each in (observations[:, self.seen], masks, chances))
        logits = self.network(seen).masked_fill(legal == 0, LEAST_LOGIT)
        loss = -(wanted * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        entropy = -(chances * np.log(np.where(chances > 0, chances, 1))).sum(axis=1).mean()
        return float(loss.detach()) - float(entropy)

    def policy(self) -> NetworkPolicy:
        """The network as a policy in float16, with zero weights for the inputs that it does not see."""
        from dice_envs.learn.networks import layers_of

        (first, biases), *others = layers_of(self.network)
        weights = np.zeros((len(first), self.variant.facts.observation_size), np.float32)
        weights[:, self.seen] = first
        return in_half(NetworkPolicy(self.variant.game.name, self.variant.changed_options(), [(weights, biases), *others]))


@torch_threads(1)
def train(learner: Learner, positions: TrainingPositions, report: Callable[[int, float], Any]) -> int:
    """Make the updates that steps and time allow; return their number. `report` is called with each one's number and loss."""
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
                report(made, learner.learn(observations, masks, chances, share))
