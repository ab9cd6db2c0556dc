"""The backing allocator, which pools take memory from, and the address space that it cuts.

It has a capacity and a granularity, and can be made to fail. Its address space is best fit, neighbours merged at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quiesce.allocators.indexes import SizeIndex
from quiesce.allocators.reference.ledger import CallRejected, Ledger, MemoryExhausted
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused
from quiesce.model.operations import FailurePoint, InjectedError, MemoryKind
from quiesce.model.outcomes import BACKING_ERROR, INVALID_VALUE
from quiesce.model.requests import SIZE_BYTES_MAX

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


_BACKING: Final = FailurePoint.BACKING


@dataclass(slots=True)
class _Arming:
    remaining: int
    error: InjectedError


class FailureInjector:
    """Makes the n-th call of a kind fail once."""

    def __init__(self) -> None:
        self._armed: dict[FailurePoint, _Arming] = {}

    def arm(self, point: FailurePoint, nth: int, error: InjectedError) -> None:
        """Fail the ``nth`` call from now (1: the next) with ``error``; an earlier arming is replaced."""
        self._armed[point] = _Arming(nth, error)

    def meet(self, point: FailurePoint) -> None:
        """Count one call; raise where it is the one to fail."""
        arming = self._armed.get(point)
        if arming is None:
            return
        arming.remaining -= 1
        if arming.remaining:
            return
        del self._armed[point]
        if arming.error is InjectedError.FOREIGN:
            raise CallRejected(BACKING_ERROR)
        raise MemoryExhausted


class BackingAllocator:
    """One memory of one device: ``kind``, a capacity, and the pools that draw on it."""

    def __init__(
        self,
        heap: Heap,
        kind: MemoryKind,
        device: int,
        granularity_bytes: int,
        ledger: Ledger,
        injector: FailureInjector,
        forbid_unsafe_call: Callable[[], None],
    ) -> None:
        self.kind = kind
        self.device = device
        self.granularity_bytes = granularity_bytes
        self._heap = heap
        self._ledger = ledger
        self._injector = injector
        self._forbid_unsafe_call = forbid_unsafe_call
        self._relief: dict[object, Callable[[], None]] = {}

    def register(self, owner: object, give_back: Callable[[], None]) -> None:
        """Let ``owner`` be asked to give cached memory back when a neighbour runs out."""
        self._relief[owner] = give_back

    def unregister(self, owner: object) -> None:
        """Forget ``owner``."""
        self._relief.pop(owner, None)

    def relieve(self, asking: object) -> None:
        """Ask every owner but ``asking`` to give its cached memory back."""
        for owner, give_back in list(self._relief.items()):
            self._ledger.step()
            if owner is not asking:
                give_back()

    def footprint(self, size_bytes: int) -> int:
        """Return what a request takes: its size rounded up to the granularity."""
        return -(-size_bytes // self.granularity_bytes) * self.granularity_bytes

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int:
        """Return the address of ``footprint(size_bytes)`` new bytes.

        Raises :class:`MemoryExhausted` where none fit, :class:`CallRejected` for an injected or illegal call.
        An allocation call is unsafe while a stream is being captured (CUDA Runtime API, stream capture modes).
        """
        self._forbid_unsafe_call()
        size = self.footprint(size_bytes)
        try:
            self._injector.meet(_BACKING)
            address = self._heap.allocate(size, alignment_bytes)
            if address is None:
                raise MemoryExhausted
        except (MemoryExhausted, CallRejected):
            asked = min(size, SIZE_BYTES_MAX)  # a caller's size has 64 bits, so nobody can be seen asking for more
            self._ledger.see(BackingRefused(asked, self.kind, self.device))
            raise
        self._ledger.see(BackingAllocated(address, size, self.kind, self.device))
        return address

    def free(self, address: int) -> None:
        """Give the allocation at ``address`` back. Raises :class:`CallRejected` where there is none."""
        self._forbid_unsafe_call()
        size = self._heap.free(address)
        if size is None:
            raise CallRejected(INVALID_VALUE)
        self._ledger.see(BackingFreed(address, size, self.kind, self.device))
