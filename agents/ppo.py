"""Trained policies: small networks that act with NumPy alone, and whose files are loaded without running code.

Some come with the package, in the folder `policies` beside this module; see `shipped`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dice_envs.agent import Promises, Turn
from dice_envs.agent.kernel import Network, bound, sample_softmax
from dice_envs.core.dice import uniform
from dice_envs.core.files import read_arrays, write_arrays
from dice_envs.core.game import Facts, Variant, configure
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range, shown
from dice_envs.core.view import Block, offsets
from dice_envs.exact import Measures

from . import POLICIES
from .base import Checked, Deterministic

FORMAT = 1
MOST_LAYERS = 64
MOST_NUMBERS = 2**24  # weights and biases of a policy
MOST_BYTES = 4 * MOST_NUMBERS + 2**22  # of an unpacked file: the numbers, and room for the header
MOST_HALF = 65504.0  # the largest number of float16


@kernel(allocates=False)
def _sample_all(logits, masks, floor, streams, out):
    """Sample an action in every game. `streams` and `out` are modified in place."""
    for k in range(len(out)):
        out[k] = sample_softmax(logits[k], masks[k], floor, uniform(streams[k]))


class NetworkPolicy:
    """A policy network on the CPU: dense layers with tanh between them, then a softmax over the legal actions.

    Attributes:
        layers: (weights (out, in), biases (out,)) float32, first layer first.
        game, options: the game it was trained on, without options that change words alone; it plays nothing else.
        variant: the same as a Variant.
        about: how it was made and how good it is, see `check_about`; empty if unknown.
        floor: an action is never taken if its probability is below `floor` times that of the likeliest one, 0 to 0.99. A
            policy with few actions is measured quickly, because fewer positions are reached.
        promises: it is memoryless, ignores how a position came about, if the game marks blocks of its observation that tell
            only that (`Block.history`), and the weights of all their inputs are 0.

    Raises:
        ValueError: no such game or options, layers that are not finite float32 or do not lead from the game's observations
            to its actions, or a wrong `about` or `floor`.
    """

    def __init__(
        self,
        game: str,
        options: Mapping[str, Any],
        layers: list[tuple[np.ndarray, np.ndarray]],
        about: Mapping[str, Any] | None = None,
        floor: float = 0.0,
    ) -> None:
        self.game = game
        self.layers = layers
        self.variant = configure(game, **options).plain
        self.options = {name: value for name, value in options.items() if name not in self.variant.game.word_options}
        _check_layers(layers, self.variant.facts)
        self.about = check_about(about or {})
        check_range("floor", floor, 0, 0.99, whole=False)
        self.floor = float(floor)
        history = block_inputs(self.variant, lambda block: block.history)
        memoryless = len(history) > 0 and not layers[0][0][:, history].any()
        self.promises = Promises(memoryless=memoryless, observes_only=True, variant=self.variant, network=self.network)

    def check_variant(self, variant: Variant, name: str = "this policy") -> None:
        """Raise ValueError, beginning with `name`, for another variant than the one it was trained on."""
        if variant.game is not self.variant.game:
            raise ValueError(f"{name} was trained on {self.variant}; it cannot play {variant.game.name}")
        ours, theirs = self.variant.differences(variant)
        if ours:
            raise ValueError(f"{name} was trained on {self.game} with {ours}; it cannot play {theirs}")

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Return unnormalised log probabilities, (n, num_actions) float32, before masking."""
        hidden = observations
        with np.errstate(over="ignore", invalid="ignore"):
            for i, (weights, biases) in enumerate(self.layers):
                hidden = hidden @ weights.T + biases
                if i + 1 < len(self.layers):
                    np.tanh(hidden, out=hidden)
        bound(hidden)
        return hidden

    def network(self, variant: Variant) -> Network | None:
        """Return the network as numbers; None for a subclass, which may state other probabilities."""
        self.check_variant(variant)
        return Network(tuple(self.layers), self.floor) if type(self) is NetworkPolicy else None

    def act(self, turn: Turn) -> np.ndarray:
        """Return sampled actions, (n,) int64."""
        self.check_variant(turn.variant)
        out = np.empty(len(turn), np.int64)
        _sample_all(self.logits(turn.observations), turn.legal, self.floor, turn.streams, out)
        return out

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        logits = np.where(turn.legal != 0, self.logits(turn.observations).astype(np.float64), -np.inf)
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances[chances < self.floor] = 0
        return chances / chances.sum(axis=1, keepdims=True)


def _check_layers(layers: list[tuple[np.ndarray, np.ndarray]], facts: Facts) -> None:
    arrays = [array for layer in layers for array in layer]
    if any(array.dtype != np.float32 for array in arrays):
        raise ValueError(f"layers must be float32, not {', '.join(sorted({str(array.dtype) for array in arrays}))}")
    if len(layers) > MOST_LAYERS or sum(array.size for array in arrays) > MOST_NUMBERS:
        raise ValueError(f"a policy has at most {MOST_LAYERS} layers and {MOST_NUMBERS:,} numbers")
    sizes = [facts.observation_size, *(len(biases) for _, biases in layers)]
    expected = [shape for before, after in itertools.pairwise(sizes) for shape in ((after, before), (after,))]
    shapes = [array.shape for array in arrays]
    if not layers or shapes != expected or sizes[-1] != facts.num_actions:
        raise ValueError(
            f"layers must lead from {facts.observation_size} inputs to {facts.num_actions} actions, not {shown(shapes)}"
        )
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("layers must hold finite numbers")


def block_inputs(variant: Variant, chosen: Callable[[Block], bool]) -> np.ndarray:
    """Return the entries of an observation that belong to the chosen blocks, (n,) int64."""
    begins = offsets(variant.blocks)
    parts = [begin + np.arange(block.size) for begin, block in zip(begins, variant.blocks, strict=True) if chosen(block)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def in_half(policy: NetworkPolicy) -> NetworkPolicy:
    """Round a policy's numbers to float16, as `save_policy(..., half=True)` stores them. ValueError if one is too large."""
    arrays = [array for layer in policy.layers for array in layer]
    largest = max(float(np.abs(array).max(initial=0)) for array in arrays)
    if largest > MOST_HALF:
        raise ValueError(f"float16 holds numbers up to {MOST_HALF:,.0f}, and the policy has {largest:,.0f}")
    layers = [(w.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32)) for w, b in policy.layers]
    return NetworkPolicy(policy.game, policy.options, layers, policy.about, policy.floor)


def save_policy(path: Path, policy: NetworkPolicy, half: bool = False) -> None:
    """Write a policy file (NumPy's npz, no pickles) with the policy's `about` and `floor`, whole or not at all.

    `half` stores float16 instead of float32, in half the space; `in_half` returns the policy that is then loaded.

    Raises:
        ValueError: a wrong `about`, or a number that is too large for float16.
    """
    header: dict[str, Any] = {"format": FORMAT, "game": policy.game, "options": policy.options, "layers": len(policy.layers)}
    if policy.about:
        header["about"] = check_about(policy.about)
    if policy.floor:
        header["floor"] = policy.floor
    arrays = {"header": np.array(json.dumps(header))}
    for i, (weights, biases) in enumerate((in_half(policy) if half else policy).layers):
        stored = np.float16 if half else np.float32
        arrays[f"weights_{i}"], arrays[f"biases_{i}"] = weights.astype(stored), biases.astype(stored)
    write_arrays(path, arrays)


def load_policy(path: str | Path) -> NetworkPolicy:
    """Read a policy file, or the policy.npz in a folder. Untrusted files are safe: sizes are checked before unpacking.

    Raises:
        ValueError: the file is missing, damaged, or not a policy; the message names the file and the reason.
    """
    name, path = shown(str(path), most=500), Path(path)
    try:
        if path.is_dir():
            path = path / "policy.npz"
            if not path.is_file():
                raise ValueError(f"{name} is a folder without a policy.npz; `train` makes one")
        if not path.is_file():
            raise ValueError(f"there is no policy file {name}; `train` makes one")
    except OSError as problem:  # not a possible file name, or its folder cannot be read
        raise ValueError(f"there is no policy file {name}: {problem.strerror}") from None
    try:
        return _read(path)
    except Exception as problem:  # zipfile, zlib and json each raise their own errors for damage
        reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise ValueError(f"{name} is not a policy file, or is damaged: {reason}") from None


def _read(path: Path) -> NetworkPolicy:
    arrays = read_arrays(path, MOST_BYTES)
    count = (len(arrays) - 1) // 2
    if arrays.keys() != {"header", *(f"{kind}_{i}" for i in range(count) for kind in ("weights", "biases"))}:
        raise ValueError(f"its members are {shown(list(arrays))}")
    header = json.loads(str(arrays["header"]))
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    for field, kind in {"format": int, "game": str, "options": dict, "layers": int}.items():
        if type(header.get(field)) is not kind:
            raise ValueError(f"its header's {field} is {shown(header.get(field))}")
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {shown(header['format'])}, not {FORMAT}")
    if header["layers"] != count:
        raise ValueError(f"its header says {shown(header['layers'])} layers, but there are {count}")
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in header["options"].items()}
    layers = [(_floats(arrays, f"weights_{i}", 2), _floats(arrays, f"biases_{i}", 1)) for i in range(count)]
    about = check_about(header.get("about", {}))
    return NetworkPolicy(header["game"], options, layers, about, header.get("floor", 0.0))


def _floats(arrays: Mapping[str, np.ndarray], name: str, dimensions: int) -> np.ndarray:
    array = arrays[name]
    if array.dtype not in (np.dtype("<f4"), np.dtype("<f2")) or array.ndim != dimensions:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not float32 or float16 of {dimensions} dimensions")
    return array.astype(np.float32, copy=False)


# --- how a policy was made, and how good it is ------------------------------------------------------------------------

MOST_ABOUT = 2**16  # characters of the object as JSON
_TEXT, _WHOLE, _NUMBER = (str,), (int,), (int, float)
_MEASURES = [{"name": _TEXT, "value": _NUMBER, "optimum": _NUMBER, "gap": _NUMBER, "error": _NUMBER, "unit": _TEXT}]
# Types of values; a dictionary stands for an object with these fields, a list for any number of such objects.
_FIELDS: dict[str, Any] = {
    "command": _TEXT,
    "method": _TEXT,
    "seed": _WHOLE,
    "steps": _WHOLE,
    "minutes": _NUMBER,
    "measures": _MEASURES,
    "greedy_measures": _MEASURES,
    "table": {"agents": (list,), "win_rate": (int, float, list), "ci95": (int, float, list)},
    "measuring_seconds": _NUMBER,
}


def check_about(about: Any) -> dict[str, Any]:
    """Return a copy of a policy's `about` as plain JSON values; ValueError names a wrong field.

    Every field is optional, and others may be added.

    command: the command that made the policy, a string.
    method: how it was trained, say "ppo" or "distill", a string.
    seed, steps: whole numbers.
    minutes: how long it took, a number.
    measures, greedy_measures: of the sampled policy, and of its likeliest action: lists of objects with name and unit
        (strings), value, optimum, gap and error (numbers), like `dice_envs.Measurement`.
    measuring_seconds: how long `measures` took; if long, the test that measures the policy again is marked slow.
    table: results of games: agents (a list), win_rate and ci95 (numbers, or lists of them).
    """
    if not isinstance(about, Mapping):
        raise ValueError(f"about is {shown(about)}, not an object")
    try:
        text = json.dumps(dict(about), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ValueError(f"about cannot be written as JSON: {' '.join(str(problem).split())[:100]}") from None
    if len(text) > MOST_ABOUT:
        raise ValueError(f"about has {len(text):,} characters as JSON, more than {MOST_ABOUT:,}")
    plain: dict[str, Any] = json.loads(text)
    for field, form in _FIELDS.items():
        if field in plain:
            _check(f"about.{field}", plain[field], form)
    return plain


def _check(name: str, value: Any, form: Any) -> None:
    """Raise ValueError unless a value has a form; see `_FIELDS`."""
    kinds = form if isinstance(form, tuple) else (type(form),)
    if type(value) not in kinds:
        words = "an object" if kinds == (dict,) else " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{name} is {shown(value)}, not {words}")
    if isinstance(form, dict):
        for field, each in form.items():
            _check(f"{name}.{field}", value.get(field), each)
    elif isinstance(form, list):
        for place, each in enumerate(value):
            _check(f"{name}[{place}]", each, form[0])
    elif isinstance(value, (int, float)) and not (abs(value) < 1e300 and math.isfinite(value)):
        raise ValueError(f"{name} is {shown(value)}, not a finite number below 1e300")


def measures_as_dicts(measured: Measures) -> list[dict[str, Any]]:
    """Convert the result of `dice_envs.measure` to the form of `about`; see `check_about`."""
    return [dataclasses.asdict(each) for each in measured.measures]


# --- policies that come with the package ------------------------------------------------------------------------------


def shipped() -> dict[str, NetworkPolicy]:
    """Return the policies that come with the package, by file name without its extension. ValueError if a file is damaged."""
    return _read_all(POLICIES)


@functools.cache
def _read_all(folder: Path) -> dict[str, NetworkPolicy]:
    return {path.stem: load_policy(path) for path in sorted(folder.glob("*.npz"))}


@functools.lru_cache(maxsize=64)
def _trained(folder: Path, variant: Variant) -> NetworkPolicy:
    """Return the trained policy in the folder that plays a variant; networks distilled from solutions are left out. ValueError
    if there is none; the message lists the variants that have one."""
    policies = [policy for policy in _read_all(folder).values() if policy.about.get("method") != "distill"]
    for policy in policies:
        if policy.variant.same_rules(variant):
            return policy
    there = [str(policy.variant) for policy in policies]
    own = [text for text, policy in zip(there, policies, strict=True) if policy.variant.game is variant.game]
    others = f"those that come with it play {', '.join(own or there)}" if there else "none comes with it"
    raise ValueError(f"ppo has no policy in the package for {variant}; {others}; ppo:FILE plays one that `train` has saved")


@dataclasses.dataclass(frozen=True)
class Likeliest(Deterministic):
    """Always plays a policy's likeliest action.

    Attributes:
        policy: the policy.
    """

    policy: NetworkPolicy

    @functools.cached_property
    def promises(self) -> Promises:
        """Those of the policy, but for its probabilities."""
        return Promises(memoryless=self.policy.promises.memoryless, observes_only=True)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another variant than the one the policy was trained on."""
        self.policy.check_variant(variant)

    def act(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        return np.where(turn.legal != 0, self.policy.logits(turn.observations), -np.inf).argmax(axis=1)


@dataclasses.dataclass(frozen=True)
class Ppo(Checked):
    """A trained policy. Plays only the game and options that it was trained on.

    `ppo` is the policy that comes with the package for the game and options that are played; `agents --policies` lists them.
    `ppo:runs/liars_dice_quick` is one that `train` has saved.

    Attributes:
        path: the policy file, or the folder of a run; none: a policy that comes with the package.
        greedy: true: always the likeliest action; false: actions are sampled from the policy.
    """

    files: ClassVar[tuple[str, ...]] = ("path",)  # parameters that name files; a front end for other people restricts them

    path: str = ""
    greedy: bool = False
    _policy: NetworkPolicy | None = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_policy", load_policy(str(self.path)) if self.path else None)

    @property
    def about(self) -> dict[str, Any]:
        """The policy file's `about` (see `check_about`); empty without a path."""
        return dict(self._policy.about or {}) if self._policy else {}

    @functools.cached_property
    def promises(self) -> Promises:
        """Those of the policy; without a path those of any policy until the variant is known."""
        own = self._policy.promises if self._policy else Promises(observes_only=True)
        return dataclasses.replace(own, network=self.network, for_variant=self.of_variant)

    def of_variant(self, variant: Variant) -> Ppo:
        """Return the same agent with the policy that plays the variant. Raises ValueError as `check_variant` does."""
        found = dataclasses.replace(self)
        object.__setattr__(found, "_policy", self._playing(variant))
        return found

    def _playing(self, variant: Variant) -> NetworkPolicy:
        if self._policy is None:
            return _trained(POLICIES, variant)
        self._policy.check_variant(variant, f"ppo:{shown(str(self.path), most=500)[1:-1]}")
        return self._policy

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another variant than the one it was trained on; without a path, for one without a policy."""
        self._playing(variant)

    def _player(self, variant: Variant) -> NetworkPolicy | Likeliest:
        return Likeliest(self._playing(variant)) if self.greedy else self._playing(variant)

    def act(self, turn: Turn) -> np.ndarray:
        return self._player(turn.variant).act(turn)

    def probabilities(self, turn: Turn) -> np.ndarray:
        return self._player(turn.variant).probabilities(turn)

    def network(self, variant: Variant) -> Network | None:
        """Return the policy's network as numbers; None if it does not draw its actions."""
        return None if self.greedy else self._playing(variant).network(variant)


AGENTS = {"ppo": Ppo}
