"""Kernels in which all threads of a block run together for a while, and each by itself where they part."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER

THREAD = "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %ctaid.x;\nmad.lo.u32 %r4, %r3, %r2, %r1;\n"
"""The number of the thread in its block in ``%r1``, and in the grid in ``%r4``."""


def kernel(body: str, parameters: str) -> Kernel:
    registers = ".reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n.reg .f32 %f<9>;\n.reg .pred %p<9>;\n"
    text = f"{HEADER}\n.visible .entry k({parameters})\n{{\n{registers}{THREAD}{body}\n}}\n"
    return Kernel(text, "k")


STRIDED = (
    "ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; ld.param.u64 %rd3, [stride]; ld.param.u32 %r5, [count];\n"
    "mov.u32 %r6, %nctaid.x;\nmul.lo.u32 %r7, %r6, %r2;\nsetp.ge.u32 %p1, %r4, %r5;\n@%p1 bra end;\n"
    "again:\ncvt.u64.u32 %rd4, %r4;\nmul.lo.u64 %rd5, %rd4, %rd3;\nadd.u64 %rd6, %rd1, %rd5;\n"
    "ld.global.u32 %r8, [%rd6];\nmul.lo.u32 %r8, %r8, 3;\nmul.wide.u32 %rd7, %r4, 4;\nadd.u64 %rd8, %rd2, %rd7;\n"
    "st.global.u32 [%rd8], %r8;\nadd.u32 %r4, %r4, %r7;\nsetp.lt.u32 %p2, %r4, %r5;\n@%p2 bra again;\nend:\nret;"
)


@pytest.mark.parametrize("count", [0, 1, 31, 64, 100, 129, 1000])
@pytest.mark.parametrize("stride", [4, 8, 12, -4])
def test_rounds_of_a_loop(count: int, stride: int) -> None:
    """The last round is that of some threads only; a stride is 4 bytes, or is not."""
    memory = np.arange(4000, dtype="u4")
    first = 2000 if stride < 0 else 0
    to = np.zeros(count + 1, "u4")
    k = kernel(STRIDED, ".param .u64 from, .param .u64 to, .param .u64 stride, .param .u32 count")
    k.launch(2, 32, memory[first:], to, np.int64(stride), np.uint32(count))
    expected = (first + np.arange(count) * (stride // 4)) * 3
    assert to[:-1].tolist() == expected.tolist()
    assert not to[-1]


SUM = (
    ".shared .align 4 .b8 cells[1024];\nld.param.u64 %rd1, [values]; ld.param.u64 %rd2, [sums];\n"
    "mul.wide.u32 %rd3, %r4, 4;\nadd.u64 %rd4, %rd1, %rd3;\nld.global.u32 %r5, [%rd4];\n"
    "mov.u64 %rd5, cells;\nmul.wide.u32 %rd6, %r1, 4;\nadd.u64 %rd7, %rd5, %rd6;\nst.shared.u32 [%rd7], %r5;\n"
    "shr.u32 %r6, %r2, 1;\n{begin}again:\nbar.sync 0;\nsetp.ge.u32 %p1, %r1, %r6;\n@%p1 bra skip;\n"
    "mul.wide.u32 %rd8, %r6, 4;\nadd.u64 %rd9, %rd7, %rd8;\nld.shared.u32 %r7, [%rd7];\nld.shared.u32 %r8, [%rd9];\n"
    "add.u32 %r9, %r7, %r8;\nst.shared.u32 [%rd7], %r9;\nskip:\nshr.u32 %r6, %r6, 1;\nsetp.ne.u32 %p2, %r6, 0;\n"
    "@%p2 bra again;\nsetp.ne.u32 %p3, %r1, 0;\n@%p3 bra end;\nld.shared.u32 %r10, [cells];\n"
    "mul.wide.u32 %rd10, %r3, 4;\nadd.u64 %rd11, %rd2, %rd10;\nst.global.u32 [%rd11], %r10;\nend:\nret;"
)


@pytest.mark.parametrize("block", [1, 2, 32, 128, 256])
def test_a_sum_with_barriers(block: int) -> None:
    values, sums = np.arange(3 * block, dtype="u4") ** 2, np.zeros(3, "u4")
    kernel(SUM.format(begin=""), ".param .u64 values, .param .u64 sums").launch(3, block, values, sums)
    assert sums.tolist() == values.reshape(3, block).sum(1).tolist()


def test_the_last_thread_ends_before_the_others() -> None:
    """What is the same for all threads is still known to those that go on."""
    values, sums = np.arange(65, dtype="u4"), np.zeros(1, "u4")
    begin = "sub.u32 %r11, %r2, 1;\nsetp.eq.u32 %p4, %r1, %r11;\n@%p4 ret;\n"
    kernel(SUM.format(begin=begin), ".param .u64 values, .param .u64 sums").launch(1, 65, values, sums)
    assert sums[0] == sum(range(64))


def test_the_last_thread_is_at_another_barrier() -> None:
    """One thread waits where the others do not: each goes on by itself, with what is the same for all."""
    out = np.zeros(64, "u4")
    body = (
        "ld.param.u64 %rd1, [out];\nmov.u32 %r5, 1;\nmov.u32 %r6, 0;\nagain:\nadd.u32 %r5, %r5, %r5;\n"
        "add.u32 %r6, %r6, 1;\nsetp.eq.u32 %p1, %r1, 63;\n@%p1 bra last;\nbar.sync 0;\nbra.uni joined;\n"
        "last:\nbar.sync 0;\njoined:\nsetp.lt.u32 %p2, %r6, 5;\n@%p2 bra again;\nmul.wide.u32 %rd2, %r1, 4;\n"
        "add.u64 %rd3, %rd1, %rd2;\nadd.u32 %r7, %r5, %r1;\nst.global.u32 [%rd3], %r7;\nret;"
    )
    kernel(body, ".param .u64 out").launch(1, 64, out)
    assert out.tolist() == [32 + number for number in range(64)]


def test_threads_part_and_come_together_again() -> None:
    """Each thread does as many rounds as its number says, between two barriers of all."""
    values, out = np.arange(64, dtype="u4") + 1, np.zeros(64, "u4")
    body = (
        ".shared .align 4 .b8 cells[256];\nld.param.u64 %rd1, [values]; ld.param.u64 %rd2, [out];\nmov.u32 %r5, 0;\n"
        "mov.u32 %r6, 0;\nmov.u64 %rd3, %rd1;\nagain:\nld.global.u32 %r7, [%rd3];\nadd.u32 %r6, %r6, %r7;\n"
        "add.u64 %rd3, %rd3, 4;\nadd.u32 %r5, %r5, 1;\nsetp.le.u32 %p1, %r5, %r1;\n@%p1 bra again;\n"
        "mov.u64 %rd4, cells;\nmul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd6, %rd4, %rd5;\nst.shared.u32 [%rd6], %r6;\n"
        "bar.sync 0;\nxor.b32 %r8, %r1, 63;\nmul.wide.u32 %rd7, %r8, 4;\nadd.u64 %rd8, %rd4, %rd7;\n"
        "ld.shared.u32 %r9, [%rd8];\nbar.sync 0;\nadd.u64 %rd9, %rd2, %rd5;\nst.global.u32 [%rd9], %r9;\nret;"
    )
    kernel(body, ".param .u64 values, .param .u64 out").launch(1, 64, values, out)
    assert out.tolist() == np.cumsum(values)[::-1].tolist()


@pytest.mark.parametrize("shape", [(8, 4), (4, 2, 3), (1, 16), (3, 5, 2)])
def test_blocks_of_several_dimensions(shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    out = np.zeros(3 * count, "u4")
    body = (
        ".shared .align 4 .b8 cells[4096];\nld.param.u64 %rd1, [out];\nmov.u32 %r5, %tid.y;\nmov.u32 %r6, %tid.z;\n"
        "mov.u32 %r7, %ntid.y;\nmad.lo.u32 %r8, %r6, %r7, %r5;\nmad.lo.u32 %r8, %r8, %r2, %r1;\n"
        "mov.u64 %rd2, cells;\nmul.wide.u32 %rd3, %r8, 4;\nadd.u64 %rd4, %rd2, %rd3;\n"
        "mad.lo.u32 %r9, %r6, 100, %r5;\nmad.lo.u32 %r9, %r9, 100, %r1;\nst.shared.u32 [%rd4], %r9;\nbar.sync 0;\n"
        "ld.shared.u32 %r10, [%rd4];\nmov.u32 %r11, %ntid.z;\nmul.lo.u32 %r12, %r2, %r7;\n"
        "mul.lo.u32 %r12, %r12, %r11;\nmad.lo.u32 %r13, %r3, %r12, %r8;\nmul.wide.u32 %rd5, %r13, 4;\n"
        "add.u64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], %r10;\nret;"
    )
    kernel(body, ".param .u64 out").launch(3, shape, out)
    x, y, z = (*shape, 1, 1)[:3]
    assert out.tolist() == 3 * [(k * 100 + j) * 100 + i for k in range(z) for j in range(y) for i in range(x)]


def test_atomics_between_barriers() -> None:
    out = np.zeros(2, "u4")
    body = (
        ".shared .align 4 .b8 cell[4];\nld.param.u64 %rd1, [out];\nmov.u32 %r5, 0;\nst.shared.u32 [cell], %r5;\n"
        "bar.sync 0;\natom.shared.add.u32 %r6, [cell], %r1;\nred.global.max.u32 [%rd1], %r1;\nbar.sync 0;\n"
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra end;\nld.shared.u32 %r7, [cell];\nst.global.u32 [%rd1+4], %r7;\nend:\nret;"
    )
    kernel(body, ".param .u64 out").launch(1, 100, out)
    assert out.tolist() == [99, sum(range(100))]


def test_warp_operations_between_barriers() -> None:
    """The operation is that of each thread; afterwards all are together at the barrier."""
    out = np.zeros(64, "u4")
    body = (
        ".shared .align 4 .b8 cells[256];\nld.param.u64 %rd1, [out];\nmul.lo.u32 %r5, %r1, 3;\nbar.sync 0;\n"
        "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\nmov.u64 %rd2, cells;\nmul.wide.u32 %rd3, %r1, 4;\n"
        "add.u64 %rd4, %rd2, %rd3;\nst.shared.u32 [%rd4], %r6;\nbar.sync 0;\nxor.b32 %r7, %r1, 32;\n"
        "mul.wide.u32 %rd5, %r7, 4;\nadd.u64 %rd6, %rd2, %rd5;\nld.shared.u32 %r8, [%rd6];\nadd.u64 %rd7, %rd1, %rd3;\n"
        "st.global.u32 [%rd7], %r8;\nret;"
    )
    kernel(body, ".param .u64 out").launch(1, 64, out)
    assert out.tolist() == [3 * ((number ^ 32) ^ 1) for number in range(64)]


def test_threads_that_part_and_compare_and_swap_in_a_loop() -> None:
    """In the first loop they do a round together; then some have more rounds, and each goes on by itself."""
    values, out = np.arange(1, 65, dtype="u4"), np.zeros(65, "u4")
    body = (
        "ld.param.u64 %rd1, [values]; ld.param.u64 %rd2, [out];\nmul.wide.u32 %rd3, %r1, 4;\n"
        "add.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\nmov.u32 %r5, 0;\nmov.u32 %r6, 0;\nagain:\n"
        "ld.global.u32 %r7, [%rd4];\n"
        "add.u32 %r6, %r6, %r7;\nadd.u32 %r5, %r5, 1;\nsetp.le.u32 %p1, %r5, %r1;\n@%p1 bra again;\n"
        "ld.global.u32 %r8, [%rd2+256];\nswap:\nadd.u32 %r9, %r8, 1;\natom.global.cas.b32 %r10, [%rd2+256], %r8, %r9;\n"
        "setp.ne.u32 %p2, %r10, %r8;\nmov.u32 %r8, %r10;\n@%p2 bra swap;\nadd.u32 %r11, %r11, 1;\n"
        "setp.lt.u32 %p3, %r11, 3;\n@%p3 bra swap;\nst.global.u32 [%rd5], %r6;\nret;"
    )
    kernel(body, ".param .u64 values, .param .u64 out").launch(1, 64, values, out)
    assert out[:64].tolist() == [(number + 1) ** 2 for number in range(64)]
    assert out[64] == 3 * 64
