"""Machines whose kernels compute, and what is needed to launch kernels there."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.simulator.conftest import Client

HEADER: Final = ".version 8.0\n.target sm_80\n.address_size 64\n"
TO_DEVICE, TO_HOST = 1, 2
Size = int | tuple[int, int, int]


def entry(name: str, parameters: str, body: str) -> str:
    """Return a kernel with registers of each kind."""
    registers = ".reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<20>;\n"
    return f".visible .entry {name}({parameters})\n{{\n{registers}{body}\nret;\n}}\n"


INDEX: Final = (
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
    "mul.wide.u32 %rd9, %r1, 4;\n"
)
"""The number of the thread in ``%r1``, and the offset of its word in ``%rd9``."""

ADD: Final = entry(
    "add",
    ".param .u64 to, .param .u32 value, .param .u32 count",
    INDEX + "ld.param.u32 %r4, [count];\nsetp.ge.u32 %p1, %r1, %r4;\n@%p1 ret;\nld.param.u64 %rd1, [to];\n"
    "add.u64 %rd1, %rd1, %rd9;\nld.param.u32 %r5, [value];\nld.global.u32 %r6, [%rd1];\nadd.u32 %r6, %r6, %r5;\n"
    "st.global.u32 [%rd1], %r6;",
)
"""Adds a value to the first words."""


def _three(size: Size) -> tuple[int, int, int]:
    return (size, 1, 1) if isinstance(size, int) else size


class Device:
    """The first device of a machine: words in its memory, modules, launches through the driver."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.driver = client.machine.library
        client.ok("SetDevice", 0)

    def words(self, *values: int) -> int:
        """Return the address of words with these values."""
        address = self.client.make("Malloc", 4 * len(values))
        content = struct.pack(f"<{len(values)}I", *values)
        self.client.ok("Memcpy", address, content, 4 * len(values), TO_DEVICE)
        return address

    def read(self, address: int, count: int) -> list[int]:
        """Return words."""
        content = ctypes.create_string_buffer(4 * count)
        self.client.ok("Memcpy", ctypes.addressof(content), address, 4 * count, TO_HOST)
        return list(struct.unpack(f"<{count}I", content.raw))

    def module(self, text: str) -> ctypes.c_void_p:
        """Load a module."""
        made = ctypes.c_void_p()
        assert self.driver.cuModuleLoadData(ctypes.byref(made), (HEADER + text).encode()) == 0
        return made

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        """Return a function of a module."""
        made = ctypes.c_void_p()
        assert self.driver.cuModuleGetFunction(ctypes.byref(made), module, name.encode()) == 0
        return made

    def kernel(self, text: str, name: str) -> ctypes.c_void_p:
        """Return a function of a module of its own."""
        return self.function(self.module(text), name)

    def launch(
        self,
        function: ctypes.c_void_p,
        grid: Size,
        block: Size,
        *arguments: Any,
        stream: int = 0,
        shared_bytes: int = 0,
    ) -> int:
        """Launch, and return the status. Integers are passed with 32 bits, or 64 where they are addresses."""
        passed = [ctypes.c_uint64(each) if each >> 32 else ctypes.c_uint32(each) for each in arguments]
        sizes = (*_three(grid), *_three(block))
        return int(
            self.driver.cuLaunchKernel(
                function, *sizes, shared_bytes, ctypes.c_void_p(stream), pointers_to(passed), None
            )
        )

    def ok(self, function: ctypes.c_void_p, grid: Size, block: Size, *arguments: Any, **more: Any) -> None:
        """Launch, and expect that it succeeds."""
        assert self.launch(function, grid, block, *arguments, **more) == 0

    def run(self, body: str, *, block: Size = 32, grid: Size = 1, count: int = 32, before: str = "") -> list[int]:
        """Run a kernel whose threads have the address of their word in ``%rd1``; return the words."""
        start = INDEX + "ld.param.u64 %rd1, [to];\nadd.u64 %rd1, %rd1, %rd9;\n"
        to = self.words(*[0] * count)
        self.ok(self.kernel(before + entry("work", ".param .u64 to", start + body), "work"), grid, block, to)
        return self.read(to, count)


MakeDevice = Callable[..., Device]


def pointers_to(values: Sequence[Any]) -> Any:
    """Return the arguments of a launch."""
    made: Any = (ctypes.c_void_p * max(1, len(values)))()
    for number, value in enumerate(values):
        made[number] = ctypes.addressof(value)
    made.kept = values  # for as long as the array is
    return made
