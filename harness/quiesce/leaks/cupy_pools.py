"""CuPy's memory pools, if the tested code has loaded CuPy; nothing here ever imports it.

A ``MemoryAsyncPool`` hands out of pools of the runtime, which belong to the device and may be others' as well: they are
asked by handle, as the pool itself does, and their memory is added to that of CuPy's own pools.

Only pools that have been used on a device are looked at there: to select a device may create a context on it (CUDA 12:
``cudaSetDevice``), which the tested code may never have wanted.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from quiesce.leaks.library_meter import LibraryMeter
from quiesce.leaks.quantities import CUPY, Quantity

USED: Final = Quantity(CUPY, "memory in use of CuPy's pools")
HELD: Final = Quantity(CUPY, "memory that CuPy's pools can't give back")
PINNED: Final = Quantity(CUPY, "pinned memory from CuPy's pool that is still in use")


class CupyMeter(LibraryMeter):
    """Reads the default pools and that of the current allocator, on every device in use."""

    family = CUPY

    def absent(self) -> str:
        """Say so as long as CuPy is not loaded."""
        return "" if _cupy() is not None else "CuPy is not loaded"

    def settle(self) -> None:
        """Wait for the devices, so that blocks in flight come back, and give back what the pools merely cache.

        During a capture both would be illegal and end it. A device in error has nothing more to wait for.
        """
        cupy = _cupy()
        if cupy is None:
            return
        pools = _memory_pools(cupy)
        with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
            ordered = _ordered_pools(cupy)
            for device in sorted({*_devices(cupy, pools), *ordered}):
                with _selected(cupy, device):
                    if _captures(cupy):
                        return
                    cupy.cuda.runtime.deviceSynchronize()
                    for pool in pools:
                        pool.free_all_blocks()
                    if device in ordered:
                        cupy.cuda.runtime.memPoolTrimTo(ordered[device], 0)
            pinned = cupy.get_default_pinned_memory_pool()
            if pinned.n_free_blocks() and not _captures(cupy):
                pinned.free_all_blocks()

    def read(self) -> Mapping[Quantity, int]:
        """Add up what is used and what is held."""
        cupy = _cupy()
        if cupy is None:
            return {}
        pools = _memory_pools(cupy)
        used = held = 0
        for device in _devices(cupy, pools):
            with _selected(cupy, device):
                used += sum(int(pool.used_bytes()) for pool in pools)
                held += sum(int(pool.total_bytes()) for pool in pools)
        for handle in _ordered_pools(cupy).values():
            used += _attribute(cupy, handle, "cudaMemPoolAttrUsedMemCurrent")
            held += _attribute(cupy, handle, "cudaMemPoolAttrReservedMemCurrent")
        return {USED: used, HELD: held, PINNED: _pinned_bytes(cupy)}


def _cupy() -> Any:
    """Return CuPy once its import is complete, or None."""
    cupy = sys.modules.get("cupy")
    return cupy if hasattr(cupy, "get_default_memory_pool") else None


def _memory_pools(cupy: Any) -> list[Any]:
    """Return the default pool, and the one behind the current allocator if that is another."""
    pools = [cupy.get_default_memory_pool()]
    current = _current_pool(cupy)
    if isinstance(current, cupy.cuda.MemoryPool) and current is not pools[0]:
        pools.append(current)
    return pools


def _current_pool(cupy: Any) -> Any:
    """Return what the current allocator is a method of, or None."""
    return getattr(cupy.cuda.get_allocator(), "__self__", None)


def _ordered_pools(cupy: Any) -> dict[int, int]:
    """Return the runtime's pools that the current allocator hands out of and that hold memory: handles by device."""
    current = _current_pool(cupy)
    if not isinstance(current, cupy.cuda.MemoryAsyncPool) or not current.memoryAsyncHasStat:
        return {}
    held = "cudaMemPoolAttrReservedMemCurrent"
    return {device: handle for device, handle in enumerate(current._pools) if _attribute(cupy, handle, held)}


def _attribute(cupy: Any, handle: int, name: str) -> int:
    """Return a number of bytes that the runtime keeps of a pool."""
    runtime = cupy.cuda.runtime
    return int(runtime.memPoolGetAttribute(handle, getattr(runtime, name)))


def _devices(cupy: Any, pools: Collection[Any]) -> list[int]:
    """Return the devices on which a pool was used.

    A pool has a part for each device, made when it is first used there: by its index in a tuple (CuPy 14), or by its
    key in a dictionary (12, 13). Python's garbage collector is who shows them.
    """
    found: set[int] = set()
    for pool in pools:
        for referent in gc.get_referents(pool):
            parts = dict(enumerate(referent)) if isinstance(referent, tuple) else referent
            if isinstance(parts, dict):
                part_type = cupy.cuda.memory.SingleDeviceMemoryPool
                found.update(device for device, part in parts.items() if isinstance(part, part_type))
    return sorted(found)


@contextlib.contextmanager
def _selected(cupy: Any, device: int) -> Iterator[None]:
    """Make a device the current one, if it is not already."""
    if cupy.cuda.runtime.getDevice() == device:
        yield
        return
    with cupy.cuda.Device(device):
        yield


def _captures(cupy: Any) -> bool:
    """Whether a capture is under way; the null stream answers with an error while a blocking stream captures."""
    is_capturing = cupy.cuda.runtime.streamIsCapturing
    try:
        return bool(is_capturing(0)) or bool(is_capturing(cupy.cuda.get_current_stream().ptr))
    except (cupy.cuda.runtime.CUDARuntimeError, RuntimeError):
        return True


def _pinned_bytes(cupy: Any) -> int:
    """Return the bytes of the blocks in use of the default pinned pool, which counts its free ones only.

    It keeps the blocks in use in a container of their own (a set in CuPy 14), which the garbage collector shows.
    """
    total = 0
    for referent in gc.get_referents(cupy.get_default_pinned_memory_pool()):
        if isinstance(referent, dict):
            blocks = list(referent.values())
        elif isinstance(referent, set):
            blocks = list(referent)
        else:
            continue
        total += sum(int(each.size) for each in blocks if isinstance(each, cupy.cuda.PinnedMemory))
    return total
