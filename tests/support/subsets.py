"""Parametrised tests of which `make test` runs some rows, always the same, and `make test-thorough` the others."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def _marked(names: str | Sequence[str], rows: list[Any], kept: set[int], more: dict[str, Any]) -> pytest.MarkDecorator:
    single = isinstance(names, str)
    for number, row in enumerate(rows):
        values, marks, name = (row.values, row.marks, row.id) if hasattr(row, "marks") else ([row] if single else row, (), None)
        if number not in kept:
            rows[number] = pytest.param(*values, marks=[*marks, pytest.mark.thorough], id=name)
    return pytest.mark.parametrize(names, rows, **more)


def few(number: int, names: str | Sequence[str], rows: Iterable[Any], **more: Any) -> pytest.MarkDecorator:
    """As `pytest.mark.parametrize`; all but the first rows are `thorough`."""
    listed = list(rows)
    if number >= len(listed):
        raise ValueError(f"few must leave rows out, not keep {number} of {len(listed)}: use parametrize")
    return _marked(names, listed, set(range(number)), more)


def covering(names: Sequence[str], *axes: Iterable[Any], most: int = 100, **more: Any) -> pytest.MarkDecorator:
    """A product of axes, with a row of names for it; all rows that cover nothing new are `thorough`, and those after `most`.

    Of two axes each value is covered, of more each pair of values of different axes.
    """
    values = [list(axis) for axis in axes]
    rows = list(itertools.product(*(range(len(axis)) for axis in values)))
    groups = list(itertools.combinations(range(len(axes)), min(2, len(axes) - 1)))
    todo = {(group, tuple(row[place] for place in group)) for row in rows for group in groups}
    kept = set()
    while todo and len(kept) < most:
        covers = [todo & {(group, tuple(row[place] for place in group)) for group in groups} for row in rows]
        best = max(range(len(rows)), key=lambda number: len(covers[number]))
        kept.add(best)
        todo -= covers[best]
    return _marked(names, [[axis[at] for axis, at in zip(values, row)] for row in rows], kept, more)
