"""Indexes that keep things found fast however many there are: by size, by address, or in no order at all.

They know nothing of allocators, so that the oracle and the reference, which share no judgement, may share these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Final, Generic, TypeVar

_Thing = TypeVar("_Thing")


class Bag(Generic[_Thing]):
    """Things, each at most once; ``things`` holds them, the newest last as long as none was removed."""

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


class SizeIndex(Generic[_Thing]):
    """Things by size. A thing is in the index at most once."""

    def __init__(self) -> None:
        self._bags: dict[int, Bag[_Thing]] = {}
        self._buckets: list[list[int]] = []
        self._lasts: list[int] = []  # the largest size of each bucket

    def add(self, size: int, thing: _Thing) -> None:
        """Add a thing of ``size``."""
        bag = self._bags.get(size)
        if bag is None:
            self._bags[size] = bag = Bag()
            self._add_size(size)
        bag.add(thing)

    def remove(self, size: int, thing: _Thing) -> None:
        """Remove a thing that was added with ``size``. Raises :class:`KeyError` where it is not there."""
        bag = self._bags[size]
        bag.remove(thing)
        if not bag.things:
            del self._bags[size]
            self._remove_size(size)

    def sizes_from(self, least: int) -> Iterator[int]:
        """Yield the sizes there are, from ``least`` on, smallest first. Nothing may be added or removed meanwhile."""
        index = bisect_left(self._lasts, least)
        position = bisect_left(self._buckets[index], least) if index < len(self._buckets) else 0
        while index < len(self._buckets):
            bucket = self._buckets[index]
            while position < len(bucket):
                yield bucket[position]
                position += 1
            index += 1
            position = 0

    def of_size(self, size: int) -> Sequence[_Thing]:
        """Return the things of exactly ``size``. Nothing may be added or removed meanwhile."""
        bag = self._bags.get(size)
        return bag.things if bag is not None else ()

    def _add_size(self, size: int) -> None:
        if not self._buckets:
            self._buckets.append([size])
            self._lasts.append(size)
            return
        index = min(bisect_left(self._lasts, size), len(self._lasts) - 1)
        bucket = self._buckets[index]
        insort(bucket, size)
        self._lasts[index] = bucket[-1]
        if len(bucket) > _BUCKET_MAX:
            half = bucket[: _BUCKET_MAX // 2]
            del bucket[: _BUCKET_MAX // 2]
            self._buckets.insert(index, half)
            self._lasts.insert(index, half[-1])

    def _remove_size(self, size: int) -> None:
        index = bisect_left(self._lasts, size)
        bucket = self._buckets[index]
        del bucket[bisect_left(bucket, size)]
        if bucket:
            self._lasts[index] = bucket[-1]
        else:
            del self._buckets[index]
            del self._lasts[index]


_Value = TypeVar("_Value")
_RANGES_MAX = 512


class IntervalIndex(Generic[_Value]):
    """A map from half-open ranges ``[start, end)``, which never overlap each other, to values.

    Starts are kept in sorted buckets of bounded length, so that inserting moves a bounded number of entries.
    """

    def __init__(self) -> None:
        self._buckets: list[list[int]] = []
        self._firsts: list[int] = []
        self._ranges: dict[int, tuple[int, _Value]] = {}

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, start: int, end: int, value: _Value) -> None:
        """Add a range that overlaps none of those present; an empty range is ignored."""
        if start >= end:
            return
        self._ranges[start] = (end, value)
        if not self._buckets:
            self._buckets.append([start])
            self._firsts.append(start)
            return
        index = max(0, bisect_right(self._firsts, start) - 1)
        bucket = self._buckets[index]
        insort(bucket, start)
        self._firsts[index] = bucket[0]
        if len(bucket) > _RANGES_MAX:
            half = bucket[_RANGES_MAX // 2 :]
            del bucket[_RANGES_MAX // 2 :]
            self._buckets.insert(index + 1, half)
            self._firsts.insert(index + 1, half[0])

    def remove(self, start: int) -> _Value | None:
        """Remove the range that begins at ``start`` and return its value; None where none does."""
        entry = self._ranges.pop(start, None)
        if entry is None:
            return None
        index = bisect_right(self._firsts, start) - 1
        bucket = self._buckets[index]
        del bucket[bisect_right(bucket, start) - 1]
        if bucket:
            self._firsts[index] = bucket[0]
        else:
            del self._buckets[index]
            del self._firsts[index]
        return entry[1]

    def exactly(self, start: int, end: int) -> _Value | None:
        """Return the value of the range ``[start, end)``; None where there is no such range."""
        entry = self._ranges.get(start)
        return entry[1] if entry is not None and entry[0] == end else None

    def change(self, start: int, value: _Value) -> None:
        """Give another value to the range that begins at ``start``."""
        self._ranges[start] = (self._ranges[start][0], value)

    def overlapping(self, start: int, end: int) -> list[tuple[int, int, _Value]]:
        """Return the ranges that share an address with ``[start, end)``, in order."""
        found: list[tuple[int, int, _Value]] = []
        if start >= end or not self._buckets:
            return found
        index = max(0, bisect_right(self._firsts, start) - 1)
        position = max(0, bisect_right(self._buckets[index], start) - 1)
        while index < len(self._buckets):
            bucket = self._buckets[index]
            beyond = bisect_left(bucket, end, position)
            for first in bucket[position:beyond]:
                last, value = self._ranges[first]
                if last > start:
                    found.append((first, last, value))
            if beyond < len(bucket):
                break
            index += 1
            position = 0
        return found

    def cut(self, start: int, end: int) -> list[_Value]:
        """Remove ``[start, end)`` from every range, keep what lies outside, and return the values met."""
        values = []
        for first, last, value in self.overlapping(start, end):
            self.remove(first)
            self.add(first, min(last, start), value)
            self.add(max(first, end), last, value)
            values.append(value)
        return values

    def __iter__(self) -> Iterator[tuple[int, int, _Value]]:
        for bucket in self._buckets:
            for start in bucket:
                end, value = self._ranges[start]
                yield start, end, value
