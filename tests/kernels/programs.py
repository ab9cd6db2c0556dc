"""Kernels for tests, written around one instruction or a few: each thread works on one value of each source."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from tests.kernels.executor import Kernel

HEADER: Final = ".version 8.3\n.target sm_90\n.address_size 64\n"
THREADS_MAX: Final = 1024  # of a block, on every device
_FORMATS: Final = {"f32": "<f", "f64": "<d", "f16": "<e"}
Value = int | float
Source = tuple[str, Sequence[Value]]


def bits(type_: str, value: Value) -> int:
    """Return the bits of a value of a type; "
    "integers stand for themselves, also as the bits of numbers with a fraction."""
    width = width_of(type_)
    if isinstance(value, float):
        return int.from_bytes(struct.pack(_FORMATS[type_], value), "little")
    return int(value) & ((1 << width) - 1)


def number(type_: str, value: int) -> float:
    """Return the number that bits stand for."""
    return float(struct.unpack(_FORMATS[type_], value.to_bytes(width_of(type_) // 8, "little"))[0])


def width_of(type_: str) -> int:
    """Return how many bits a type has; a predicate is kept in 32."""
    if type_ == "pred":
        return 32
    return 32 if type_.endswith("x2") else int(type_.removeprefix("b").strip("usbf"))


def _declared(type_: str) -> str:
    return type_ if type_ == "pred" else f"b{max(16, width_of(type_))}"


def _load(register: str, number_: int, type_: str) -> str:
    width = width_of(type_)
    lines = f"ld.param.u64 %address, [p{number_}];\nmad.wide.u32 %address, %thread, {width // 8}, %address;\n"
    if type_ == "pred":
        return f"{lines}ld.global.u32 %word, [%address];\nsetp.ne.u32 {register}, %word, 0;\n"
    return f"{lines}ld.global.b{width} {register}, [%address];\n"


def _store(register: str, number_: int, type_: str) -> str:
    width = width_of(type_)
    lines = f"ld.param.u64 %address, [p{number_}];\nmad.wide.u32 %address, %thread, {width // 8}, %address;\n"
    if type_ == "pred":
        return f"{lines}selp.u32 %word, 1, 0, {register};\nst.global.u32 [%address], %word;\n"
    return f"{lines}st.global.b{width} [%address], {register};\n"


def kernel_around(instructions: str, sources: Sequence[str], results: Sequence[str], before: str = "") -> str:
    """Return a kernel with sources ``%a``, ``%b`` ... and results ``%x``, ``%y`` ... of these types."""
    names = [f"%{'abcdefgh'[place]}" for place in range(len(sources))] + [f"%{'xyzw'[n]}" for n in range(len(results))]
    types = [*sources, *results]
    parameters = ",\n".join(f".param .u64 p{place}" for place in range(len(types)))
    registers = "".join(f".reg .{_declared(type_)} {name};\n" for name, type_ in zip(names, types, strict=True))
    loads = "".join(_load(names[place], place, type_) for place, type_ in enumerate(sources))
    stores = "".join(_store(names[place], place, type_) for place, type_ in enumerate(types) if place >= len(sources))
    body = f"mov.u32 %thread, %tid.x;\n{loads}{instructions}\n{stores}ret;\n"
    return (
        f"{HEADER}{before}\n.visible .entry k(\n{parameters}\n)\n{{\n.reg .b32 %thread, %word;\n.reg .b64 %address;\n"
        f".reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .b16 %h<8>;\n.reg .pred %p<8>;\n{registers}{body}}}\n"
    )


def evaluate_all(
    instructions: str, sources: Sequence[Source], results: Sequence[str], before: str = ""
) -> list[list[int]]:
    """Run instructions for each value of the sources, and return the bits of each result."""
    count = max([len(values) for _, values in sources], default=1)
    text = kernel_around(instructions, [type_ for type_, _ in sources], results, before)
    arrays = [
        np.array([bits(type_, value) for value in values], f"u{width_of(type_) // 8}") for type_, values in sources
    ]
    assert all(len(array) == count for array in arrays)
    outputs = [np.zeros(count, f"u{width_of(type_) // 8}") for type_ in results]
    loaded = Kernel(text, "k")
    for start in range(0, count, THREADS_MAX):
        part = slice(start, start + THREADS_MAX)
        loaded.launch(1, min(count - start, THREADS_MAX), *(array[part] for array in (*arrays, *outputs)))
    return [[int(each) for each in output] for output in outputs]


def evaluate(instructions: str, *sources: Source, result: str, before: str = "") -> list[int]:
    """Run instructions for each value of the sources, and return the bits of the result ``%x``."""
    return evaluate_all(instructions, sources, [result], before)[0]


def every_pair(type_: str, values: Sequence[Value]) -> tuple[Source, Source]:
    """Return two sources that hold every pair of some values."""
    firsts = [first for first in values for _ in values]
    seconds = [second for _ in values for second in values]
    return (type_, firsts), (type_, seconds)


def plain_kernel(body: str, arrays: int, before: str = "") -> Kernel:
    """Return a kernel that gets so many addresses, as parameters ``p0``, ``p1`` ..."""
    parameters = ", ".join(f".param .u64 p{number}" for number in range(arrays))
    return Kernel(f"{HEADER}{before}\n.visible .entry k({parameters})\n{{\n{body}\nret;\n}}\n", "k")


_REGISTERS = (
    ".reg .pred %p<4>; .reg .b8 %b<4>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .b128 %q<4>;\n"
    ".shared .align 16 .b8 sh[64];\n"
)
_BEFORE = ".global .align 16 .b8 gl[64];\n.func fn() { ret; }\n"


def with_registers(lines: str) -> str:
    """Return a kernel with registers of every kind: ``%p``, ``%b``, ``%h``, ``%r``, ``%d`` and ``%q``."""
    return f"{HEADER}{_BEFORE}.visible .entry k(.param .u64 p)\n{{\n{_REGISTERS}{lines}\nret;\n}}\n"
