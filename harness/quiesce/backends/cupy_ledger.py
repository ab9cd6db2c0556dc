"""The ledger of the CuPy backend: what was taken from and given to the runtime, and who waited for whom.

It counts beside CuPy, not inside it: CuPy's pools stand on allocators that report here, its hooks report what a pool
hands out, and its streams and events report records and answers. Nothing here imports CuPy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quiesce.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleDestroyed,
    HandleKind,
    Observation,
    StreamSynchronized,
)
from quiesce.operations import MemoryKind

_INTERNAL = "internal:"


@dataclass(frozen=True, slots=True)
class Held:
    """One allocation of the runtime's that was not given back. Size in bytes."""

    size_bytes: int
    kind: MemoryKind
    device: int


class CupyLedger:
    """What one context holds and saw. Sizes in bytes."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._held_bytes: Counter[tuple[MemoryKind, int]] = Counter()
        self._log: list[Observation] = []
        self._events = 0
        self._blocks: dict[int, int] = {}
        self.handles: Counter[HandleKind] = Counter()
        """Streams and events that exist, those that CuPy made for itself included."""
        self.calls = 0
        """Allocations and frees asked of the runtime since the context was opened."""
        self.block_bytes = 0
        """Bytes that CuPy's pools handed out and did not get back, as its memory hook sees it."""

    # -- memory of the runtime -------------------------------------------------------------------------------------

    def held_bytes(self, *kinds: MemoryKind, device: int | None = None) -> int:
        """Return how much of these kinds is held, on one device or (None) on all."""
        return sum(
            size for (kind, where), size in self._held_bytes.items() if kind in kinds and device in (None, where)
        )

    @property
    def allocations(self) -> int:
        """Allocations of the runtime's that are held."""
        return len(self._held)

    def note_allocation(self, address: int, held: Held) -> None:
        """Enter what the runtime handed out."""
        self.calls += 1
        self._held[address] = held
        self._held_bytes[held.kind, held.device] += held.size_bytes
        self._log.append(BackingAllocated(address, held.size_bytes, held.kind, held.device))

    def note_refusal(self, wanted: Held) -> None:
        """Enter a request that was refused."""
        self.calls += 1
        self._log.append(BackingRefused(wanted.size_bytes, wanted.kind, wanted.device))

    def held(self) -> list[tuple[int, Held]]:
        """Return every allocation that is held, with its address."""
        return list(self._held.items())

    def note_free(self, address: int) -> None:
        """Enter that the runtime has an allocation back, for which it waited until its device was idle."""
        held = self._held.pop(address)
        self._held_bytes[held.kind, held.device] -= held.size_bytes
        self.calls += 1
        self.note_device_synchronized(held.device)
        self._log.append(BackingFreed(address, held.size_bytes, held.kind, held.device))

    def note_host_allocation(self, address: int, size_bytes: int) -> None:
        """Enter pageable memory that the system handed out."""
        self._log.append(BackingAllocated(address, size_bytes, MemoryKind.PAGEABLE))

    def note_host_free(self, address: int, size_bytes: int) -> None:
        """Enter that the system has pageable memory back."""
        self._log.append(BackingFreed(address, size_bytes, MemoryKind.PAGEABLE))

    # -- blocks of CuPy's pools ------------------------------------------------------------------------------------

    @property
    def blocks(self) -> int:
        """Blocks that CuPy's pools handed out and did not get back."""
        return len(self._blocks)

    def note_block(self, address: int, size_bytes: int) -> None:
        """Enter a block that a pool handed out; null is a block of no bytes or a failure."""
        if address:
            self._blocks[address] = size_bytes
            self.block_bytes += size_bytes

    def note_block_back(self, address: int) -> None:
        """Enter that a pool has a block back. One that the ledger does not know belongs to another pool."""
        self.block_bytes -= self._blocks.pop(address, 0)

    # -- order -----------------------------------------------------------------------------------------------------

    def name_event(self) -> str:
        """Return a new name for an event that is none of the sequence's."""
        self._events += 1
        return f"{_INTERNAL}{self._events}"

    def note_created(self, kind: HandleKind) -> None:
        """Enter a new handle."""
        self.handles[kind] += 1

    def note_destroyed(self, kind: HandleKind, name: str) -> None:
        """Enter the end of a handle; what the sequence destroys it says itself."""
        self.handles[kind] -= 1
        if name.startswith(_INTERNAL):
            self._log.append(HandleDestroyed(kind, name))

    def note_record(self, event: str, stream: str) -> None:
        """Enter that an event of CuPy's or of the backend's own was recorded."""
        if event.startswith(_INTERNAL):
            self._log.append(EventRecorded(event, stream))

    def note_wait(self, event: str, stream: str) -> None:
        """Enter that a stream was made to wait for such an event."""
        if event.startswith(_INTERNAL):
            self._log.append(EventWaited(event, stream))

    def note_completion(self, event: str) -> None:
        """Enter that the host asked such an event and was told that it is complete."""
        if event.startswith(_INTERNAL):
            self._log.append(EventCompleted(event))

    def note_stream_synchronized(self, stream: str) -> None:
        """Enter that the host waited for a stream although the sequence did not ask for it."""
        self._log.append(StreamSynchronized(stream))

    def note_device_synchronized(self, device: int) -> None:
        """Enter that the host waited for a device although the sequence did not ask for it."""
        self._log.append(DeviceSynchronized(device))

    def drain(self) -> tuple[Observation, ...]:
        """Return what was seen since the last call."""
        seen, self._log = tuple(self._log), []
        return seen
