"""Stalls on a real device: a stream waits until a word of host memory is no longer zero.

``cuStreamWaitValue32`` and ``hipStreamWaitValue32`` do this without a kernel and without a thread of the host, so a
stalled stream costs nothing and ends at a store. CuPy binds neither: they are called in the library that it has loaded.
Whether they work is tried once, because no attribute says so on every runtime.

A call that blocks the host behind a stall would block it for ever. So whoever may wait, explicitly or as
``cudaFree`` does implicitly, first opens the gates.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from quiesce.backends.cupy.ledger import Cupy
from quiesce.model.backend import Flavour

_WORD: Final = ctypes.c_uint32
_GREATER_OR_EQUAL: Final = 0  # CU_STREAM_WAIT_VALUE_GEQ, hipStreamWaitValueGte
_SIGNAL_MEMORY: Final = 2  # hipMallocSignalMemory: 8 bytes, and nothing else may be waited for (hipStreamWaitValue32)
_SIGNAL_BYTES: Final = 8
_SIGNALS: Final = 64
_EVERY_BIT: Final = _WORD(0xFFFFFFFF)
_MAPPED_AND_PORTABLE: Final = 3  # cudaHostAllocPortable | cudaHostAllocMapped


class Gate:
    """A word of host memory that a stream waits for."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.closed = True
        self._word = _WORD.from_address(address)
        self._word.value = 0

    def open(self) -> None:
        """Let the stream pass; opening twice is harmless."""
        if self.closed:
            self.closed = False
            self._word.value = 1


class Gatekeeper:
    """Puts gates on streams. Their words are allocated at once, because an allocation may wait for the device."""

    def __init__(self, runtime: Any, flavour: Flavour) -> None:
        self._runtime = runtime
        self._flavour = flavour
        self._library = _open_library(runtime, flavour)
        self._memory: list[int] = []
        self._words: list[int] = []
        self._gates: list[Gate] = []

    @property
    def is_used_up(self) -> bool:
        """Whether :meth:`recycle` has to come before the next gate."""
        return bool(self._memory) and not self._words

    def close_before(self, stream: int) -> Gate:
        """Put a closed gate on a stream, given by its handle. Raises :class:`OSError` where the runtime refuses."""
        if not self._memory:
            self._allocate()
        gate = Gate(self._words.pop())
        self._gates.append(gate)
        arguments = [ctypes.c_void_p(stream), ctypes.c_void_p(gate.address), _WORD(1), ctypes.c_uint(_GREATER_OR_EQUAL)]
        if self._flavour is Flavour.CUDA:
            status = self._library.cuStreamWaitValue32_v2(*arguments)
        else:
            status = self._library.hipStreamWaitValue32(*arguments, _EVERY_BIT)
        if status:
            gate.open()
            raise OSError(f"a stream cannot wait for a value (error {status})")
        return gate

    def recycle(self) -> None:
        """Use the words again. Every stream must have passed its gates."""
        self._words += [gate.address for gate in self._gates]
        self._gates.clear()

    def _allocate(self) -> None:
        if self._flavour is Flavour.CUDA:
            self._memory.append(int(self._runtime.hostAlloc(_SIGNALS * _SIGNAL_BYTES, _MAPPED_AND_PORTABLE)))
            self._words = [self._memory[0] + number * _SIGNAL_BYTES for number in range(_SIGNALS)]
            return
        for _ in range(_SIGNALS):
            address, size = ctypes.c_void_p(), ctypes.c_size_t(_SIGNAL_BYTES)
            status = self._library.hipExtMallocWithFlags(ctypes.byref(address), size, ctypes.c_uint(_SIGNAL_MEMORY))
            if status or not address.value:
                raise OSError(f"there is no signal memory (error {status})")
            self._memory.append(address.value)
        self._words = list(self._memory)

    def open_all(self) -> None:
        """Open every gate."""
        for gate in self._gates:
            gate.open()

    def close(self) -> None:
        """Give the words back. Every stream must have passed its gates."""
        free = self._runtime.freeHost if self._flavour is Flavour.CUDA else self._runtime.free
        for address in self._memory:
            free(address)
        self._memory.clear()
        self._words.clear()
        self._gates.clear()


def _open_library(runtime: Any, flavour: Flavour) -> ctypes.CDLL:
    """Return the library that CuPy itself has loaded: the name is enough, because the loader knows it already."""
    if flavour is Flavour.CUDA:
        return ctypes.CDLL("libcuda.so.1")
    return ctypes.CDLL(f"libamdhip64.so.{runtime.runtimeGetVersion() // 10_000_000}")


def can_stall(cupy: Cupy, flavour: Flavour) -> bool:
    """Try whether a stream waits behind a closed gate. It never blocks: the gate opens before anybody waits."""
    runtime = cupy.cuda.runtime
    try:
        gatekeeper = Gatekeeper(runtime, flavour)
        stream = cupy.cuda.Stream(non_blocking=True)
        try:
            gatekeeper.close_before(stream.ptr)
            return not stream.done
        finally:
            gatekeeper.open_all()
            stream.synchronize()
            gatekeeper.close()
    except (OSError, AttributeError, runtime.CUDARuntimeError):
        return False
