"""First values of variables: numbers, and addresses of variables and functions."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.initialisers import with_initial_kernel
from quiesce.simulator.kernels.ptx.module import Module


def first_value(declaration: str, bytes_: int, **others: np.ndarray[Any, Any]) -> bytes:
    """Return what a variable ``v`` holds at first; ``others`` are variables that it has addresses of."""
    module, name = with_initial_kernel(Module(HEADER + declaration), "v")
    memory = np.zeros(bytes_, "u1")
    Kernel(module.text, name, {"v": memory, **others}).launch(1, 1)
    return memory.tobytes()


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (".global .align 4 .u32 v = 7;", struct.pack("<I", 7)),
        (".const .align 8 .s64 v = -3;", struct.pack("<q", -3)),
        (".global .align 4 .f32 v[3] = {1.5, -2.0, 3};", struct.pack("<3f", 1.5, -2, 3)),
        (".global .f64 v[2] = {0d3FF8000000000000, -0.25};", struct.pack("<2d", 1.5, -0.25)),
        (".global .f32 v = 0f3F800000;", struct.pack("<f", 1)),
        (".global .b32 v = 0f3F800000;", struct.pack("<f", 1)),
        (".global .u8 v[4] = {1, 2};", bytes([1, 2, 0, 0])),
        (".global .u16 v[2][3] = {{1}, {2, 3}};", struct.pack("<6H", 1, 0, 0, 2, 3, 0)),
        (".global .v2 .u32 v[2] = {{1, 2}, {3, 4}};", struct.pack("<4I", 1, 2, 3, 4)),
        (".global .v4 .f32 v = {1.0, 2.0, 3.0, 4.0};", struct.pack("<4f", 1, 2, 3, 4)),
        (".global .u32 a = 1, v = 9, b = {2};", struct.pack("<I", 9)),
        (".global .u64 v[2];", bytes(16)),
    ],
)
def test_numbers(declaration: str, expected: bytes) -> None:
    assert first_value(declaration, len(expected)) == expected


def test_addresses_of_variables() -> None:
    other = np.zeros(16, "u1")
    at = other.ctypes.data
    text = ".global .b8 other[16];\n.global .u64 v[4] = {generic(other), generic(other)+4, other+8, 0};"
    assert first_value(text, 32, other=other) == struct.pack("<4Q", at, at + 4, at + 8, 0)
    bytes_ = "{" + ", ".join(f"0x{255 << 8 * n:X}(generic(other)+4)" for n in range(8)) + "}"
    text = f".global .b8 other[16];\n.global .u8 v[8] = {bytes_};"
    assert first_value(text, 8, other=other) == struct.pack("<Q", at + 4)


def test_addresses_of_functions_can_be_called() -> None:
    functions = (
        ".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; add.u32 %a, %a, %a; "
        "st.param.b32 [r], %a; ret; }\n.extern .func absent();\n.global .u64 v[3] = {0, twice, absent};\n"
    )
    text = HEADER + functions
    module, name = with_initial_kernel(Module(text), "v")
    table, found = np.ones(3, "u8"), np.zeros(1, "u4")
    filled = Kernel(module.text, name, {"v": table})
    filled.launch(1, 1)
    assert table[0] == 1, "what is 0 is not written: memory is 0 before"
    assert table[1] > 1
    assert table[2] == 1
    caller = (
        ".visible .entry k(.param .u64 out) { .reg .b64 %f, %o; .reg .b32 %x; mov.u64 %o, v; "
        "ld.global.u64 %f, [%o+8];\n{ .param .b32 in; .param .b32 back; st.param.b32 [in], 21; "
        "p: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "call (back), %f, (in), p; ld.param.b32 %x, [back]; } ld.param.u64 %o, [out]; st.global.u32 [%o], %x; ret; }\n"
    )
    Kernel(text + caller, "k", {"v": table}).launch(1, 1, found)
    assert found[0] == 42


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        (".global .u32 v[] = {1};", "no size"),
        (".global .u32 v[2] = {1, 2, 3};", "too many values"),
        (".global .u32 v = {{{{{{{{{{{1}}}}}}}}}}};", "too many values"),
        (".global .f16 v = 0.5;", "no number of its type"),
        (".global .u32 v = 1 + 2;", "a first value is not understood"),
        (".global .u64 v = nothing;", "there is no 'nothing'"),
        (".global .u64 v = 0xF0(generic(v));", "a mask is no byte"),
        (".global .u64 w = 1;", "there is no variable 'v'"),
        (".visible .entry v() { ret; }", "there is no variable 'v'"),
    ],
)
def test_first_values_that_are_refused(declaration: str, reason: str) -> None:
    with pytest.raises(RefusedKernel) as refused:
        first_value(declaration, 8)
    assert reason in str(refused.value)
