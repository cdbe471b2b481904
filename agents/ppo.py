"""Trained policies: small networks that load without running code from the file, and act with NumPy alone."""

from __future__ import annotations

import dataclasses
import itertools
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.agent import Turn
from dice_envs.dice import uniform
from dice_envs.game import Variant, configure
from dice_envs.kernel import kernel

__all__ = ["AGENTS", "NetworkPolicy", "Ppo", "load_policy", "save_policy"]

FORMAT = 1


@kernel
def _sample_all(logits, masks, streams, out):
    """Draw from the softmax over the legal actions. `streams` and `out` are modified in place."""
    for k in range(len(out)):
        top = -np.inf
        for a in range(logits.shape[1]):
            if masks[k, a] != 0:
                top = max(top, logits[k, a])
        total = 0.0
        for a in range(logits.shape[1]):
            if masks[k, a] != 0:
                total += np.exp(logits[k, a] - top)
        at = uniform(streams[k]) * total
        chosen = -1
        for a in range(logits.shape[1]):
            if masks[k, a] != 0:
                chosen = a
                at -= np.exp(logits[k, a] - top)
                if at < 0:
                    break
        out[k] = chosen


class NetworkPolicy:
    """A policy network on the CPU: dense layers with tanh between them, then a softmax over the legal actions.

    Attributes:
        layers: (weights (out, in), biases (out,)) float32, first layer first.
        game, options: what it was trained on; it plays that alone.
    """

    def __init__(self, game: str, options: Mapping[str, Any], layers: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.game = game
        self.options = dict(options)
        self.layers = layers
        self._variant = configure(game, **self.options)

    def _check(self, variant: Variant) -> None:
        if variant.game is not self._variant.game or variant.options != self._variant.options:
            raise ValueError(
                f"this policy was trained on {self.game} with {self.options or 'the default options'}; it cannot play "
                f"{variant.game.name} with {variant.changed_options() or 'the default options'}"
            )

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Unnormalised log chances, (n, num_actions) float32, before masking."""
        hidden = observations
        for i, (weights, biases) in enumerate(self.layers):
            hidden = hidden @ weights.T + biases
            if i + 1 < len(self.layers):
                np.tanh(hidden, out=hidden)
        return hidden

    def act(self, turn: Turn, greedy: bool = False) -> np.ndarray:
        """Drawn actions, or the likeliest ones, (n,) int64."""
        self._check(turn.variant)
        logits = self.logits(turn.observations)
        if greedy:
            return np.where(turn.legal != 0, logits, -np.inf).argmax(axis=1)
        out = np.empty(len(turn), np.int64)
        _sample_all(logits, turn.legal, turn.streams, out)
        return out

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        self._check(turn.variant)
        logits = np.where(turn.legal != 0, self.logits(turn.observations).astype(np.float64), -np.inf)
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True)


def save_policy(path: Path, policy: NetworkPolicy) -> None:
    """Write a policy file (NumPy's npz, no pickles) to a path that may be a temporary one."""
    header = json.dumps({"format": FORMAT, "game": policy.game, "options": policy.options, "layers": len(policy.layers)})
    arrays = {"header": np.array(header)}
    for i, (weights, biases) in enumerate(policy.layers):
        arrays[f"weights_{i}"] = weights.astype(np.float32)
        arrays[f"biases_{i}"] = biases.astype(np.float32)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]


def load_policy(path: str | Path) -> NetworkPolicy:
    """Read a policy file.

    Raises:
        ValueError: the file is missing, damaged, or not a policy.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            if header.get("format") != FORMAT:
                raise ValueError(f"its format is {header.get('format')}, not {FORMAT}")
            layers = [(data[f"weights_{i}"], data[f"biases_{i}"]) for i in range(header["layers"])]
        options = {key: tuple(value) if isinstance(value, list) else value for key, value in header["options"].items()}
        policy = NetworkPolicy(header["game"], options, layers)
    except FileNotFoundError:
        raise ValueError(f"there is no policy file {str(path)!r}; `train` makes one") from None
    except IsADirectoryError:
        raise ValueError(f"{str(path)!r} is a folder; name the policy.npz in it") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, AttributeError) as problem:
        raise ValueError(f"{str(path)!r} is not a policy file, or is damaged: {problem}") from None
    facts = policy._variant.facts
    sizes = [facts.observation_size, *(len(biases) for _, biases in layers)]
    shapes = [weights.shape for weights, _ in layers]
    if sizes[-1] != facts.num_actions or shapes != [(after, before) for before, after in itertools.pairwise(sizes)]:
        raise ValueError(f"{str(path)!r} does not fit {policy.game}: layers {shapes} for {facts.observation_size} inputs")
    return policy


@dataclasses.dataclass(frozen=True)
class Ppo:
    """A trained policy, as `train` saves it: `ppo:runs/liars_dice_quick/policy.npz`.

    Attributes:
        path: the policy file.
        greedy: true: always the likeliest action; false: drawn from the policy.
    """

    path: str
    greedy: bool = False
    _policy: NetworkPolicy = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.greedy, bool):
            raise ValueError(f"greedy must be true or false, not {self.greedy!r}")
        object.__setattr__(self, "_policy", load_policy(str(self.path)))

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        return self._policy.act(turn, self.greedy)

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        if not self.greedy:
            return self._policy.probabilities(turn)
        chances = np.zeros((len(turn), turn.variant.facts.num_actions))
        chances[np.arange(len(turn)), self.act(turn)] = 1
        return chances


AGENTS = {"ppo": Ppo}
