"""The backing allocator, which pools take memory from. It has a capacity and a granularity, and can be made to fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quiesce.observations import BackingAllocated, BackingFreed, BackingRefused
from quiesce.operations import FailurePoint, InjectedError, MemoryKind
from quiesce.outcomes import BACKING_ERROR, INVALID_VALUE
from quiesce.reference.calls import CallRejected, MemoryExhausted
from quiesce.reference.heap import Heap
from quiesce.reference.ledger import Ledger
from quiesce.requests import SIZE_BYTES_MAX

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
