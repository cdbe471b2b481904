"""Random stream and dice helpers for kernels.

A stream is the `rng` field of a record: a game's state, or a record of `STREAM`. It is a splitmix64 counter
(Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014). So one number seeds it, a
copy of a state includes it, and a draw costs under a nanosecond. All draws change the record in place.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.core.kernel import kernel

STREAM = np.dtype([("rng", np.uint64)], align=True)  # a random stream on its own

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32), np.uint64(11)
_FRACTION_BITS = np.uint64(58)
_FRACTION_MASK = np.uint64((1 << 58) - 1)
_S6, _S3, _ONE, _BYTE = np.uint64(6), np.uint64(3), np.uint64(1), np.uint64(255)
_SEED_START, _SEED_FACTOR = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
_SEED_SHIFT, _WORD = np.uint64(16), np.uint64(0xFFFFFFFF)
_DICE_PER_DRAW = 8  # 8 dice of up to 8 faces leave at least 34 of the 58 bits: bias under 2**-34
# [faces, faces * first + second]: what a pair of dice with this number of faces adds to the counters of `roll_counts`.
_PAIRS = np.zeros((9, 64), np.uint64)
for _faces in range(2, 9):
    for _pair in range(_faces * _faces):
        _PAIRS[_faces, _pair] = (1 << 8 * (_pair // _faces)) + (1 << 8 * (_pair % _faces))


@kernel(allocates=False)
def mix(z):
    """The splitmix64 output function: a bijection of uint64 that scatters close inputs."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@kernel(allocates=False)
def next_u64(stream):
    """The next 64 random bits. `stream` is modified in place."""
    z = stream["rng"] + _GOLDEN
    stream["rng"] = z
    return mix(z)


@kernel(allocates=False)
def below(stream, n):
    """A uniform integer in 0 … n−1, for 1 ≤ n < 2**31 (bias under n / 2**32). `stream` is modified in place.

    Give `n` as an int64: kernels are compiled again for each type of an argument, and a number in the source is a type.
    """
    return np.int64(((next_u64(stream) >> _S32) * np.uint64(n)) >> _S32)


@kernel(allocates=False)
def below_except(stream, n, taken):
    """A uniform integer in 0 … n−1 that is no entry of `taken`, a two-dimensional array. `stream` is modified in place.

    At least one of 0 … n−1 must not be taken.
    """
    while True:
        drawn = below(stream, n)
        free = True
        for i in range(taken.shape[0]):
            for j in range(taken.shape[1]):
                if taken[i, j] == drawn:
                    free = False
        if free:
            return drawn


@kernel(allocates=False)
def uniform(stream):
    """A uniform float64 in [0, 1). `stream` is modified in place."""
    return np.float64(next_u64(stream) >> _S11) * (1.0 / 9007199254740992.0)


@kernel(allocates=False)
def roll(stream, num_faces):
    """One die: 1 … num_faces. `stream` is modified in place."""
    return below(stream, num_faces) + 1


@kernel(allocates=False)
def roll_counts(stream, num_dice, num_faces, counts):
    """Roll at most 255 dice of 2 … 8 faces: sets `counts[face - 1]` for each of its 8 entries. Both modified in place."""
    faces = np.uint64(num_faces)
    packed = np.uint64(0)  # eight counters of one byte each, all in one register
    left = num_dice
    while left > 0:
        # A random fraction, times the number of faces: the whole part is a die, the rest is a fresh fraction. Two at a time.
        fraction = next_u64(stream) >> _S6
        dice = left if left < _DICE_PER_DRAW else _DICE_PER_DRAW
        for _ in range(dice >> 1):
            fraction = (fraction & _FRACTION_MASK) * (faces * faces)
            packed += _PAIRS[num_faces, np.int64(fraction >> _FRACTION_BITS)]
        if dice & 1:
            fraction = (fraction & _FRACTION_MASK) * faces
            packed += _ONE << ((fraction >> _FRACTION_BITS) << _S3)
        left -= _DICE_PER_DRAW
    for face in range(8):
        counts[face] = np.int64((packed >> np.uint64(8 * face)) & _BYTE)


@kernel(allocates=False)
def choose_from_mask(stream, mask):
    """A uniformly random index at which `mask` is not 0; −1 when there is none. `stream` is modified in place."""
    count = 0
    for i in range(len(mask)):
        count += mask[i] != 0
    if count == 0:
        return -1
    k = below(stream, count)
    for i in range(len(mask)):
        if mask[i] != 0:
            if k == 0:
                return i
            k -= 1
    return -1


@kernel(allocates=False)
def choose_weighted(stream, weights, count):
    """A random index below `count`, drawn in proportion to its weight; −1 when all weights are 0.

    `weights` has `count` or more entries, none negative. `stream` is modified in place.
    """
    total = 0.0
    for i in range(count):
        total += weights[i]
    at = uniform(stream) * total
    chosen = -1
    for i in range(count):
        if weights[i] > 0.0:  # rounding must not choose an index of weight 0
            chosen = i
            at -= weights[i]
            if at < 0.0:
                break
    return chosen


def faces_of(counts: Any) -> tuple[int, ...]:
    """Face values in rising order, each face `counts[face - 1]` times."""
    return tuple(face + 1 for face, count in enumerate(counts) for _ in range(count))


def counts_of(faces: Sequence[int]) -> np.ndarray:
    """The number of dice that show each face, (8,) int64 as in `roll_counts`."""
    return np.bincount(np.asarray(faces, np.int64), minlength=9)[1:]


@kernel
def _generate(pool, words):
    """Fill `words` as `SeedSequence.generate_state` does (O'Neill, Developing a seed_seq Alternative, 2015). In place."""
    constant = _SEED_START
    for i in range(len(words)):
        word = pool[i % len(pool)] ^ constant
        constant = constant * _SEED_FACTOR & _WORD
        word = word * constant & _WORD
        words[i] = word ^ (word >> _SEED_SHIFT)


def fresh_seed() -> int:
    """A seed that nobody at the table can find by trying: 64 bits, as many as a stream has, from the operating system."""
    return secrets.randbits(64)


def new_streams(seed: int | np.random.SeedSequence | None, n: int) -> np.ndarray:
    """n independent streams, as a (n,) array of `STREAM`, from one seed (None: fresh entropy).

    They equal `SeedSequence.generate_state(n, np.uint64)`; a kernel computes them many times as fast.
    """
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    words = np.empty(2 * n, np.uint32)
    _generate(sequence.pool.astype(np.uint64), words)
    return words.astype("<u4", copy=False).view("<u8").astype(np.uint64, copy=False).view(STREAM)


def derived_seeds(seed: int | None, purpose: str, count: int = 1) -> list[int]:
    """Return `count` seeds of 64 bits for one purpose of a run, such as "games"; None: from fresh entropy.

    No other purpose and no run with another seed gets the same ones, as `seed + 1` or the run's own seed would be.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()),))
    return sequence.generate_state(count, np.uint64).tolist()
