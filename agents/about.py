"""The `about` of a policy file: how the policy was made, and how good it is."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dice_envs.core.options import shown
from dice_envs.exact import Measures

POLICIES = Path(__file__).resolve().parent / "policies"  # folder of the trained policies that come with the package

MOST_ABOUT = 2**16  # characters of the object as JSON
_FIELDS: dict[str, tuple[type, ...]] = {
    "command": (str,),
    "method": (str,),
    "seed": (int,),
    "steps": (int,),
    "minutes": (int, float),
    "measures": (list,),
    "greedy_measures": (list,),
    "table": (dict,),
    "measuring_seconds": (int, float),
}
_MEASURE: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "value": (int, float),
    "optimum": (int, float),
    "gap": (int, float),
    "error": (int, float),
    "unit": (str,),
}
_TABLE: dict[str, tuple[type, ...]] = {"agents": (list,), "win_rate": (int, float, list), "ci95": (int, float, list)}


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
    for field, kinds in _FIELDS.items():
        if field in plain:
            _check("about", field, plain[field], kinds)
    for field in ("measures", "greedy_measures"):
        for place, each in enumerate(plain.get(field, ())):
            _check_object(f"about.{field}[{place}]", each, _MEASURE)
    if "table" in plain:
        _check_object("about.table", plain["table"], _TABLE)
    return plain


def _check_object(name: str, value: Any, fields: Mapping[str, tuple[type, ...]]) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {shown(value)}, not an object")
    for field, kinds in fields.items():
        _check(name, field, value.get(field), kinds)


def _check(name: str, field: str, value: Any, kinds: tuple[type, ...]) -> None:
    if type(value) not in kinds:
        raise ValueError(f"{name}.{field} is {shown(value)}, not {' or '.join(kind.__name__ for kind in kinds)}")
    if isinstance(value, (int, float)) and not (abs(value) < 1e300 and math.isfinite(value)):
        raise ValueError(f"{name}.{field} is {shown(value)}, not a finite number below 1e300")


def measures_as_dicts(measured: Measures) -> list[dict[str, Any]]:
    """Convert the result of `dice_envs.measure` to the form of `about`; see `check_about`."""
    return [dataclasses.asdict(each) for each in measured.measures]
