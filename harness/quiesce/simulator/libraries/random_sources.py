"""Where random numbers come from: generators whose definitions NVIDIA publishes, many sequences side by side.

A generator has lanes, each a subsequence of its own, and goes round them: a visit of a lane gives one or more results.
The documentation ("Generator Options", "Order") and the device functions in the headers of cuRAND say how lanes begin
and what a visit gives; that the results are the same was measured against cuRAND 10.3.10.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

import numpy as np

from quiesce.simulator.libraries.conversation import Array

_WORD: Final = 0xFFFFFFFF
_SHIFT: Final = np.uint64(32)
_MASK: Final = np.uint64(_WORD)
_OF_32: Final = 2.0**-32
_OF_53: Final = 2.0**-53
_SKIPPED: Final = 1 << 20
"""So many results at a time are skipped for an offset."""


class Lanes(Protocol):
    """A generator whose lanes can be drawn from."""

    count: int
    results: int
    """How many results a visit gives, of bits."""

    def bits(self, lanes: slice) -> Array:
        """Return a row of results for each lane, and move the lanes on."""

    def uniform(self, lanes: slice) -> Array:
        """Return numbers in (0, 1] in single precision."""

    def uniform_double(self, lanes: slice) -> Array:
        """Return numbers in (0, 1] in double precision."""

    def normal(self, lanes: slice) -> Array:
        """Return pairs of normally distributed numbers in single precision."""

    def normal_double(self, lanes: slice) -> Array:
        """Return the same in double precision."""

    def save(self, lane: int) -> Any:
        """Return where a lane is, of a generator whose visits may be left in the middle."""

    def restore(self, lane: int, saved: Any) -> None:
        """Move a lane back."""


def single(bits: Array) -> Array:
    """Return numbers in (0, 1] from 32 bits (``_curand_uniform``)."""
    return bits.astype(np.float32) * np.float32(_OF_32) + np.float32(_OF_32 / 2)


def double(low: Array, high: Array) -> Array:
    """Return numbers in (0, 1] from 53 bits (``_curand_uniform_double_hq``)."""
    mixed = low.astype(np.uint64) ^ (high.astype(np.uint64) << np.uint64(21))
    return np.asarray(mixed.astype(np.float64) * _OF_53 + _OF_53 / 2)


def box_muller(first: Array, second: Array) -> Array:
    """Return two numbers of the normal distribution for each two in (0, 1]."""
    turn = first.dtype.type(2 * np.pi)
    radius = np.sqrt(-2 * np.log(first))
    return np.stack([np.sin(second * turn) * radius, np.cos(second * turn) * radius], 1)


class _OfBits(ABC):
    """What generators of 32 bits have in common."""

    results = 1

    @abstractmethod
    def bits(self, lanes: slice) -> Array:
        """Return the next words of some lanes."""

    def save(self, lane: int) -> Any:
        return None

    def restore(self, lane: int, saved: Any) -> None:
        raise AssertionError("a visit gives one result, or two normal ones, of which an even number is asked for")

    def uniform(self, lanes: slice) -> Array:
        return single(self.bits(lanes))

    def uniform_double(self, lanes: slice) -> Array:
        return double(self.bits(lanes), self.bits(lanes))

    def normal(self, lanes: slice) -> Array:
        return box_muller(self.uniform(lanes)[:, 0], self.uniform(lanes)[:, 0])

    def normal_double(self, lanes: slice) -> Array:
        return box_muller(self.uniform_double(lanes)[:, 0], self.uniform_double(lanes)[:, 0])


# -- XORWOW ------------------------------------------------------------------------------------------------------------


def _step_of_bits() -> Array:
    """Return XORWOW's step as a matrix over two elements: on 5 words of 32 bits (Marsaglia, "Xorshift RNGs")."""
    one = np.eye(32, dtype=np.uint8)
    made = np.zeros((160, 160), np.uint8)
    for word in range(4):
        made[32 * word : 32 * word + 32, 32 * word + 32 : 32 * word + 64] = one
    made[128:, 128:] = one ^ np.eye(32, k=-4, dtype=np.uint8)
    made[128:, :32] = _times(one ^ np.eye(32, k=-1, dtype=np.uint8), one ^ np.eye(32, k=2, dtype=np.uint8))
    return made


def _times(first: Array, second: Array) -> Array:
    return (first.astype(np.float32) @ second.astype(np.float32)).astype(np.int64).astype(np.uint8) & 1


@functools.cache
def _jumps(lanes: int) -> tuple[Array, ...]:
    """Return steps of 2^67, 2^68 … words: enough to begin so many lanes."""
    jump = _step_of_bits()
    for _ in range(67):
        jump = _times(jump, jump)
    made = [jump]
    while 2 ** len(made) < lanes:
        made.append(_times(made[-1], made[-1]))
    return tuple(made)


class Xorwow(_OfBits):
    """XORWOW: "the result at offset n is from position (n mod 4096) 2^67 + n / 4096 of the original sequence"."""

    count = 4096

    def __init__(self, seed: int) -> None:
        first, second = (seed & _WORD) ^ 0xAAD26B49, (seed >> 32 & _WORD) ^ 0xF7DCEFDD
        low, high = 1099087573 * first & _WORD, 2591861531 * second & _WORD
        begin = [123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low]
        bits = np.array([[word >> bit & 1 for bit in range(32)] for word in begin], np.uint8).reshape(160, 1)
        for jump in _jumps(self.count):
            bits = np.concatenate([bits, _times(jump, bits)], 1)
        words = bits.reshape(5, 32, self.count).astype(np.uint64) << np.arange(32, dtype=np.uint64)[None, :, None]
        self._words = words.sum(1).astype(np.uint32)
        self._sums = np.full(self.count, 6615241 + high + low & _WORD, np.uint32)

    def bits(self, lanes: slice) -> Array:
        """Return 32 bits for each lane."""
        words = self._words[:, lanes]
        mixed = words[0] ^ (words[0] >> np.uint32(2))
        last = (words[4] ^ (words[4] << np.uint32(4))) ^ (mixed ^ (mixed << np.uint32(1)))
        words[:4] = words[1:].copy()
        words[4] = last
        self._sums[lanes] += np.uint32(362437)
        return np.asarray((last + self._sums[lanes])[:, None])


# -- MRG32k3a ----------------------------------------------------------------------------------------------------------

_M1: Final = 4294967087
_M2: Final = 4294944443
_A1: Final = ((0, 1, 0), (0, 0, 1), (_M1 - 810728, 1403580, 0))
_A2: Final = ((0, 1, 0), (0, 0, 1), (_M2 - 1370589, 0, 527612))
_Matrix = tuple[tuple[int, ...], ...]


def _product(first: _Matrix, second: _Matrix, modulus: int) -> _Matrix:
    columns = list(zip(*second, strict=True))
    return tuple(
        tuple(sum(a * b for a, b in zip(row, column, strict=True)) % modulus for column in columns) for row in first
    )


@functools.cache
def _mrg_jumps(step: _Matrix, modulus: int, lanes: int) -> tuple[_Matrix, ...]:
    """Return steps of 2^76, 2^77 … numbers."""
    for _ in range(76):
        step = _product(step, step, modulus)
    made = [step]
    while 2 ** len(made) < lanes:
        made.append(_product(made[-1], made[-1], modulus))
    return tuple(made)


class Mrg(_OfBits):
    """MRG32k3a (L'Ecuyer), in 81,920 subsequences of 2^76 numbers."""

    count = 81920

    def __init__(self, seed: int) -> None:
        first, second = (seed & _WORD) ^ 0x55555555, (seed >> 32 & _WORD) ^ 0xAAAAAAAA
        ones = (first, second, first), (second, first, second)
        begins = [
            [12345 * one % modulus if seed else 12345 for one in each]
            for each, modulus in zip(ones, (_M1, _M2), strict=True)
        ]
        self._first, self._second = (
            self._begin(begin, step, modulus)
            for begin, step, modulus in zip(begins, (_A1, _A2), (_M1, _M2), strict=True)
        )

    def _begin(self, begin: list[int], step: _Matrix, modulus: int) -> Array:
        made, by = np.array(begin, np.uint64).reshape(3, 1), np.uint64(modulus)
        for jump in _mrg_jumps(step, modulus, self.count):
            rows = np.array(jump, np.uint64)
            sums = [sum((rows[row, each] * made[each]) % by for each in range(3)) % by for row in range(3)]
            made = np.concatenate([made, np.stack(sums)], 1)
        return np.ascontiguousarray(made[:, : self.count])

    def _numbers(self, lanes: slice) -> Array:
        """Return the next number of each lane, from 1 to 4294967087."""
        one, other = self._first[:, lanes], self._second[:, lanes]
        m1, m2 = np.uint64(_M1), np.uint64(_M2)
        first = (np.uint64(1403580) * one[1] + np.uint64(810728) * (m1 - one[0])) % m1
        second = (np.uint64(527612) * other[2] + np.uint64(1370589) * (m2 - other[0])) % m2
        for words, last in ((one, first), (other, second)):
            words[:2] = words[1:].copy()
            words[2] = last
        return np.asarray(np.where(first > second, first - second, first + m1 - second).astype(np.float64)[:, None])

    def bits(self, lanes: slice) -> Array:
        """Return 32 bits for each lane."""
        return (self._numbers(lanes) * 1.000000048662).astype(np.uint32)

    def uniform(self, lanes: slice) -> Array:
        """Return numbers in (0, 1] in single precision."""
        return self.uniform_double(lanes).astype(np.float32)

    def uniform_double(self, lanes: slice) -> Array:
        """Return numbers in (0, 1]: 32 bits of them are random."""
        return self._numbers(lanes) * 2.3283065498378288e-10


# -- Philox ------------------------------------------------------------------------------------------------------------


class Philox:
    """Philox 4x32-10 (Salmon and others): a visit of one of 65,536 subsequences gives four results."""

    count = 65536
    results = 4

    def __init__(self, seed: int) -> None:
        self._key = np.uint64(seed & _WORD), np.uint64(seed >> 32 & _WORD)
        self._blocks = np.zeros(self.count, np.uint64)

    def _block(self, lanes: slice) -> Array:
        """Return the next four words of each lane."""
        numbers = np.arange(self.count, dtype=np.uint64)[lanes]
        block = self._blocks[lanes]
        words = [block & _MASK, block >> _SHIFT, numbers, np.zeros_like(numbers)]
        low, high = self._key
        for _ in range(10):
            first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
            words = [
                (second >> _SHIFT) ^ words[1] ^ low,
                second & _MASK,
                (first >> _SHIFT) ^ words[3] ^ high,
                first & _MASK,
            ]
            low, high = low + np.uint64(0x9E3779B9) & _MASK, high + np.uint64(0xBB67AE85) & _MASK
        self._blocks[lanes] += np.uint64(1)
        return np.stack(words, 1).astype(np.uint32)

    def save(self, lane: int) -> Any:
        """Return how many blocks of a lane were used."""
        return self._blocks[lane]

    def restore(self, lane: int, saved: Any) -> None:
        """Move a lane back."""
        self._blocks[lane] = saved

    def bits(self, lanes: slice) -> Array:
        """Return four words for each lane."""
        return self._block(lanes)

    def uniform(self, lanes: slice) -> Array:
        """Return four numbers in (0, 1]."""
        return single(self._block(lanes))

    def uniform_double(self, lanes: slice) -> Array:
        """Return four numbers in (0, 1], from two blocks."""
        words = np.concatenate([self._block(lanes), self._block(lanes)], 1)
        return double(words[:, ::2], words[:, 1::2])

    def normal(self, lanes: slice) -> Array:
        """Return four numbers."""
        return _pairs(self.uniform(lanes))

    def normal_double(self, lanes: slice) -> Array:
        """Return four numbers, from two blocks."""
        return _pairs(self.uniform_double(lanes))


def _pairs(uniform: Array) -> Array:
    made = [box_muller(uniform[:, at], uniform[:, at + 1]) for at in (0, 2)]
    return np.concatenate(made, 1)


class Mersenne(_OfBits):
    """A Mersenne twister: MT19937 and MTGP32 of cuRAND have other bits, of the same distribution."""

    count = 4096

    def __init__(self, seed: int) -> None:
        self._source = np.random.Generator(np.random.MT19937(seed))

    def bits(self, lanes: slice) -> Array:
        """Return 32 bits for each lane."""
        return self._source.integers(0, _WORD, (lanes.stop - lanes.start, 1), np.uint32, endpoint=True)


class Stream:
    """The results of a generator, in their order. A lane has moved on once all results of its visit were taken."""

    def __init__(self, lanes: Lanes, offset: int) -> None:
        self._lanes = lanes
        self._lane = self._used = 0
        for at in range(0, offset, _SKIPPED):
            self.take("bits", min(_SKIPPED, offset - at))

    def take(self, kind: str, count: int) -> Array:
        """Return results of a kind: those of a method of :class:`Lanes`."""
        results = max(self._lanes.results, 2 if kind.startswith("normal") else 1)
        made: list[Array] = []
        used, have, before = self._used, -self._used, self._lanes.save(self._lane)
        last = self._lane
        while have < count:
            visits = min(-(-(count - have) // results), self._lanes.count - self._lane)
            last = self._lane + visits - 1
            before = self._lanes.save(last)
            made.append(getattr(self._lanes, kind)(slice(self._lane, self._lane + visits)).reshape(-1))
            self._lane = (self._lane + visits) % self._lanes.count
            have += results * visits
        self._used = 0
        if have > count:
            self._lanes.restore(last, before)
            self._lane, self._used = last, results - (have - count)
        return np.concatenate(made)[used : used + count] if made else np.empty(0)
