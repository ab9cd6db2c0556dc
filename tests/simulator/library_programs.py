"""Machines on which functions of NVIDIA's libraries compute: arrays in device memory, calls by name."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from tests.simulator.checked_kernels import Checked
from tests.simulator.conftest import Start
from tests.simulator.kernel_programs import TO_DEVICE, TO_HOST

Array = NDArray[Any]


class Libraries(Checked):
    """A device with a handle of cuBLAS."""

    CREATE = "cublasCreate_v2"

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start, folder, options)
        self._kept: list[Any] = []
        self.blas = self.make(f"simulated_{self.CREATE}")

    def make(self, function: str, *arguments: int) -> int:
        """Return the handle that a function makes."""
        made = ctypes.c_void_p()
        assert getattr(self.driver, function)(ctypes.byref(made), *arguments) == 0
        return made.value or 0

    def put(self, values: Array, size_bytes: int = 0) -> int:
        """Return the address of a block of its own with these elements: columns, as the libraries have them."""
        content = np.asarray(values).tobytes("F")
        address = self.client.make("Malloc", max(1, size_bytes or len(content)))
        self.client.ok("Memcpy", address, content, len(content), TO_DEVICE)
        return address

    def room(self, size_bytes: int) -> int:
        """Return the address of a block that nobody has written."""
        return self.client.make("Malloc", size_bytes)

    def get(self, address: int, dtype: DTypeLike, *shape: int) -> Array:
        """Return elements, in columns."""
        made = np.empty(shape, dtype, "F")
        self.client.ok("Memcpy", made.ctypes.data, address, made.nbytes, TO_HOST)
        return made

    def host(self, *values: Any, dtype: DTypeLike = np.float32) -> int:
        """Return the address of elements in the host's memory."""
        made = np.asarray(values, dtype)
        self._kept.append(made)
        return int(made.ctypes.data)

    def call(self, function: str, *arguments: int | ctypes.c_float | ctypes.c_double) -> int:
        """Call a function that computes, with words of 64 bits; return its status."""
        passed = [ctypes.c_int64(each) if isinstance(each, int) else each for each in arguments]
        return int(getattr(self.driver, f"computed_{function}")(*passed))

    def setting(self, function: str, *arguments: int) -> None:
        """Set something of a handle."""
        passed = [ctypes.c_int64(each) for each in arguments]
        assert getattr(self.driver, f"simulated_{function}")(*passed) == 0

    def stream(self) -> int:
        """Return a stream that waits for no other."""
        return self.client.make("StreamCreateWithFlags", 1)

    def wait(self) -> None:
        """Wait for the device."""
        self.client.ok("DeviceSynchronize")

    def ok_blas(self, function: str, *arguments: int) -> None:
        """Call a function of cuBLAS with the handle, and expect that it succeeds."""
        assert self.call(f"cublas{function}", self.blas, *arguments) == 0

    def observed(self) -> str:
        """Return what the only finding says."""
        (finding,) = self.findings()
        return finding.observed
