"""CuPy's asynchronous pool: a front of the runtime's stream-ordered allocator, which does the pooling.

Each device gets a ``cudaMemPool_t`` of the context's own. CuPy allocates from whichever pool is the device's current
one, so ours is current only while CuPy is called for it. The runtime counts what its pool holds, independently of
CuPy; what it says of bytes *in use* follows frees in stream order and is not read. Memory hooks do not see this pool.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from quiesce.backends.cupy_backing import Cupy
from quiesce.backends.cupy_streams import Streams, Unsupportable
from quiesce.gauges import Gauge, Source
from quiesce.operations import InjectedError, MemoryKind

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
