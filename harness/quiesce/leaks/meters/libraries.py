"""What CuPy, PyTorch, RMM and JAX say of memory in use, if the tested code has loaded them; none is imported here.

Objects of Python are what keeps the memory, and have a place.

- CuPy: its memory pools. A ``MemoryAsyncPool`` hands out of pools of the runtime, which belong to the device and may be
  others' as well: they are asked by handle, as the pool itself does, and their memory is added to that of CuPy's own
  pools. Only pools that have been used on a device are looked at there: to select a device may create a context on it
  (CUDA 12: ``cudaSetDevice``), which the tested code may never have wanted.
- PyTorch: ``torch.cuda.memory_allocated``, by device (docs.pytorch.org, "CUDA semantics", memory management).
- RMM: the bytes of ``rmm.statistics``, as soon as the tested code has enabled them (docs.rapids.ai, "rmm.statistics").
- JAX: the bytes of ``jax.live_arrays()``, once it has initialised a backend, on processors as well.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from quiesce.leaks.quantities import CUPY, JAX, RMM, TORCH, BaseMeter, Quantity

USED: Final = Quantity(CUPY, "memory in use of CuPy's pools")
HELD: Final = Quantity(CUPY, "memory that CuPy's pools can't give back")
PINNED: Final = Quantity(CUPY, "pinned memory from CuPy's pool that is still in use")


class CupyMeter(BaseMeter):
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


RMM_BYTES: Final = Quantity(RMM, "memory allocated from RMM")
JAX_BYTES: Final = Quantity(JAX, "memory of JAX's live arrays")


class TorchMeter(BaseMeter):
    """Reads PyTorch's allocator on each device where it has reserved memory, and has it give back what it caches."""

    family = TORCH

    def __init__(self) -> None:
        self._quantities: dict[int, Quantity] = {}

    def absent(self) -> str:
        """Say so as long as PyTorch uses no GPU."""
        return "" if _torch_cuda() is not None else "PyTorch uses no GPU"

    def settle(self) -> None:
        """Wait for the devices and empty the cache.

        During a capture both would be illegal. A device in error has nothing more to wait for.
        """
        cuda = _torch_cuda()
        if cuda is None:
            return
        with contextlib.suppress(RuntimeError):
            if cuda.is_current_stream_capturing():
                return
            for device in _torch_devices(cuda):
                cuda.synchronize(device)
            cuda.empty_cache()

    def read(self) -> Mapping[Quantity, int]:
        """Return what is allocated of each device."""
        cuda = _torch_cuda()
        if cuda is None:
            return {}
        devices = {*self._quantities, *_torch_devices(cuda)}
        return {self._quantity(device): int(cuda.memory_allocated(device)) for device in sorted(devices)}

    def _quantity(self, device: int) -> Quantity:
        if device not in self._quantities:
            self._quantities[device] = Quantity(TORCH, f"memory allocated by PyTorch on device {device}")
        return self._quantities[device]


def _torch_cuda() -> Any:
    """Return ``torch.cuda`` once it is initialised, or None."""
    cuda = sys.modules.get("torch.cuda")
    is_initialized = getattr(cuda, "is_initialized", None)
    return cuda if is_initialized is not None and hasattr(cuda, "memory_reserved") and is_initialized() else None


def _torch_devices(cuda: Any) -> list[int]:
    """Return the devices of which PyTorch has reserved memory. To ask makes no context."""
    return [device for device in range(cuda.device_count()) if cuda.memory_reserved(device)]


class RmmMeter(BaseMeter):
    """Reads RMM's statistics. Without them RMM does not say how much it handed out."""

    family = RMM

    def absent(self) -> str:
        """Say so as long as there are no statistics."""
        if "rmm" not in sys.modules:
            return "RMM is not loaded"
        return "" if _rmm_statistics() is not None else "RMM counts nothing before rmm.statistics.enable_statistics()"

    def read(self) -> Mapping[Quantity, int]:
        """Return what was allocated and not given back."""
        statistics = _rmm_statistics()
        return {} if statistics is None else {RMM_BYTES: int(statistics.current_bytes)}


def _rmm_statistics() -> Any:
    read = getattr(sys.modules.get("rmm.statistics"), "get_statistics", None)
    return None if read is None else read()


class JaxMeter(BaseMeter):
    """Adds up JAX's arrays. What JAX itself caches are compiled functions, and no arrays."""

    family = JAX

    def absent(self) -> str:
        """Say so as long as JAX has no backend: to ask for arrays would start one."""
        return "" if _jax() is not None else "JAX has not begun to compute"

    def read(self) -> Mapping[Quantity, int]:
        """Return the bytes of all arrays."""
        jax = _jax()
        return {} if jax is None else {JAX_BYTES: sum(int(array.nbytes) for array in jax.live_arrays())}


def _jax() -> Any:
    """Return JAX once it has initialised a backend, or None."""
    jax = sys.modules.get("jax")
    has_begun = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    return jax if has_begun is not None and hasattr(jax, "live_arrays") and has_begun() else None
