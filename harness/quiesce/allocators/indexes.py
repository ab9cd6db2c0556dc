"""Indexes that keep things found fast however many there are: by size, by address, or in no order at all.

They know nothing of allocators, so that the oracle and the reference, which share no judgement, may share these.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Final, Generic, TypeVar

_Thing = TypeVar("_Thing")


class Bag(Generic[_Thing]):
    """Things, each at most once; ``things`` holds them, the newest last as long as none was removed.

    A dictionary would do, but finding its first entry takes as long as there are entries that were removed before it.
    """

    __slots__ = ("_positions", "things")

    def __init__(self) -> None:
        self.things: list[_Thing] = []
        self._positions: dict[_Thing, int] = {}

    def add(self, thing: _Thing) -> None:
        """Add a thing."""
        self._positions[thing] = len(self.things)
        self.things.append(thing)

    def remove(self, thing: _Thing) -> None:
        """Remove a thing; the last one takes its place. Raises :class:`KeyError` where it is not there."""
        position = self._positions.pop(thing)
        last = self.things.pop()
        if position < len(self.things):
            self.things[position] = last
            self._positions[last] = position


_BUCKET_MAX: Final = 512


class SortedKeys:
    """Distinct numbers in order, in buckets of bounded length: a new one moves a bounded number of others."""

    __slots__ = ("_buckets", "_firsts")

    def __init__(self) -> None:
        self._buckets: list[list[int]] = []
        self._firsts: list[int] = []  # the smallest number of each bucket

    def add(self, key: int) -> None:
        """Add a number that is not there."""
        if not self._buckets:
            self._buckets.append([key])
            self._firsts.append(key)
            return
        index = bisect_right(self._firsts, key) - 1 if key > self._firsts[0] else 0
        bucket = self._buckets[index]
        insort(bucket, key)
        self._firsts[index] = bucket[0]
        if len(bucket) > _BUCKET_MAX:
            half = bucket[_BUCKET_MAX // 2 :]
            del bucket[_BUCKET_MAX // 2 :]
            self._buckets.insert(index + 1, half)
            self._firsts.insert(index + 1, half[0])

    def remove(self, key: int) -> None:
        """Remove a number that is there."""
        index = bisect_right(self._firsts, key) - 1
        bucket = self._buckets[index]
        del bucket[bisect_left(bucket, key)]
        if bucket:
            self._firsts[index] = bucket[0]
        else:
            del self._buckets[index]
            del self._firsts[index]

    def since(self, least: int) -> Iterator[int]:
        """Yield the numbers from ``least`` on, in order. Nothing may be added or removed meanwhile."""
        index = self._bucket_of(least)
        position = bisect_left(self._buckets[index], least) if self._buckets else 0
        while index < len(self._buckets):
            bucket = self._buckets[index]
            while position < len(bucket):
                yield bucket[position]
                position += 1
            index += 1
            position = 0

    def around(self, start: int, end: int) -> list[int]:
        """Return the greatest number that is at most ``start``, and all that follow it and are below ``end``."""
        if not self._buckets:
            return []
        index = self._bucket_of(start)
        bucket = self._buckets[index]
        first = max(0, bisect_right(bucket, start) - 1)
        last = bisect_left(bucket, end, first)
        found = bucket[first:last]
        while last == len(bucket) and index + 1 < len(self._buckets):
            index += 1
            bucket = self._buckets[index]
            last = bisect_left(bucket, end)
            found += bucket[:last]
        return found

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(self._buckets)

    def _bucket_of(self, key: int) -> int:
        """Return which bucket holds the greatest number that is at most ``key``; 0 where none does."""
        return max(0, bisect_right(self._firsts, key) - 1)


class SizeIndex(Generic[_Thing]):
    """Things in the order of their sizes: the smallest that is large enough is found in logarithmic time, exactly.

    A thing is in the index at most once. Nothing here is ever walked over that was removed before.
    """

    def __init__(self) -> None:
        self._bags: dict[int, Bag[_Thing]] = {}
        self._sizes = SortedKeys()

    def add(self, size: int, thing: _Thing) -> None:
        """Add a thing of ``size``."""
        bag = self._bags.get(size)
        if bag is None:
            self._bags[size] = bag = Bag()
            self._sizes.add(size)
        bag.add(thing)

    def remove(self, size: int, thing: _Thing) -> None:
        """Remove a thing that was added with ``size``. Raises :class:`KeyError` where it is not there."""
        bag = self._bags[size]
        bag.remove(thing)
        if not bag.things:
            del self._bags[size]
            self._sizes.remove(size)

    def sizes_from(self, least: int) -> Iterator[int]:
        """Yield the sizes there are, from ``least`` on, smallest first. Nothing may be added or removed meanwhile."""
        return self._sizes.since(least)

    def of_size(self, size: int) -> Sequence[_Thing]:
        """Return the things of exactly ``size``. Nothing may be added or removed meanwhile."""
        bag = self._bags.get(size)
        return bag.things if bag is not None else ()


class IntervalIndex(Generic[_Thing]):
    """A map from half-open ranges ``[start, end)``, which never overlap each other, to values."""

    def __init__(self) -> None:
        self._starts = SortedKeys()
        self._ranges: dict[int, tuple[int, _Thing]] = {}

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, start: int, end: int, value: _Thing) -> None:
        """Add a range that overlaps none of those present; an empty range is ignored."""
        if start < end:
            self._ranges[start] = (end, value)
            self._starts.add(start)

    def remove(self, start: int) -> _Thing | None:
        """Remove the range that begins at ``start`` and return its value; None where none does."""
        entry = self._ranges.pop(start, None)
        if entry is None:
            return None
        self._starts.remove(start)
        return entry[1]

    def exactly(self, start: int, end: int) -> _Thing | None:
        """Return the value of the range ``[start, end)``; None where there is no such range."""
        entry = self._ranges.get(start)
        return entry[1] if entry is not None and entry[0] == end else None

    def change(self, start: int, value: _Thing) -> None:
        """Give another value to the range that begins at ``start``."""
        self._ranges[start] = (self._ranges[start][0], value)

    def overlapping(self, start: int, end: int) -> list[tuple[int, int, _Thing]]:
        """Return the ranges that share an address with ``[start, end)``, in order."""
        if start >= end:
            return []
        ranges = self._ranges
        return [(first, *ranges[first]) for first in self._starts.around(start, end) if ranges[first][0] > start]

    def cut(self, start: int, end: int) -> list[_Thing]:
        """Remove ``[start, end)`` from every range, keep what lies outside, and return the values met."""
        values = []
        for first, last, value in self.overlapping(start, end):
            self.remove(first)
            self.add(first, min(last, start), value)
            self.add(max(first, end), last, value)
            values.append(value)
        return values

    def __iter__(self) -> Iterator[tuple[int, int, _Thing]]:
        return ((start, *self._ranges[start]) for start in self._starts)
