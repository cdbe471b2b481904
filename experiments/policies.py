"""The trained policies that come with the package, and how good their headers say that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from agents.ppo import POLICIES, NetworkPolicy, shipped
from experiments.output import console, write_json

__all__ = ["list_policies"]


def list_policies(json: Path | None = None) -> list[dict[str, Any]]:
    """Print the policies that come with the package, with the first measure of each. Returns what was written as JSON."""
    rows = [_row(name, policy) for name, policy in shipped().items()]
    table = Table(title="trained policies", title_justify="left")
    for heading in ("file", "plays", "measured", "as it is", "likeliest action", "optimal", "bytes", "made by"):
        table.add_column(
            heading, justify="right" if heading in ("as it is", "likeliest action", "optimal", "bytes") else "left"
        )
    for row in rows:
        table.add_row(*map(_text, row.values()))
    if rows:
        console.print(table)
    else:
        console.print("no policies come with the package")
    write_json(json, {"policies": rows})
    return rows


def _row(name: str, policy: NetworkPolicy) -> dict[str, Any]:
    about = policy.about
    found = _headline(about.get("measures", []))
    greedy = _headline(about.get("greedy_measures", []))
    path = POLICIES / f"{name}.npz"
    either = found or greedy
    return {
        "file": path.name,
        "plays": str(policy.variant),
        "measured": either.get("name"),
        "value": found.get("value"),
        "greedy_value": greedy.get("value"),
        "optimum": either.get("optimum"),
        "bytes": path.stat().st_size,
        "command": about.get("command"),
    }


def _headline(measures: list[dict[str, Any]]) -> dict[str, Any]:
    return measures[0] if measures else {}


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
