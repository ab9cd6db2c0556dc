"""CuPy's memory pools, one set for each context: device, managed, named, pinned and asynchronous ones.

The process-wide default pools are of the same classes and hold what the rest of the program allocated; these stand
next to them and leave them alone.

The asynchronous pool is a front of the runtime's stream-ordered allocator, which does the pooling. Each device gets a
``cudaMemPool_t`` of the context's own. CuPy allocates from whichever pool is the device's current one, so ours is
current only while CuPy is called for it. The runtime counts what its pool holds, independently of CuPy; what it says of
bytes *in use* follows frees in stream order and is not read. Memory hooks do not see this pool.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from quiesce.backends.cupy.ledger import BackingAllocator, Cupy, CupyLedger
from quiesce.backends.cupy.streams import Streams, Unsupportable
from quiesce.backends.device_tables import Refused
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Source
from quiesce.model.operations import InjectedError, MemoryKind
from quiesce.model.outcomes import INVALID_HANDLE, INVALID_VALUE

_hook_numbers = itertools.count()


class CachingPools:
    """The pools of one context above :class:`BackingAllocator`. Sizes in bytes."""

    def __init__(self, cupy: Cupy, devices: int, backing: BackingAllocator, ledger: CupyLedger) -> None:
        self._cupy = cupy
        self._devices = devices
        self._backing = backing
        self._ledger = ledger
        self._defaults: dict[MemoryKind, Any] = {}
        self._named: dict[str, Any] = {}
        self.hook = _hook(cupy, ledger)
        """The memory hook: to be entered around whatever allocates or frees."""

    def _of_kind(self, kind: MemoryKind) -> Any:
        if kind not in self._defaults:
            self._defaults[kind] = self._cupy.cuda.MemoryPool(self._backing.allocator(kind))
        return self._defaults[kind]

    @property
    def _all(self) -> list[Any]:
        return [*self._defaults.values(), *(pool for pool in self._named.values() if pool is not None)]

    def allocator(self, kind: MemoryKind, slot: str | None) -> Any:
        """Return what allocates from a pool, as ``cupy.cuda.set_allocator`` takes it. Raises :class:`Refused`."""
        return (self._of_kind(kind) if slot is None else self._find(slot)).malloc

    def _find(self, slot: str) -> Any:
        if slot not in self._named:
            raise Refused(INVALID_VALUE)
        if self._named[slot] is None:
            raise Refused(INVALID_HANDLE)
        return self._named[slot]

    def create(self, slot: str, limit_bytes: int | None) -> None:
        """Create a pool, whose limit holds on the current device. 0 is CuPy's word for none, so it is refused."""
        if self._named.get(slot) is not None or limit_bytes == 0:
            raise Refused(INVALID_VALUE)
        pool = self._cupy.cuda.MemoryPool(self._backing.allocator(MemoryKind.DEVICE))
        if limit_bytes is not None:
            pool.set_limit(size=limit_bytes)
        self._named[slot] = pool

    def require(self, slot: str) -> None:
        """Refuse a slot that names no living pool."""
        self._find(slot)

    def destroy(self, slot: str) -> None:
        """Drop a pool, and with it everything that it caches. Its blocks must be gone."""
        self._find(slot)
        self._named[slot] = None

    def trim(self, kind: MemoryKind, slot: str | None) -> None:
        """Empty one pool, or the pool of a kind, on every device."""
        if slot is None and kind not in self._defaults:
            return
        pool = self._of_kind(kind) if slot is None else self._find(slot)
        for device in range(self._devices):
            with self._cupy.cuda.Device(device):
                pool.free_all_blocks()

    def inject(self, nth: int, error: InjectedError) -> None:
        """Make an allocation below the pools fail."""
        self._backing.inject(nth, error)

    def _sum(self, method: str) -> int:
        total = 0
        for device in range(self._devices):
            with self._cupy.cuda.Device(device):
                total += sum(int(getattr(pool, method)()) for pool in self._all)
        return total

    def readings(self) -> dict[tuple[Gauge, Source], int]:
        """Read what the pools say that they handed out and hold, and what the ledger says of the same."""
        ledger = self._ledger
        return {
            (Gauge.LIVE, Source.CLAIM): self._sum("used_bytes"),
            (Gauge.LIVE, Source.LEDGER): ledger.block_bytes,
            (Gauge.BLOCKS, Source.LEDGER): ledger.blocks,
            (Gauge.RESERVED, Source.CLAIM): self._sum("total_bytes"),
            (Gauge.RESERVED, Source.LEDGER): ledger.held_bytes(MemoryKind.DEVICE, MemoryKind.MANAGED),
        }

    def close(self) -> None:
        """Drop every pool. All work must be complete and every block back."""
        self._defaults.clear()
        self._named.clear()


class PinnedPool:
    """A pinned pool of the context's own, which is the process's current one only while CuPy is called for it."""

    def __init__(self, cupy: Cupy, make_memory: Any) -> None:
        self._cupy = cupy
        self._before = _current_pinned_allocator(cupy)

        def allocate(size_bytes: int) -> Any:
            return cupy.cuda.PinnedMemoryPointer(make_memory(size_bytes), 0)

        self._pool = cupy.cuda.PinnedMemoryPool(allocate)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Have CuPy take pinned memory from here."""
        self._cupy.cuda.set_pinned_memory_allocator(self._pool.malloc)
        try:
            yield
        finally:
            self._cupy.cuda.set_pinned_memory_allocator(self._before)

    def allocate(self, size_bytes: int) -> Any:
        """Return a pinned block, the way a program asks CuPy for one."""
        with self.current():
            return self._cupy.cuda.alloc_pinned_memory(size_bytes)

    def trim(self) -> None:
        """Empty the pool."""
        self._pool.free_all_blocks()

    def close(self) -> None:
        """Let CuPy drop what it keeps behind finished copies, and empty the pool. All work must be complete."""
        self._cupy.cuda.alloc_pinned_memory(0)  # allocates nothing, and has every release look after its copies
        self._pool.free_all_blocks()


def _current_pinned_allocator(cupy: Cupy) -> Any:
    """Return what CuPy takes pinned memory from now, so that it can be put back; CuPy can only be asked for a block.

    Raises :class:`BackendUnavailable` for an allocator that a program wrote itself: nothing leads back to it.
    """
    default = cupy.get_default_pinned_memory_pool()
    was_empty = default.n_free_blocks() == 0
    probe = cupy.cuda.alloc_pinned_memory(1).mem
    if type(probe) is cupy.cuda.PinnedMemory:
        return None  # the pool is switched off
    if type(probe) is not cupy.cuda.pinned_memory.PooledPinnedMemory:
        raise BackendUnavailable(
            "cupy",
            "this process has set a pinned memory allocator of its own, which could not be put back",
            "run quiesce in a process of its own",
        )
    pool = probe.pool()
    del probe
    if pool is default and was_empty:
        default.free_all_blocks()
    return pool.malloc


def _hook(cupy: Cupy, ledger: CupyLedger) -> Any:
    class LedgerHook(cupy.cuda.MemoryHook):  # type: ignore[misc]  # CuPy's classes are Any
        name = f"quiesce-{next(_hook_numbers)}"

        def malloc_postprocess(self, *, mem_ptr: int, mem_size: int, **_: int) -> None:
            ledger.note_block(mem_ptr, mem_size)

        def free_preprocess(self, *, mem_ptr: int, **_: int) -> None:
            ledger.note_block_back(mem_ptr)

    return LedgerHook()


_PINNED_ALLOCATION: Final = 1  # cudaMemAllocationTypePinned: the only type that there is for a device
_NO_HANDLE: Final = 0  # cudaMemHandleTypeNone
_ON_A_DEVICE: Final = 1  # cudaMemLocationTypeDevice


class AsyncPools:
    """One pool of the runtime's on each device, behind ``cupy.cuda.MemoryAsyncPool``."""

    hook: Final = nullcontext()
    """Stands where the caching pools have a memory hook."""

    def __init__(self, cupy: Cupy, devices: int, streams: Streams) -> None:
        self._cupy = cupy
        self._runtime = cupy.cuda.runtime
        self._streams = streams
        properties = self._runtime.MemPoolProps
        self._handles = [
            int(self._runtime.memPoolCreate(properties(_PINNED_ALLOCATION, _NO_HANDLE, _ON_A_DEVICE, device)))
            for device in range(devices)
        ]
        before = self._current_handles()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # until 14 it is called experimental
                self._pool = cupy.cuda.MemoryAsyncPool(self._handles)  # which makes them current
        finally:
            self._make_current(before)

    def _current_handles(self) -> list[int]:
        return [int(self._runtime.deviceGetMemPool(device)) for device in range(len(self._handles))]

    def _make_current(self, handles: list[int]) -> None:
        for device, handle in enumerate(handles):
            self._runtime.deviceSetMemPool(device, handle)

    @contextmanager
    def _ours(self) -> Iterator[None]:
        before = self._current_handles()
        self._make_current(self._handles)
        try:
            yield
        finally:
            self._make_current(before)

    def allocator(self, kind: MemoryKind, slot: str | None) -> Callable[[int], Any]:
        """Return what allocates from the pool. Raises :class:`Unsupportable` for another kind or pool."""
        if kind is not MemoryKind.DEVICE or slot is not None:
            raise Unsupportable("there is one asynchronous pool, of device memory")
        return self._malloc

    def _malloc(self, size_bytes: int) -> Any:
        with self._ours():
            return self._pool.malloc(size_bytes)

    def create(self, slot: str, limit_bytes: int | None) -> None:
        """Refuse: a pool of the runtime's has no limit, and CuPy makes none."""
        raise Unsupportable("there is one asynchronous pool")

    def require(self, slot: str) -> None:
        """Refuse: there is no pool with a name."""
        raise Unsupportable("there is one asynchronous pool")

    destroy = require

    def inject(self, nth: int, error: InjectedError) -> None:
        """Refuse: what is below the pool is the runtime."""
        raise Unsupportable("nothing below the asynchronous pool can be made to fail")

    def trim(self, kind: MemoryKind, slot: str | None) -> None:
        """Have the runtime give back what its pool caches; CuPy waits for the default stream first."""
        if kind is not MemoryKind.DEVICE or slot is not None:
            raise Unsupportable("there is one asynchronous pool, of device memory")
        self._streams.end_all()
        for device in range(len(self._handles)):
            with self._cupy.cuda.Device(device):
                self._pool.free_all_blocks()

    def readings(self) -> dict[tuple[Gauge, Source], int]:
        """Read what the runtime says that its pools hold."""
        attribute = self._runtime.cudaMemPoolAttrReservedMemCurrent
        held = sum(int(self._runtime.memPoolGetAttribute(handle, attribute)) for handle in self._handles)
        return {(Gauge.RESERVED, Source.LEDGER): held}

    def close(self) -> None:
        """Destroy the pools. All work must be complete and every block back."""
        for handle in self._handles:
            self._runtime.memPoolDestroy(handle)
        self._handles.clear()
