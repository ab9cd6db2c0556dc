"""Disjoint address ranges in order, found in logarithmic time however many there are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

_Value = TypeVar("_Value")
_BUCKET_MAX = 512


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
        if len(bucket) > _BUCKET_MAX:
            half = bucket[_BUCKET_MAX // 2 :]
            del bucket[_BUCKET_MAX // 2 :]
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
