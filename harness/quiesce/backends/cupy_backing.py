"""What CuPy's pools stand on here: the runtime's own allocators, each call seen and, at the capacity, refused.

``MemoryPool(allocator)`` and ``PinnedMemoryPool(allocator)`` take any allocator, so CuPy's pools run unchanged above
these. A memory hook would not do: it sees what a pool takes from the runtime, and not what it gives back.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

from quiesce.backend import DeviceProfile
from quiesce.backends.cupy_codes import OUT_OF_MEMORY
from quiesce.backends.cupy_ledger import CupyLedger, Held
from quiesce.operations import InjectedError, MemoryKind

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
