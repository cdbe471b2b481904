"""`benchmark learners`: known learning algorithms on one game, each measured exactly while it learns.

An algorithm is a class. `NAME(variant, seed, steps)` makes a learner that is to take so many steps in all; `train(steps)` takes
about so many more, and returns how many it took; `policy()` returns what `dice_envs.measure` takes, or one for each seat. Its
`unit` says what a step is. `ALGORITHMS` has those of other libraries and of this one; an algorithm of your own is FILE.py:NAME.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import pkgutil
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Variant
from dice_envs.core.machine import check_extra, processor, torch_threads
from dice_envs.core.options import did_you_mean, is_whole, parse_options, shown
from dice_envs.core.own import FORMS, load_own, split_own
from dice_envs.core.work import advance, clock, work
from dice_envs.exact import measure

DECISIONS = "decisions"  # the usual step: one decision of a player in a game
FIRST_MINUTE = 0.1  # of training before the first measurement; each later one comes after twice as many
AT_ONCE = 0.05  # minutes of training that an algorithm is asked for at a time, about
MOST_FASTER = 4  # times as many steps as the last time, at most

core_seconds = functools.partial(clock, "process_time")

_HERE = "dice_envs.experiments.learners"
# Name → where its class is: imported when it is first used, since each needs other libraries.
ALGORITHMS = {
    "cfr_plus": f"{_HERE}.openspiel:CFRPlus",
    "deep_cfr": f"{_HERE}.openspiel:DeepCFR",
    "dqn": f"{_HERE}.stable_baselines3:PastSelvesDQN",
    "equilibrium": f"{_HERE}.runs:EquilibriumPPO",
    "escher": f"{_HERE}.openspiel:ESCHER",
    "every_hand": f"{_HERE}.runs:EveryHandPPO",
    "external_mccfr": f"{_HERE}.openspiel:ExternalMCCFR",
    "maskable_ppo": f"{_HERE}.runs:PastSelvesPPO",
    "mmd": f"{_HERE}.openspiel:MMD",
    "neurd": f"{_HERE}.openspiel:NeuRD",
    "nfsp": f"{_HERE}.openspiel:NFSP",
    "outcome_mccfr": f"{_HERE}.openspiel:OutcomeMCCFR",
    "psro": f"{_HERE}.openspiel:PSRO",
    "published": f"{_HERE}.runs:PublishedPPO",
    "published_mmd": f"{_HERE}.runs:PublishedMMD",
    "qpg": f"{_HERE}.openspiel:QPG",
    "rpg": f"{_HERE}.openspiel:RPG",
}


class Algorithm(Protocol):
    """An algorithm that learns to play a game."""

    unit: str = DECISIONS

    def train(self, steps: int) -> int:
        """Take about so many more steps; return how many were taken, 1 or more."""
        ...

    def policy(self) -> Any:
        """Return what has been learned so far, as `dice_envs.measure` takes it, or a sequence of one for each seat."""
        ...


class Budget(NamedTuple):
    """When an algorithm stops: after so many steps, or minutes of one core."""

    steps: int
    minutes: float


def make(spec: str, variant: Variant, seed: int, steps: int) -> Any:
    """Make a learner from its spec, NAME or NAME:KEY=VALUE,KEY=VALUE.

    Raises:
        ValueError: no such algorithm or setting, or it does not learn the game.
        ImportError: its library is not installed.
    """
    algorithm, settings = parse(spec)
    with _named(spec):
        return algorithm(variant, seed, steps, **settings)


@contextlib.contextmanager
def _named(spec: str) -> Iterator[None]:
    """A block in which an algorithm works: what it raises names it, in a line if the algorithm is somebody's own."""
    try:
        yield
    except ValueError as problem:
        raise ValueError(f"{spec}: {problem}") from None
    except Exception as problem:
        if split_own(spec) is None or isinstance(problem, ImportError):
            raise
        raise ValueError(f"{spec} has failed: {type(problem).__name__}: {problem}") from problem


def parse(spec: str) -> tuple[Any, dict[str, Any]]:
    """Return the class and the settings that a spec names. ValueError for an unknown name or setting."""
    own = split_own(spec)
    name, _, rest = (f"{own[0]}:{own[1]}", ":", own[2]) if own else spec.partition(":")
    if own is None and name not in ALGORITHMS:
        known, near = ", ".join(ALGORITHMS), did_you_mean(name, ALGORITHMS)
        raise ValueError(f"unknown algorithm {shown(name)}; known: {known}, or one of your own as {FORMS}{near}")
    algorithm = load_own(*own[:2], "algorithm") if own else pkgutil.resolve_name(ALGORITHMS[name])
    settings = parse_options([part for part in rest.split(",") if part])
    lacking = [each for each in ("train", "policy") if not callable(getattr(algorithm, each, None))]
    given = list(inspect.signature(algorithm).parameters)
    if lacking or len(given) < 3:
        what = (
            f"has no {lacking[0]}" if lacking else f"takes {', '.join(given) or 'nothing'}, and must take variant, seed, steps"
        )
        raise ValueError(f"{name} is no algorithm: it {what}")
    allowed = given[3:]
    takes_any = inspect.Parameter.VAR_KEYWORD in [each.kind for each in inspect.signature(algorithm).parameters.values()]
    for key in settings:
        if key not in allowed and not takes_any:  # else it checks them
            raise ValueError(f"{name} has no setting {shown(key)}; it has: {', '.join(allowed) or 'none'}")
    return algorithm, settings


def learn(variant: Variant, budget: Budget, spec: str, seed: int) -> dict[str, Any]:
    """Let an algorithm learn on one core, and measure it on the way.

    Measurements come after FIRST_MINUTE of training and after twice as many each time, and at the end; but not before training
    has taken as long as measuring. Only training counts, without the compilation of kernels. Advances by seconds of
    training.

    Returns:
        `algorithm`, `seed`, `unit`; `points`, each with its `steps`, `minutes` of processor time, and the `value` and `error`
        of the first measurement, `name`, with the last `note`; `ended`, why it stopped: "steps" or "minutes"; and the
        `processor`, by its name.
    """
    points: list[dict[str, float]] = []
    taken, seconds, measuring, due, step, name, note = 0, 0.0, 0.0, FIRST_MINUTE, 1, "", ""
    check_extra("learners", "benchmark learners", "torch")
    with torch_threads(1), _streams(derived_seeds(seed, "algorithm")[0]):
        parse(spec)  # imports are not counted
        importlib.import_module("torch._dynamo")  # PyTorch's first optimizer would import it, which takes seconds
        began = core_seconds()
        learner = make(spec, variant, seed, budget.steps)
        seconds += core_seconds() - began
        over = False
        while not over:
            began = core_seconds()
            with _named(spec):
                done = learner.train(min(step, budget.steps - taken))
            if not is_whole(done) or done < 1:
                raise ValueError(
                    f"{spec}: train must return how many steps it took, a whole number, 1 or more, not {shown(done)}"
                )
            spent = core_seconds() - began
            taken, seconds = taken + done, seconds + spent
            advance(spent)
            step = max(1, min(MOST_FASTER * step, int(done * 60 * AT_ONCE / max(spent, 1e-3))))
            over = taken >= budget.steps or seconds >= 60 * budget.minutes
            if over or (seconds >= 60 * due and seconds >= measuring):
                began = core_seconds()
                with _named(spec), work():
                    policy = learner.policy()
                    found = measure(variant, policy, seed=seed).measures[0]
                measuring += core_seconds() - began
                name, note, due = found.name, found.note, 2 * seconds / 60
                points.append({"steps": taken, "minutes": seconds / 60, "value": found.value, "error": found.error})
    ended = "steps" if taken >= budget.steps else "minutes"
    unit = getattr(learner, "unit", DECISIONS)
    of = {"algorithm": spec, "seed": seed, "unit": unit, "name": name, "note": note, "processor": processor()}
    return {**of, "points": points, "ended": ended}


@contextlib.contextmanager
def _streams(seed: int) -> Iterator[None]:
    """Give other libraries, which draw from the process's random streams, others of their own; then put the caller's back."""
    import torch

    kept = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        reseed(seed)
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])  # noqa: NPY002


def reseed(seed: int) -> None:
    """Seed the process's random streams anew, also after a library has seeded them with a number of its own."""
    import torch

    first, second, third = derived_seeds(seed, "streams", 3)
    random.seed(first)
    np.random.seed(second % 2**32)  # noqa: NPY002
    torch.default_generator.manual_seed(third)


def summary(runs: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Return the last value of the median run, and the least and the greatest of all runs."""
    values = sorted(run["points"][-1]["value"] for run in runs)
    return values[(len(values) - 1) // 2], values[0], values[-1]
