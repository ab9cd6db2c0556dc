"""How much memory of a device the vendor's driver counts as in use: what there is on a real GPU, and coarse.

The figure is the whole device's. Other processes count, pools that the driver keeps in reserve, code that is loaded
when it is first called; small blocks share granules, of 2 MiB on current devices. So growth is told only where it never
falls, and is large against all that. A library is never loaded here, and on CUDA nothing initialised and no context
made: what the tested code has not begun to use is not looked at.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quiesce.leaks.quantities import FREE_MEMORY, BaseMeter, Meter, Quantity, Surroundings

CUDA: Final = ("libcuda.so.1",)
HIP: Final = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")

FLOOR_BYTES: Final = 64 << 10
"""Growth per round that is noise: a granule in 32 rounds."""

DEVICES_MAX: Final = 64


class _LoadedObject(ctypes.Structure):
    """``struct dl_phdr_info`` of link.h."""

    _fields_ = [
        ("address", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("loads", ctypes.c_ulonglong),
        ("unloads", ctypes.c_ulonglong),
    ]


_Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_LoadedObject), ctypes.c_size_t, ctypes.c_void_p)


class Loads:
    """Says whether a library was loaded since it was last asked: to look for one that is not there takes 20 us a name.

    Where the C library does not count loads (``dl_iterate_phdr`` of link.h), one may have been.
    """

    def __init__(self) -> None:
        self._iterate = getattr(ctypes.CDLL(None), "dl_iterate_phdr", None)
        self._visit = _Visit(self._count)
        self._seen = -1
        self._loads = 0

    def are_new(self) -> bool:
        """Return whether there are some."""
        if self._iterate is None:
            return True
        self._iterate(self._visit, None)
        before, self._seen = self._seen, self._loads
        return self._seen != before

    def _count(self, first: Any, _size: int, _data: Any) -> int:
        self._loads = first.contents.loads
        return 1  # each object says the same, so one is enough


class DriverMemoryMeter(BaseMeter):
    """Reads the driver's figures of devices on which the process has a context. ``cuda`` and ``hip`` name libraries."""

    family = FREE_MEMORY

    def __init__(self, cuda: tuple[str, ...] = CUDA, hip: tuple[str, ...] = HIP) -> None:
        self._names: tuple[tuple[str, type[_Cuda] | type[_Hip]], ...] = (
            *((name, _Cuda) for name in cuda),
            *((name, _Hip) for name in hip),
        )
        self._open = ctypes.CDLL(None).dlopen
        self._open.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self._open.restype = ctypes.c_void_p
        self._loads = Loads()
        self._driver: _Cuda | _Hip | None = None
        self._quantities: dict[int, Quantity] = {}

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Leave a simulated machine to its ledger, which counts exactly."""
        return () if surroundings.machine else (cls(),)

    def absent(self) -> str:
        """Say so as long as no driver is loaded."""
        return "" if self._loaded() is not None else "no driver of a GPU is loaded"

    def read(self) -> Mapping[Quantity, int]:
        """Return what is in use of each device."""
        driver = self._loaded()
        if driver is None:
            return {}
        return {self._quantity(device): used_bytes for device, used_bytes in driver.used_bytes().items()}

    def _quantity(self, device: int) -> Quantity:
        if device not in self._quantities:
            name = f"memory in use on device {device} (the GPU driver's figure)"
            self._quantities[device] = Quantity(FREE_MEMORY, name, floor=FLOOR_BYTES)
        return self._quantities[device]

    def _loaded(self) -> _Cuda | _Hip | None:
        if self._driver is None and self._loads.are_new():
            for name, kind in self._names:
                if handle := self._open(name.encode(), os.RTLD_NOLOAD | os.RTLD_LAZY):
                    self._driver = kind(ctypes.CDLL(name, handle=handle))
                    break
        return self._driver

    def origin(self, quantity: Quantity) -> str:
        """Say who knows the place."""
        return "the GPU driver does not say where; run the tests under quiesce exec to see the line"

    def evidence(self, quantity: Quantity) -> str:
        """Say what the figure is worth."""
        return "the GPU driver counts the whole device, with other processes and its own pools, in steps of about 2 MiB"


class _Library:
    """Calls functions whose status is 0 where they succeed."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._free, self._total = ctypes.c_size_t(), ctypes.c_size_t()
        self._device, self._count, self._flags, self._active = (ctypes.c_int() for _ in range(4))

    def _call(self, name: str, *arguments: Any) -> bool:
        status: int = getattr(self._library, name)(*arguments)
        return status == 0

    def _in_use(self, name: str) -> dict[int, int]:
        if not self._call(name, ctypes.byref(self._free), ctypes.byref(self._total)):
            return {}
        return {self._device.value: self._total.value - self._free.value}


class _Cuda(_Library):
    """CUDA's driver. A context that is current is asked as it is, primary contexts for as long as they are pushed."""

    def used_bytes(self) -> dict[int, int]:
        """Return what is in use of the devices with a context. Before ``cuInit`` there is none."""
        found: dict[int, int] = {}
        if self._call("cuCtxGetDevice", ctypes.byref(self._device)):
            found |= self._in_use("cuMemGetInfo_v2")
        if self._call("cuDeviceGetCount", ctypes.byref(self._count)):
            for device in range(min(self._count.value, DEVICES_MAX)):
                if device not in found and self._has_primary(device):
                    found |= self._of_primary(device)
        return found

    def _has_primary(self, device: int) -> bool:
        state = ctypes.byref(self._flags), ctypes.byref(self._active)
        return self._call("cuDevicePrimaryCtxGetState", device, *state) and bool(self._active.value)

    def _of_primary(self, device: int) -> dict[int, int]:
        context, popped = ctypes.c_void_p(), ctypes.c_void_p()
        self._device.value = device
        if not self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device):
            return {}
        try:
            if not self._call("cuCtxPushCurrent_v2", context):
                return {}
            try:
                return self._in_use("cuMemGetInfo_v2")
            finally:
                self._call("cuCtxPopCurrent_v2", ctypes.byref(popped))
        finally:
            self._call("cuDevicePrimaryCtxRelease_v2", device)


class _Hip(_Library):
    """HIP's runtime, which initialises itself with its first call: the current device, where a context is no more."""

    def used_bytes(self) -> dict[int, int]:
        """Return what is in use of the current device."""
        return self._in_use("hipMemGetInfo") if self._call("hipGetDevice", ctypes.byref(self._device)) else {}
