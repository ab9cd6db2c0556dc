"""The kernels of these tests on a real GPU: ``QUIESCE_KERNELS_ON=cuda pytest tests/kernels -k usual``.

Then each expected result is held to a device, and with it what quiesce's own compiler is held to. Each launch has a
process of its own, because no other kernel runs in a process whose kernel failed.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from tests.kernels.executor import Deadlocked, Trapped, three

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS: Final = 60.0
INVALID_VALUE, JIT_LOG, JIT_LOG_BYTES = 1, 5, 6
LOG_BYTES: Final = 4096

Array = np.ndarray[Any, Any]


class Kernel:
    """One kernel, used as :class:`tests.kernels.executor.Kernel` is: arrays are passed by address."""

    def __init__(
        self, text: str, entry: str, variables: dict[str, Array] | None = None, checks: dict[str, Any] | None = None
    ) -> None:
        if checks is not None:
            pytest.skip("a device judges no accesses")
        self._text, self._entry, self._variables = text, entry, variables or {}

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"'{name}' is of the compiler")

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], *arguments: Any, dynamic_shared_bytes: int = 0
    ) -> None:
        """Run the kernel in a process, and bring back what it wrote to arrays and variables."""
        sizes = [*three(grid), *three(block), dynamic_shared_bytes]
        asked = pickle.dumps((self._text, self._entry, sizes, arguments, self._variables))
        command = [sys.executable, "-m", "tests.kernels.on_device"]
        try:
            run = subprocess.run(
                command, input=asked, capture_output=True, timeout=PATIENCE_SECONDS, check=False, cwd=ROOT
            )
        except subprocess.TimeoutExpired as late:
            raise Deadlocked from late
        if run.returncode:
            raise RuntimeError(run.stderr.decode(errors="replace"))
        status, written, variables = pickle.loads(run.stdout)
        if status:
            raise Trapped(status)
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray) and argument.ndim]
        for array, now in [*zip(arrays, written, strict=True), *((self._variables[n], now) for n, now in variables)]:
            if array.tobytes() != now.tobytes():
                array[...] = now


# -- the process of a launch -------------------------------------------------------------------------------------------


class _Device:
    """CUDA's driver with a context."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.ask("cuInit", 0)
        self.ask("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), 0, 0)

    def ask(self, function: str, *arguments: Any) -> None:
        status = getattr(self.library, function)(*arguments)
        if status:
            sys.exit(f"{function} answered {status}")

    def load(self, text: str) -> ctypes.c_void_p:
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
        options = (ctypes.c_int * 2)(JIT_LOG, JIT_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        load = self.library.cuModuleLoadDataEx
        status = load(ctypes.byref(module), text.encode() + b"\0", 2, options, values)
        if status:
            sys.exit(f"the driver answered {status}: {log.value.decode(errors='replace')}\n{text}")
        return module

    def put(self, array: Array, address: int | None = None) -> ctypes.c_uint64:
        """Bring an array to an address, or to new memory; return the address."""
        place = ctypes.c_uint64(address or 0)
        if address is None:
            self.ask("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(1, array.nbytes)))
        if array.nbytes:
            self.ask("cuMemcpyHtoD_v2", place, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return place

    def get(self, array: Array, place: ctypes.c_uint64) -> None:
        if array.nbytes:
            self.ask("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), place, ctypes.c_size_t(array.nbytes))

    def variable(self, module: ctypes.c_void_p, name: str) -> int | None:
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        find = self.library.cuModuleGetGlobal_v2
        return None if find(ctypes.byref(address), ctypes.byref(size), module, name.encode()) else address.value


def _run(asked: bytes) -> bytes:
    text, entry, sizes, arguments, given = pickle.loads(asked)
    device, function = _Device(), ctypes.c_void_p()
    module = device.load(text)
    device.ask("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
    arrays = [np.ascontiguousarray(each) if isinstance(each, np.ndarray) and each.ndim else None for each in arguments]
    places = [None if array is None else device.put(array) for array in arrays]
    found = {name: device.variable(module, name) for name in given}
    variables = {name: np.ascontiguousarray(given[name]) for name, address in found.items() if address}
    kept = [(variables[name], device.put(variables[name], found[name])) for name in variables]
    values = [
        np.array(argument) if place is None else np.array(place.value, "u8")
        for argument, place in zip(arguments, places, strict=True)
    ]
    pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
    status = device.library.cuLaunchKernel(function, *sizes, None, pointers, None)
    if status == INVALID_VALUE:
        sys.exit("the launch was refused")
    status = status or device.library.cuCtxSynchronize()
    if not status:
        written = [(array, place) for array, place in zip(arrays, places, strict=True) if array is not None and place]
        for array, place in [*written, *kept]:
            device.get(array, place)
    return pickle.dumps((status, [array for array in arrays if array is not None], [*variables.items()]))


if __name__ == "__main__":
    sys.stdout.buffer.write(_run(sys.stdin.buffer.read()))
