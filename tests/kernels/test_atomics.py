"""Atomic operations and fences."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from tests.kernels.executor import Kernel
from tests.kernels.programs import bits, plain_kernel
from tests.kernels.test_memory import kernel

OPERATIONS: Final = [
    ("add.u32", 5, 7, 12),
    ("add.u32", 0xFFFFFFFF, 2, 1),
    ("add.u64", 1 << 40, 1, (1 << 40) + 1),
    ("add.f32", bits("f32", 1.5), bits("f32", 2.0), bits("f32", 3.5)),
    ("add.f64", bits("f64", 1.5), bits("f64", 2.0), bits("f64", 3.5)),
    ("add.noftz.f16", 0x3C00, 0x4000, 0x4200),
    ("add.noftz.f16x2", 0x3C004000, 0x3C003C00, 0x40004200),
    ("add.noftz.bf16", 0x3F80, 0x4000, 0x4040),
    ("exch.b32", 5, 7, 7),
    ("exch.b64", 5, 7, 7),
    ("min.u32", 5, 0xFFFFFFFF, 5),
    ("min.s32", 5, 0xFFFFFFFF, 0xFFFFFFFF),
    ("max.s64", 5, (1 << 64) - 1, 5),
    ("max.u64", 5, (1 << 64) - 1, (1 << 64) - 1),
    ("inc.u32", 5, 7, 6),
    ("inc.u32", 7, 7, 0),
    ("dec.u32", 0, 7, 7),
    ("dec.u32", 9, 7, 7),
    ("dec.u32", 3, 7, 2),
    ("and.b32", 6, 3, 2),
    ("or.b64", 6, 3, 7),
    ("xor.b32", 6, 3, 5),
]


@pytest.mark.parametrize(("name", "before", "value", "after"), OPERATIONS)
def test_old_and_new_values(name: str, before: int, value: int, after: int) -> None:
    width = 16 if name.endswith("f16") else 64 if name.endswith("64") else 32
    register = {16: "%h1", 32: "%r1", 64: "%rd3"}[width]
    other = {16: "%h2", 32: "%r2", 64: "%rd4"}[width]
    text = kernel(
        f"ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [old];\nld.global.b{width} {other}, [%rd1+{width // 8}];\n"
        f"atom.relaxed.gpu.global.{name} {register}, [%rd1], {other};\nst.global.b{width} [%rd2], {register};\n"
        f"{'atom.global' if name.startswith('exch') else 'red.global'}.{name} "
        f"{f'{register}, ' if name.startswith('exch') else ''}[%rd1+{width // 4}], {other};",
        ".param .u64 out, .param .u64 old",
    )
    memory, old = np.array([before, value, before], f"u{width // 8}"), np.zeros(1, f"u{width // 8}")
    Kernel(text, "k").launch(1, 1, memory, old)
    assert [int(each) for each in memory] == [after, value, after]
    assert int(old[0]) == before


SHARED_OPERATIONS: Final = [
    *OPERATIONS,
    *(("cas.b32", before, 5, after) for before, after in ((5, 9), (6, 6))),
    *(("cas.b64", before, 5, after) for before, after in ((5, 9), (1 << 40, 1 << 40))),
    ("min.s64", 5, (1 << 64) - 7, (1 << 64) - 7),
    ("max.u32", 0x80000000, 7, 0x80000000),
    ("max.s32", 0x80000000, 7, 7),
    ("min.u64", 1 << 63, 7, 7),
]


@pytest.mark.parametrize(("name", "before", "value", "after"), SHARED_OPERATIONS)
def test_old_and_new_values_in_shared_memory(name: str, before: int, value: int, after: int) -> None:
    """They need no lock of the processor, and so are other instructions."""
    width = 16 if name.endswith("f16") else 64 if name.endswith("64") else 32
    first, second, third = {16: ("%h1", "%h2", "%h3"), 32: ("%r1", "%r2", "%r3"), 64: ("%rd3", "%rd4", "%rd5")}[width]
    wanted = ", 9" if name.startswith("cas") else ""
    text = kernel(
        f".shared .align 8 .b8 cell[8];\nld.param.u64 %rd1, [out];\nld.global.b{width} {first}, [%rd1];\n"
        f"ld.global.b{width} {second}, [%rd1+{width // 8}];\nst.shared.b{width} [cell], {first};\n"
        f"atom.shared.acq_rel.cta.{name} {third}, [cell], {second}{wanted};\nld.shared.b{width} {first}, [cell];\n"
        f"st.global.b{width} [%rd1], {first};\nst.global.b{width} [%rd1+{width // 8}], {third};",
        ".param .u64 out",
    )
    memory = np.array([before, value], f"u{width // 8}")
    Kernel(text, "k").launch(1, 1, memory)
    assert [int(each) for each in memory] == [after, before]


def test_each_thread_of_a_block_gets_a_number() -> None:
    text = kernel(
        ".shared .u32 next;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
        "add.u64 %rd1, %rd1, %rd2;\natom.shared.inc.u32 %r2, [next], 1000;\nst.global.u32 [%rd1], %r2;",
        ".param .u64 out",
    )
    numbers = np.zeros(53, "u4")
    Kernel(text, "k").launch(1, 53, numbers)
    assert sorted(numbers) == list(range(53))


@pytest.mark.parametrize("width", [16, 32, 64])
def test_comparing_and_swapping(width: int) -> None:
    register = {16: "%h1", 32: "%r1", 64: "%rd3"}[width]
    text = kernel(
        "ld.param.u64 %rd1, [out];\n"
        f"atom.global.acq_rel.sys.cas.b{width} {register}, [%rd1], 5, 9;\n"
        f"st.global.b{width} [%rd1+{width // 4}], {register};\n"
        f"atom.cas.b{width} {register}, [%rd1+{width // 8}], 5, 9;\n"
        f"st.global.b{width} [%rd1+{3 * width // 8}], {register};"
    )
    memory = np.array([5, 6, 0, 0], f"u{width // 8}")
    Kernel(text, "k").launch(1, 1, memory)
    assert memory.tolist() == [9, 6, 5, 6]


def test_all_threads_of_all_blocks_count() -> None:
    text = kernel(
        "ld.param.u64 %rd1, [out];\natom.global.add.u32 %r1, [%rd1], 1;\nred.shared.add.u32 [0], 1;\n"
        "fence.acq_rel.gpu;\nmembar.gl;"
    )
    text = text.replace(".reg .b32", ".shared .b32 s;\n.reg .b32", 1).replace("[0]", "[s]")
    out = np.zeros(1, "u4")
    Kernel(text, "k").launch((3, 2), (8, 4), out)
    assert out.tolist() == [3 * 2 * 8 * 4]


@pytest.mark.parametrize("order", ["volatile", "relaxed.gpu", "acquire.sys", "weak"])
def test_ordered_accesses(order: str) -> None:
    stored = order.replace("acquire", "release")
    text = kernel(
        f"ld.param.u64 %rd1, [out];\nld.{order}.global.u32 %r1, [%rd1];\nst.{stored}.global.u32 [%rd1+4], %r1;"
    )
    out = np.array([7, 0], "u4")
    Kernel(text, "k").launch(1, 1, out)
    assert out.tolist() == [7, 7]


def test_vectors_change_element_by_element() -> None:
    memory, old = np.arange(8, dtype="f4"), np.zeros(4, "f4")
    lines = """
.reg .f32 %f<8>; .reg .b64 %at, %to; ld.param.u64 %at, [p0]; ld.param.u64 %to, [p1]; mov.f32 %f4, 0f3F000000;
atom.relaxed.gpu.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%at+16], {%f4, %f4, %f4, %f4};
red.relaxed.gpu.global.add.v2.f32 [%at], {%f4, %f4};
st.global.v4.f32 [%to], {%f0, %f1, %f2, %f3};
"""
    plain_kernel(lines, 2).launch(1, 1, memory, old)
    assert old.tolist() == [4, 5, 6, 7]
    assert memory.tolist() == [0.5, 1.5, 2, 3, 4.5, 5.5, 6.5, 7.5]


def test_halves_side_by_side_become_the_greater_ones() -> None:
    memory = np.array([1, -2, 3, -4], "f2")
    lines = """
.reg .b32 %v<4>; .reg .b64 %at; ld.param.u64 %at, [p0]; mov.b32 %v0, 0x40003C00;
atom.relaxed.gpu.global.max.noftz.v2.f16x2 {%v1, %v2}, [%at], {%v0, %v0};
"""
    plain_kernel(lines, 1).launch(1, 1, memory)
    assert memory.tolist() == [1, 2, 3, 2]


def test_sixteen_bytes_at_once() -> None:
    memory = np.zeros(4, "u8")
    at = memory[1:] if memory.ctypes.data % 16 else memory
    lines = """
.reg .b128 %q<4>; .reg .b64 %at, %d<4>; ld.param.u64 %at, [p0]; mov.u64 %d0, 7; mov.u64 %d1, 8; mov.u64 %d2, 0;
mov.b128 %q0, {%d0, %d1}; mov.b128 %q1, {%d2, %d2};
atom.global.cas.b128 %q2, [%at], %q1, %q0;
atom.global.cas.b128 %q2, [%at], %q1, %q1;
atom.global.exch.b128 %q3, [%at], %q2;
"""
    plain_kernel(lines, 1).launch(1, 1, at)
    assert at[:2].tolist() == [7, 8]
