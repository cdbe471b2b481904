"""Observations in words and numbers, block by block, and the layout of their entries.

A game's picture becomes text, SVG and pixels in `render`, from its layout in `drawing`.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.batch import as_array
from dice_envs.core.game import Block, Game, Variant, configure
from dice_envs.core.options import shown


class Reading(NamedTuple):
    """One block of an observation in numbers and words."""

    name: str
    meaning: str
    values: np.ndarray  # the block's entries as they stand in the observation, (size,) float32
    numbers: np.ndarray  # the quantities that they encode, such as counts, (size,) float64
    text: str  # the same in words


class Description(tuple[Reading, ...]):
    """A `Reading` for each block, in order. As a string, a line for each."""

    __slots__ = ()

    def __str__(self) -> str:
        width = max(len(reading.name) for reading in self)
        return "\n".join(f"{reading.name:{width}}  {reading.text}" for reading in self)


def describe(game: str | Game | Variant, observation: Any) -> Description:
    """Describe an observation, block by block.

    Args:
        game: the variant that the observation comes from; a name or a Game stands for its defaults.
        observation: (observation_size,) numbers in [0, 1].

    Raises:
        ValueError: the numbers are not an observation of this variant.
    """
    variant = configure(game)
    size = variant.facts.observation_size
    entries = as_array("observation", observation)
    if entries.dtype.kind not in "biuf":
        raise ValueError(f"observation must be {size} numbers, not {shown(observation)}")
    entries = entries.astype(np.float32)
    if entries.shape != (size,):
        raise ValueError(f"an observation of {variant} must have shape ({size},), not {entries.shape}")
    if not ((entries >= 0) & (entries <= 1)).all():
        raise ValueError(f"observation must lie in [0, 1], not {shown(observation)}")
    ends = np.cumsum([block.size for block in variant.blocks])
    parts = np.split(entries, ends[:-1])
    return Description(_read(block, part) for block, part in zip(variant.blocks, parts, strict=True))


def _read(block: Block, values: np.ndarray) -> Reading:
    entries = values.astype(np.float64)
    if block.half is None:
        numbers = block.low + (block.high - block.low) * entries
    else:
        with np.errstate(divide="ignore"):  # an entry that float32 has rounded to 1 reads as inf
            numbers = block.half * entries / (1 - entries)
    return Reading(block.name, block.meaning, values, numbers, _words(block, numbers))


def _words(block: Block, numbers: np.ndarray) -> str:
    """The entries with their labels; those that are 0 are left out. Without labels, all numbers."""
    if not block.labels:
        return "yes" * bool(numbers[0]) or "no" if block.flags else " ".join(map(_number, numbers))
    labels = [" ".join(map(str, combination)) for combination in itertools.product(*block.labels)]
    texts = [
        label if block.flags else f"{label}: {_number(number)}" for label, number in zip(labels, numbers, strict=True) if number
    ]
    return ", ".join(texts) or "none"


def _number(number: float) -> str:
    """Rounded to float32's precision, so that counts read as whole numbers."""
    return f"{round(number, 4) + 0.0:.7g}"


def layout(game: str | Game | Variant) -> str:
    """The observation's layout as text: a line for each block with its first and last entry, its name and its meaning."""
    blocks = configure(game).blocks
    ends = itertools.accumulate(block.size for block in blocks)
    places = [f"{end - block.size}" + f" … {end - 1}" * (block.size > 1) for block, end in zip(blocks, ends, strict=True)]
    left, middle = max(map(len, places)), max(len(block.name) for block in blocks)
    return "\n".join(
        f"{place:{left}}  {block.name:{middle}}  {block.meaning}" for place, block in zip(places, blocks, strict=True)
    )
