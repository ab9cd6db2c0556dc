"""The address space of one memory: best fit by segregated size, neighbours merged at once.

Free ranges are kept in bins of sixteen sizes to each power of two, so that a request looks at a bounded number of
bins, however many blocks live; only when every larger bin is empty is the request's own bin searched, which makes
the answer exact: ``None`` means that no free range fits.
"""

from __future__ import annotations

from quiesce.reference.ledger import Ledger

_SUBBINS = 16


def _bin_of(size_bytes: int) -> int:
    """Return the index of the bin whose sizes include ``size_bytes``."""
    exponent = size_bytes.bit_length() - 1
    if exponent < 4:
        return size_bytes
    return (exponent << 4) | ((size_bytes >> (exponent - 4)) & (_SUBBINS - 1))


class Heap:
    """Free and used ranges between ``base`` and ``base + capacity_bytes``."""

    def __init__(self, base: int, capacity_bytes: int, ledger: Ledger) -> None:
        self._ledger = ledger
        self._used: dict[int, int] = {}
        self._free_by_start: dict[int, int] = {}
        self._free_by_end: dict[int, int] = {}
        self._bins: dict[int, dict[int, None]] = {}
        self._occupied = 0  # bit i is set where bin i holds a range
        if capacity_bytes:
            self._insert(base, capacity_bytes)

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int | None:
        """Return the address of a new range, or None where no free range holds it. ``size_bytes`` is at least 1."""
        found = self._find(size_bytes, alignment_bytes)
        if found is None:
            return None
        start, length = found
        self._remove(start, length)
        address = -(-start // alignment_bytes) * alignment_bytes
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
        # A range one alignment longer than the request holds it wherever the range begins.
        sure = _bin_of(size_bytes + alignment_bytes - 1) + 1
        larger = self._occupied >> sure
        exact = self._search(_bin_of(size_bytes), size_bytes, alignment_bytes, at_most=8)
        if exact is not None:
            return exact
        if larger:
            self._ledger.step()
            index = sure + (larger & -larger).bit_length() - 1
            start = next(iter(self._bins[index]))
            return start, self._free_by_start[start]
        for index in range(_bin_of(size_bytes), sure):
            found = self._search(index, size_bytes, alignment_bytes, at_most=None)
            if found is not None:
                return found
        return None

    def _search(
        self, index: int, size_bytes: int, alignment_bytes: int, at_most: int | None
    ) -> tuple[int, int] | None:
        for seen, start in enumerate(self._bins.get(index, ())):
            if at_most is not None and seen >= at_most:
                return None
            self._ledger.step()
            length = self._free_by_start[start]
            if start + length >= -(-start // alignment_bytes) * alignment_bytes + size_bytes:
                return start, length
        return None

    def _insert(self, start: int, length: int) -> None:
        self._ledger.step()
        self._free_by_start[start] = length
        self._free_by_end[start + length] = start
        index = _bin_of(length)
        self._bins.setdefault(index, {})[start] = None
        self._occupied |= 1 << index

    def _remove(self, start: int, length: int) -> None:
        self._ledger.step()
        del self._free_by_start[start]
        del self._free_by_end[start + length]
        index = _bin_of(length)
        entries = self._bins[index]
        del entries[start]
        if not entries:
            self._occupied &= ~(1 << index)
