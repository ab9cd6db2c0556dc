"""What PyTorch, RMM and JAX say of memory in use, if the tested code has loaded them; nothing here ever imports one.

- PyTorch: ``torch.cuda.memory_allocated``, by device (docs.pytorch.org, "CUDA semantics", memory management).
- RMM: the bytes of ``rmm.statistics``, as soon as the tested code has enabled them (docs.rapids.ai, "rmm.statistics").
- JAX: the bytes of ``jax.live_arrays()``, once it has initialised a backend, on processors as well.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any, Final

from quiesce.leaks.library_meter import LibraryMeter
from quiesce.leaks.quantities import JAX, RMM, TORCH, Quantity

RMM_BYTES: Final = Quantity(RMM, "memory allocated from RMM")
JAX_BYTES: Final = Quantity(JAX, "memory of JAX's live arrays")


class TorchMeter(LibraryMeter):
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


class RmmMeter(LibraryMeter):
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


class JaxMeter(LibraryMeter):
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
