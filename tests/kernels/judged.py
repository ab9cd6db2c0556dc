"""A kernel whose accesses are judged, with what it asks the runtime, and what it tells it."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER
from tests.kernels.shadow import known_bits, touched_bits

SIZES: Final = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}
LOAD, STORE, CHANGE, COPY = (number << 8 for number in range(4))
SHARED, LOCAL = 1 << 12, 2 << 12


class Judged:
    """A kernel with what it asks: each access with its address, and the place that is answered in its place."""

    def __init__(self, body: str, parameters: str = ".param .u64 p", before: str = "") -> None:
        self.asked: list[tuple[int, int]] = []
        self.told: list[tuple[int, int]] = []
        self.nobodys = np.zeros(64, "u1")
        self.arrays: list[tuple[int, int]] = []
        self.copies: list[str] = []
        word, wide, place = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
        functions = {
            "quiesce_kernel_ranges": ctypes.CFUNCTYPE(word, place, place, word)(lambda *_: 0),
            "quiesce_kernel_check": ctypes.CFUNCTYPE(place, place, wide, word, word, word, place)(self._ask),
            "quiesce_kernel_check_any": ctypes.CFUNCTYPE(place, place, wide, word, word, word, place)(self._ask),
            "quiesce_kernel_shared": ctypes.CFUNCTYPE(None, place, wide, word, word, word)(self._tell),
            "quiesce_kernel_outside_local": ctypes.CFUNCTYPE(place, place, wide, word, word, word, wide, wide)(
                self._ask_for_local
            ),
            "quiesce_kernel_copies_commit": ctypes.CFUNCTYPE(None, place, word)(self._commit),
            "quiesce_kernel_copies_wait": ctypes.CFUNCTYPE(None, place, word, word)(self._wait),
            "quiesce_kernel_copy": ctypes.CFUNCTYPE(None, place, place, wide)(self._copy),
            "quiesce_kernel_check_copy": ctypes.CFUNCTYPE(place, place, wide, word, word, word, place, wide)(
                self._ask_for_copy
            ),
            "quiesce_kernel_barrier": ctypes.CFUNCTYPE(None, place)(lambda context: None),
            "quiesce_kernel_lanes": ctypes.CFUNCTYPE(None, place, *4 * [word])(lambda *_: None),
            "quiesce_kernel_line": ctypes.CFUNCTYPE(word, place, place, word, place)(lambda *_: 0),
        }
        registers = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<3>; .reg .pred %p<3>;"
        text = f"{HEADER}\n{before}.visible .entry k({parameters})\n{{\n{registers}\n{body}\nret;\n}}\n"
        self.kernel = Kernel(text, "k", checks=functions)
        self.kernel.places = {"checks": known_bits(), "touched": touched_bits()}

    def _ask(self, context: int, address: int, access: int, site: int, thread: int, frame: int | None) -> int:
        self.asked.append((address, access))
        return int(self.nobodys.ctypes.data)

    def _tell(self, context: int, address: int, access: int, site: int, thread: int) -> None:
        self.told.append((address - self._base(context), access))

    def _ask_for_local(
        self, context: int, address: int, access: int, site: int, thread: int, start: int, size: int
    ) -> int:
        self.asked.append((address, access))
        self.arrays.append((address - start, size))
        return int(self.nobodys.ctypes.data)

    def _commit(self, context: int, thread: int) -> None:
        self.copies.append(f"thread {thread} commits")

    def _wait(self, context: int, groups_left: int, thread: int) -> None:
        self.copies.append(f"thread {thread} waits until {groups_left} are left")

    def _copy(self, to: int, from_: int, size_bytes: int) -> None:
        self.copies.append(f"{size_bytes} bytes")
        ctypes.memmove(to, from_, size_bytes)

    def _ask_for_copy(
        self, context: int, address: int, access: int, site: int, thread: int, frame: int | None, size_bytes: int
    ) -> int:
        self.asked.append((address, access))
        self.copies.append(f"asks for {size_bytes} bytes")
        return address

    @staticmethod
    def _base(context: int) -> int:
        return ctypes.c_uint64.from_address(context + 40).value

    def run(self, *arguments: Any, threads: int = 1) -> list[tuple[int, int]]:
        """Run the kernel and return what it asked."""
        self.asked.clear()
        self.kernel.launch(1, threads, *arguments)
        return list(self.asked)
