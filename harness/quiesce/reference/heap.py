"""The address space of one memory: best fit, neighbours merged at once.

The answer is exact: ``None`` means that no free range fits. It is found in logarithmic time however many blocks live,
except that a request aligned beyond where ranges begin may have to look at ranges that are just too short for it.
"""

from __future__ import annotations

from typing import Final

from quiesce.reference.ledger import Ledger
from quiesce.reference.size_index import SizeIndex

_TRIES_MAX: Final = 8
"""How many ranges a request looks at before it takes one that holds it wherever it begins."""


class Heap:
    """Free and used ranges between ``base`` and ``base + capacity_bytes``."""

    def __init__(self, base: int, capacity_bytes: int, ledger: Ledger) -> None:
        self._ledger = ledger
        self._used: dict[int, int] = {}
        self._free_by_start: dict[int, int] = {}
        self._free_by_end: dict[int, int] = {}
        self._free: SizeIndex[int] = SizeIndex()  # starts by length
        if capacity_bytes:
            self._insert(base, capacity_bytes)

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int | None:
        """Return the address of a new range, or None where no free range holds it. ``size_bytes`` is at least 1."""
        found = self._find(size_bytes, alignment_bytes)
        if found is None:
            return None
        start, length = found
        self._remove(start, length)
        address = _aligned(start, alignment_bytes)
        if address > start:
            self._insert(start, address - start)
        tail = start + length - (address + size_bytes)
        if tail:
            self._insert(address + size_bytes, tail)
        self._used[address] = size_bytes
        return address

    def free(self, address: int) -> int | None:
        """Free the range at ``address`` and return its size, or None where none begins there."""
        size = self._used.pop(address, None)
        if size is None:
            return None
        start, length = address, size
        before = self._free_by_end.get(start)
        if before is not None:
            self._remove(before, start - before)
            start, length = before, length + start - before
        after = self._free_by_start.get(address + size)
        if after is not None:
            self._remove(address + size, after)
            length += after
        self._insert(start, length)
        return size

    def _find(self, size_bytes: int, alignment_bytes: int) -> tuple[int, int] | None:
        """Return the start and length of a free range that holds the request, the shortest where that is quick."""
        tries = 0
        sure = size_bytes + alignment_bytes - 1  # so long a range holds the request wherever it begins
        for length in self._free.sizes_from(size_bytes):
            for start in self._free.of_size(length):
                self._ledger.step()
                if _aligned(start, alignment_bytes) + size_bytes <= start + length:
                    return start, length
                tries += 1
                if tries == _TRIES_MAX and (certain := next(self._free.sizes_from(sure), None)) is not None:
                    self._ledger.step()
                    return self._free.of_size(certain)[0], certain
        return None

    def _insert(self, start: int, length: int) -> None:
        self._ledger.step()
        self._free_by_start[start] = length
        self._free_by_end[start + length] = start
        self._free.add(length, start)

    def _remove(self, start: int, length: int) -> None:
        self._ledger.step()
        del self._free_by_start[start]
        del self._free_by_end[start + length]
        self._free.remove(length, start)


def _aligned(address: int, alignment_bytes: int) -> int:
    return -(-address // alignment_bytes) * alignment_bytes
