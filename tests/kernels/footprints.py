"""Decides by the runtime's own code, in the process of the tests, whether blocks of a launch run at the same time."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from quiesce.simulator.kernels.footprints.table import footprints
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.runtime.build import SOURCES, find_compiler

FIRST: Final = 1 << 40
ROOM: Final = 1 << 32
"""Each allocation of a test has so many bytes, and lies after the one before it."""
_Variable: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
_Find: Final = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)
)


class _Launch(ctypes.Structure):
    _fields_ = (
        ("table", ctypes.POINTER(ctypes.c_int64)),
        ("parameters", ctypes.c_char_p),
        ("parameter_bytes", ctypes.c_uint32),
        ("grid", ctypes.POINTER(ctypes.c_uint32)),
        ("block", ctypes.POINTER(ctypes.c_uint32)),
        ("variable", _Variable),
        ("of", ctypes.c_void_p),
        ("find", _Find),
    )


@cache
def _library() -> Any:
    library = Path(tempfile.mkdtemp(prefix="quiesce-footprints-")) / "footprints.so"
    sources = [str(each) for each in sorted((SOURCES / "kernels").glob("footprint*.c"))]
    flags = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}")
    subprocess.run([*find_compiler(), *flags, *sources, "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.alone_in_words.restype = ctypes.c_char_p
    return loaded


@dataclass(frozen=True)
class Memory:
    """A pointer: the number of its allocation, from 0 on, and how far into it."""

    number: int
    offset: int = 0

    @property
    def address(self) -> int:
        return FIRST + ROOM * self.number + self.offset


def why_alone(
    ptx: str, kernel: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Memory | int]
) -> str:
    """Return why blocks of a launch run one after another, in words; nothing where they need not."""
    program = Program(Module(ptx))
    function = program.parse(kernel)
    table = footprints(program, function)
    parameters = bytearray(max((each.offset + each.bytes for each in function.parameters), default=0))
    for each, value in zip(function.parameters, arguments, strict=True):
        number = (value.address if isinstance(value, Memory) else value) % (1 << 8 * each.bytes)
        parameters[each.offset : each.offset + each.bytes] = number.to_bytes(each.bytes, "little")
    known = {each.number for each in arguments if isinstance(each, Memory)}

    def find(address: int, start: Any, bytes_: Any) -> bool:
        number = (address - FIRST) // ROOM
        start[0], bytes_[0] = (FIRST + ROOM * number) % (1 << 64), ROOM
        return number in known

    three = ctypes.c_uint32 * 3
    launch = _Launch(
        (ctypes.c_int64 * len(table))(*table),
        bytes(parameters),
        len(parameters),
        three(*grid),
        three(*block),
        _Variable(lambda _of, _number: 0),
        None,
        _Find(find),
    )
    words: bytes = _library().alone_in_words(_library().footprints_judge(ctypes.byref(launch)))
    return words.decode()
