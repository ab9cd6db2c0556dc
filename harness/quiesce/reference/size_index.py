"""Things in the order of their sizes: the smallest that is large enough is found in logarithmic time, exactly.

Distinct sizes are kept in sorted buckets of bounded length, so that a new one moves a bounded number of entries
however many there are. Nothing here is ever walked over that was removed before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Final, Generic, TypeVar

from quiesce.reference.bag import Bag

_Thing = TypeVar("_Thing")
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
