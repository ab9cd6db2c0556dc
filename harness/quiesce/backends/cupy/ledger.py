"""The ledger of the CuPy backend: what was taken from and given to the runtime, and who waited for whom.

It counts next to CuPy, not inside it: CuPy's pools stand on the runtime's own allocators, each call seen and, at the
capacity, refused; CuPy's hooks report what a pool hands out, and its streams and events report records and answers.
``MemoryPool(allocator)`` and ``PinnedMemoryPool(allocator)`` take any allocator, so CuPy's pools run unchanged above
these. A memory hook would not do: it sees what a pool takes from the runtime, and not what it gives back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from quiesce.model.backend import DeviceProfile, Flavour
from quiesce.model.observations import (
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
from quiesce.model.operations import InjectedError, MemoryKind
from quiesce.model.outcomes import CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, ERROR_CODES, INVALID_HANDLE

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


OUT_OF_MEMORY: Final = 2
"""``cudaErrorMemoryAllocation``, ``hipErrorOutOfMemory``."""
NOT_READY: Final = 600
"""``cudaErrorNotReady``, ``hipErrorNotReady``: a query that is answered no."""

STICKY: Final = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})
"""Errors after which "the process must be terminated and relaunched" (CUDA Runtime API, ``cudaError_t``)."""

_WORDS: Final = {number: word for word, number in ERROR_CODES.items() if number is not None}
_WORDS_OF_HIP: Final = {709: INVALID_HANDLE}
"""What HIP alone answers: ``hipErrorContextIsDestroyed``, for a stream that was destroyed."""


def word_of(status: int, flavour: Flavour) -> str:
    """Return the word for an error number, or ``cuda-error-N`` and ``hip-error-N`` where there is none."""
    own = _WORDS_OF_HIP.get(status) if flavour is Flavour.HIP else None
    return own or _WORDS.get(status) or f"{flavour}-error-{status}"


def word_of_guard(message: str) -> str | None:
    """Return the word for a plain ``RuntimeError`` of CuPy's, which it raises before it calls the runtime.

    None: it is about no capture. (``Stream.is_capturing``, ``MemoryPointer.copy_from_host_async`` and their like.)
    """
    if "invalidated the capture" in message:
        return CAPTURE_INVALIDATED
    if "capturing" in message or "cannot capture" in message:
        return CAPTURE_UNSUPPORTED
    return None


Cupy: TypeAlias = Any
"""CuPy's module and what comes from it: it is not installed where types are checked."""

_ON_THE_DEVICE: Final = (MemoryKind.DEVICE, MemoryKind.MANAGED)


class ForeignError(Exception):
    """An injected failure that is not for lack of memory."""


class Waits(Protocol):
    """What has to be told before the runtime may block the host."""

    def end_all(self) -> None:
        """End every stall, and wait for what it held back."""


class BackingAllocator:
    """The runtime's allocators within one context's capacities. Sizes in bytes."""

    def __init__(self, cupy: Cupy, profile: DeviceProfile, ledger: CupyLedger, waits: Waits) -> None:
        self._runtime = cupy.cuda.runtime
        self._profile = profile
        self._ledger = ledger
        self._waits = waits
        self._failing: dict[int, InjectedError] = {}
        self._abandoned: set[int] = set()
        self._calls = 0
        self.pinned_memory = _pinned_memory(cupy, self)
        """The class of pinned allocations: ``pinned_memory(size)``."""
        self._make_device = cupy.cuda.PythonFunctionAllocator(self._malloc, self._free).malloc
        self._make_managed = cupy.cuda.PythonFunctionAllocator(self._malloc_managed, self._free).malloc

    def allocator(self, kind: MemoryKind) -> Any:
        """Return the function that a memory pool of this kind takes its memory from."""
        return self._make_managed if kind is MemoryKind.MANAGED else self._make_device

    def inject(self, nth: int, error: InjectedError) -> None:
        """Make the ``nth`` next allocation (1: the next) fail once."""
        self._failing[self._calls + nth] = error

    def admit(self, wanted: Held) -> None:
        """Let an allocation go to the runtime. Raises CuPy's ``CUDARuntimeError`` beyond the capacity."""
        self._calls += 1
        error = self._failing.pop(self._calls, None)
        if error is not None or self._is_beyond(wanted):
            self.refuse(wanted)
            raise ForeignError if error is InjectedError.FOREIGN else self._runtime.CUDARuntimeError(OUT_OF_MEMORY)

    def _is_beyond(self, wanted: Held) -> bool:
        if wanted.kind is MemoryKind.PINNED:
            held, capacity = self._ledger.held_bytes(MemoryKind.PINNED), self._profile.pinned_capacity_bytes
        else:
            held = self._ledger.held_bytes(*_ON_THE_DEVICE, device=wanted.device)
            capacity = self._profile.capacity_bytes
        return held + wanted.size_bytes > capacity

    def enter(self, address: int, held: Held) -> None:
        """Note what the runtime answered."""
        self._ledger.note_allocation(address, held)

    def refuse(self, wanted: Held) -> None:
        """Note a refusal. Without a pinned buffer ``asarray`` copies from pageable memory, and waits."""
        self._ledger.note_refusal(wanted)
        if wanted.kind is MemoryKind.PINNED:
            self._waits.end_all()

    def give_back(self, free: Any, address: int) -> bool:
        """Free an allocation. One that the runtime refuses to take back stays in the ledger.

        ``cudaFree`` and ``hipFree`` wait for the device ("performs an implicit hipDeviceSynchronize()", HIP API,
        ``hipFree`` and ``hipHostFree``; CUDA C++ Programming Guide, "Implicit Synchronization").
        """
        if address in self._abandoned:
            return True
        self._waits.end_all()
        try:
            free(address)
        except self._runtime.CUDARuntimeError:  # CuPy frees in destructors, where nobody can be told
            return False
        self._ledger.note_free(address)
        return True

    def reclaim(self) -> None:
        """Free what CuPy still holds, so that the device is left as it was; if CuPy lets it go later, that is ignored.

        The context is closed and its leaks were counted: nobody uses this memory any more.
        """
        for address, held in self._ledger.held():
            self.give_back(self._runtime.freeHost if held.kind is MemoryKind.PINNED else self._runtime.free, address)
            self._abandoned.add(address)

    def _malloc(self, size_bytes: int, device: int) -> int:
        return self._take(self._runtime.malloc, Held(size_bytes, MemoryKind.DEVICE, device))

    def _malloc_managed(self, size_bytes: int, device: int) -> int:
        return self._take(self._runtime.mallocManaged, Held(size_bytes, MemoryKind.MANAGED, device))

    def _take(self, malloc: Any, wanted: Held) -> int:
        self.admit(wanted)
        try:
            address = int(malloc(wanted.size_bytes))
        except self._runtime.CUDARuntimeError:
            self.refuse(wanted)
            raise
        self.enter(address, wanted)
        return address

    def _free(self, address: int, device: int) -> None:
        self.give_back(self._runtime.free, address)


def _pinned_memory(cupy: Cupy, backing: BackingAllocator) -> Any:
    """Return CuPy's class of pinned allocations, with each of them seen."""
    runtime = cupy.cuda.runtime

    class SeenPinnedMemory(cupy.cuda.PinnedMemory):  # type: ignore[misc]  # CuPy's classes are Any
        ptr = 0

        def __init__(self, size_bytes: int) -> None:
            wanted = Held(size_bytes, MemoryKind.PINNED, int(runtime.getDevice()))
            backing.admit(wanted)
            try:
                super().__init__(size_bytes, runtime.hostAllocPortable)
            except runtime.CUDARuntimeError:
                backing.refuse(wanted)
                raise
            backing.enter(self.ptr, wanted)

        def __del__(self) -> None:
            if self.ptr and backing.give_back(runtime.freeHost, self.ptr):
                self.ptr = 0

    return SeenPinnedMemory
