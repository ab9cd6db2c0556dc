"""Products of matrices that the threads of a warp hold together, against NumPy, and rows out of shared memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.kernels.programs import plain_kernel

Array = np.ndarray[Any, Any]
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "s8": 1, "u8": 1, "s32": 4}
_DTYPES = {"f16": "f2", "f32": "f4", "tf32": "f4", "f64": "f8", "s8": "i1", "u8": "u1", "s32": "i4"}


def _random(type_: str, rows: int, columns: int, seed: int) -> Array:
    """Return a matrix whose products are exact in every type that sums them up."""
    low = 0 if type_ == "u8" else -8
    values = np.random.default_rng(seed).integers(low, 9, (rows, columns))
    return values.astype(_DTYPES.get(type_, "f4"))


def _as_memory(matrix: Array, type_: str) -> Array:
    """Return a matrix as it lies in memory: bfloat is the upper half of a float."""
    return (matrix.view("u4") >> 16).astype("u2") if type_ == "bf16" else np.ascontiguousarray(matrix)


def _names(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{number}" for number in range(count)) + "}"


# -- mma, whose layouts the ISA draws ----------------------------------------------------------------------------------


def _place(which: str, m: int, type_: str, lane: int, index: int) -> tuple[int, int]:
    """Return the row and the column of an element that a thread has, from the figures of the ISA."""
    group, inside = lane >> 2, lane & 3
    if which == "c":
        return group + 8 * (index >= 2), inside * 2 + (index & 1)
    per = max(1, 4 // _BYTES[type_])
    block = index // per
    if which == "b":
        return inside * per + index % per + block * 4 * per, group
    if m == 8:
        return group, inside * per + index % per + block * 4 * per
    return group + 8 * (block & 1), inside * per + index % per + (block >> 1) * 4 * per


def _fragments(matrix: Array, which: str, m: int, type_: str) -> Array:
    """Return what each of 32 threads has of a matrix, as words."""
    count = matrix.size // 32
    memory = _as_memory(matrix, type_)
    elements = np.empty((32, count), memory.dtype)
    for lane in range(32):
        for index in range(count):
            elements[lane, index] = memory[_place(which, m, type_, lane, index)]
    return elements


MMA = [
    *(("f32", type_, type_, "f32", shape) for type_ in ("f16", "bf16") for shape in ("m16n8k8", "m16n8k16")),
    *(("f16", "f16", "f16", "f16", shape) for shape in ("m16n8k8", "m16n8k16")),
    *(("f32", "tf32", "tf32", "f32", shape) for shape in ("m16n8k4", "m16n8k8")),
    *(("f64", "f64", "f64", "f64", shape) for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *(("s32", type_, "s8", "s32", shape) for type_ in ("s8", "u8") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")),
]


@pytest.mark.parametrize(("result", "first", "second", "addend", "shape"), MMA)
def test_mma(result: str, first: str, second: str, addend: str, shape: str) -> None:
    m, n, k = map(int, re.findall(r"\d+", shape))
    a, b, c = _random(first, m, k, 1), _random(second, k, n, 2), _random(addend, m, n, 3)
    fragments = [
        _fragments(matrix, which, m, type_)
        for matrix, which, type_ in ((a, "a", first), (b, "b", second), (c, "c", addend))
    ]
    found = np.zeros((32, c.size // 32), _DTYPES[result])
    counts = [max(4, each.shape[1] * each.itemsize) // max(4, each.itemsize) for each in (*fragments, found)]
    bits = 64 if first == "f64" else 32
    lines = [f".reg .b{bits} %a<16>, %b<16>, %c<16>, %d<16>; .reg .b64 %at, %t; cvt.u64.u32 %t, %tid.x;"]
    for number, (name, count) in enumerate(zip("abc", counts, strict=False)):
        lines.append(f"ld.param.u64 %at, [p{number}]; mad.lo.u64 %at, %t, {count * bits // 8}, %at;")
        lines += [f"ld.global.b{bits} %{name}{word}, [%at+{word * bits // 8}];" for word in range(count)]
    kind = f"{result}.{first}.{second}.{addend}"
    regs = ", ".join(_names(name, count) for name, count in zip("dabc", (counts[3], *counts[:3]), strict=True))
    lines.append(f"mma.sync.aligned.{shape}.row.col.{kind} {regs};")
    lines.append(f"ld.param.u64 %at, [p3]; mad.lo.u64 %at, %t, {counts[3] * bits // 8}, %at;")
    lines += [f"st.global.b{bits} [%at+{word * bits // 8}], %d{word};" for word in range(counts[3])]
    plain_kernel("\n".join(lines), 4).launch(1, 32, *fragments, found)
    wide = "f8" if result != "s32" else "i8"
    expected = (a.astype(wide) @ b.astype(wide) + c.astype(wide)).astype(found.dtype)
    np.testing.assert_array_equal(found, _fragments(expected, "c", m, result))


# -- wmma, whose layout is ours ----------------------------------------------------------------------------------------

_REGISTERS = {"f16": (8, 8), "tf32": (4, 4), "f64": (1, 1)}
WMMA = [
    *(("f32", "f16", shape) for shape in ("m16n16k16", "m8n32k16", "m32n8k16")),
    *(("f32", "bf16", shape) for shape in ("m16n16k16", "m8n32k16", "m32n8k16")),
    *(("s32", "s8", shape) for shape in ("m16n16k16", "m8n32k16", "m32n8k16")),
    *(("s32", "u8", "m16n16k16"), ("f16", "f16", "m16n16k16"), ("f32", "tf32", "m16n16k8"), ("f64", "f64", "m8n8k4")),
]


@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize(("result", "type_", "shape"), WMMA)
def test_wmma(result: str, type_: str, shape: str, layout: str) -> None:
    m, n, k = map(int, re.findall(r"\d+", shape))
    a, b, c = _random(type_, m, k, 1), _random(type_, k, n, 2), _random(result, m, n, 3)
    counts = [max(1, size * _BYTES[type_] // 128) for size in (m * k, k * n)]
    if type_ in _REGISTERS:
        counts = list(_REGISTERS[type_])
    sums = m * n * _BYTES[result] // 32 // max(4, _BYTES[result])
    bits, sum_bits = max(32, 8 * _BYTES[type_]), max(32, 8 * _BYTES[result])
    other = "col" if layout == "row" else "row"
    kinds = f"{result}.{result}" if type_ == "f16" else f"{result}.{type_}.{type_}.{result}"
    strides = {"row": (k, n, n), "col": (m, k, m)}
    regs = [_names("a", counts[0]), _names("b", counts[1]), _names("c", sums), _names("d", sums)]
    lines = f"""
.reg .b{bits} %a<16>, %b<16>; .reg .b{sum_bits} %c<16>, %d<16>; .reg .b64 %at<4>;
ld.param.u64 %at0, [p0]; ld.param.u64 %at1, [p1]; ld.param.u64 %at2, [p2]; ld.param.u64 %at3, [p3];
wmma.load.a.sync.aligned.{layout}.{shape}.global.{type_} {regs[0]}, [%at0], {strides[layout][0]};
wmma.load.b.sync.aligned.{other}.{shape}.global.{type_} {regs[1]}, [%at1], {strides[other][1]};
wmma.load.c.sync.aligned.{layout}.{shape}.global.{result} {regs[2]}, [%at2], {strides[layout][2]};
wmma.mma.sync.aligned.{layout}.{other}.{shape}.{kinds} {regs[3]}, {regs[0]}, {regs[1]}, {regs[2]};
wmma.store.d.sync.aligned.row.{shape}.global.{result} [%at3], {regs[3]};
"""
    found = np.zeros((m, n), _DTYPES[result])
    memories = [
        _as_memory(matrix, kind) if order == "row" else np.asfortranarray(_as_memory(matrix, kind)).T.copy()
        for matrix, kind, order in ((a, type_, layout), (b, type_, other), (c, result, layout))
    ]
    plain_kernel(lines, 4).launch(1, 32, *memories, found)
    wide = "f8" if result != "s32" else "i8"
    expected = (a.astype(wide) @ b.astype(wide) + c.astype(wide)).astype(found.dtype)
    np.testing.assert_array_equal(found, expected)


def test_sums_that_do_not_fit_are_limited() -> None:
    lines = """
.reg .b32 %a<4>, %b<2>, %c<4>, %d<4>; .reg .b64 %at, %t; ld.param.u64 %at, [p0];
mov.b32 %a0, 0x7F7F7F7F; mov.b32 %c0, 0x7FFFFFF0;
mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%d0, %d1, %d2, %d3}, {%a0, %a0, %a0, %a0}, {%a0, %a0},
  {%c0, %c0, %c0, %c0};
st.global.u32 [%at], %d0;
"""
    found = np.zeros(1, "i4")
    plain_kernel(lines, 1).launch(1, 32, found)
    assert found[0] == 2**31 - 1


# -- rows out of shared memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("transposes", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_rows_come_and_go(count: int, transposes: bool) -> None:
    given = np.arange(count * 64, dtype="u2").reshape(count, 8, 8)
    found = np.zeros((32, count, 2), "u2")
    back = np.zeros_like(given)
    trans = ".trans" if transposes else ""
    registers = _names("v", count)
    lines = f"""
.shared .align 16 .b8 room[512]; .reg .b32 %v<4>, %t, %row, %word; .reg .b64 %at, %from;
mov.u32 %t, %tid.x; ld.param.u64 %at, [p0]; mad.wide.u32 %from, %t, 16, %at; mov.u32 %row, room;
mad.lo.u32 %row, %t, 16, %row; .reg .pred %p; setp.lt.u32 %p, %t, {8 * count}; .reg .b32 %w<4>;
@%p ld.global.v4.u32 {{%w0, %w1, %w2, %w3}}, [%from]; @%p st.shared.v4.u32 [%row], {{%w0, %w1, %w2, %w3}};
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {registers}, [%row];
ld.param.u64 %at, [p1]; mad.wide.u32 %at, %t, {4 * count}, %at;
{"".join(f"st.global.u32 [%at+{4 * n}], %v{n};" for n in range(count))}
bar.sync 0;
stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%row], {registers};
bar.sync 0;
ld.param.u64 %at, [p2]; mad.wide.u32 %from, %t, 16, %at;
@%p ld.shared.v4.u32 {{%w0, %w1, %w2, %w3}}, [%row]; @%p st.global.v4.u32 [%from], {{%w0, %w1, %w2, %w3}};
"""
    plain_kernel(lines, 3).launch(1, 32, given, found, back)
    source = given.transpose(0, 2, 1) if transposes else given
    for lane in range(32):
        row, column = lane // 4, lane % 4 * 2
        np.testing.assert_array_equal(found[lane], source[:, row, column : column + 2])
    np.testing.assert_array_equal(back, given)
