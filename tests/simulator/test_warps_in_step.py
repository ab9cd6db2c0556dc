"""Kernels that leave out the barriers of a warp, as programs for older GPUs do: they compute as on hardware."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulator.kernel_programs import HEADER, INDEX, Device, entry

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

ROTATE = """
st.global.u32 [%rd1], %r3;
ld.param.u64 %rd2, [to];
and.b32 %r5, %r3, 31;
add.u32 %r6, %r5, 1;
and.b32 %r6, %r6, 31;
mul.wide.u32 %rd4, %r6, 4;
add.u64 %rd3, %rd2, %rd4;
mov.u32 %r7, 0;
OUTER:
mov.u32 %r8, 0;
INNER:
setp.ge.u32 %p1, %r8, %r5;
@%p1 bra NEXT;
add.u32 %r8, %r8, 1;
bra INNER;
NEXT:
ld.global.u32 %r9, [%rd3];
st.global.u32 [%rd1], %r9;
add.u32 %r7, %r7, 1;
setp.lt.u32 %p2, %r7, 3;
@%p2 bra OUTER;
"""
"""Three times each lane takes the word of the next one, after a loop of as many rounds as its number."""


def reduction(offsets: tuple[int, ...], space: str = ".volatile.shared") -> str:
    adds = "".join(
        f"ld{space}.u32 %r5, [%r4+{4 * offset}];\nld{space}.u32 %r6, [%r4];\n"
        f"add.u32 %r6, %r6, %r5;\nst{space}.u32 [%r4], %r6;\n"
        for offset in offsets
    )
    return (
        "mov.u32 %r7, numbers;\nshl.b32 %r4, %r3, 2;\nadd.u32 %r4, %r7, %r4;\nadd.u32 %r5, %r3, 1;\n"
        "st.shared.u32 [%r4], %r5;\nadd.u32 %r5, %r5, 32;\nst.shared.u32 [%r4+128], %r5;\nbar.sync 0;\n"
        f"{adds}ld.shared.u32 %r8, [%r4];\nst.global.u32 [%rd1], %r8;"
    )


def test_lanes_read_before_any_writes_and_meet_again_after_a_loop(device: Callable[..., Device]) -> None:
    assert device().run(ROTATE) == [(lane + 3) % 32 for lane in range(32)]


def test_each_warp_is_in_step_with_itself(device: Callable[..., Device]) -> None:
    body = ROTATE.replace("add.u64 %rd3, %rd2, %rd4;", "and.b32 %r9, %r3, -32;\nadd.u32 %r6, %r6, %r9;\n") + ""
    body = body.replace("mul.wide.u32 %rd4, %r6, 4;\n", "").replace(
        "mov.u32 %r7, 0;\n", "mul.wide.u32 %rd4, %r6, 4;\nadd.u64 %rd3, %rd2, %rd4;\nmov.u32 %r7, 0;\n", 1
    )
    expected = [warp * 32 + (lane + 3) % 32 for warp in range(3) for lane in range(32)]
    assert device().run(body, block=96, count=96) == expected


def test_the_last_warp_of_a_reduction_reads_volatile_memory(device: Callable[..., Device]) -> None:
    before = ".shared .align 4 .b8 numbers[384];\n"
    assert device().run(reduction((32, 16, 8, 4, 2, 1)), before=before)[0] == sum(range(1, 65))


def steps(body: str, before: str = "") -> int:
    from quiesce.simulator.kernels.ptx.module import Module
    from quiesce.simulator.kernels.translation.program import Program
    from quiesce.simulator.kernels.translation.warp_synchronous import with_steps

    start = INDEX + "ld.param.u64 %rd1, [to];\nadd.u64 %rd1, %rd1, %rd9;\n"
    text = HEADER + before + entry("work", ".param .u64 to", start + body)
    function = Program(Module(text)).parse("work")
    return len(with_steps(function).items) - len(function.items)


def test_other_kernels_have_no_steps() -> None:
    shared = ".shared .align 4 .b8 numbers[384];\n"
    assert steps(ROTATE) > 0
    assert steps(reduction((16, 8)), shared) > 0
    assert steps(reduction((16, 8), ".shared"), shared) == 0, "nothing says that it knows of warps"
    assert steps("and.b32 %r5, %r3, 31;\nst.global.u32 [%rd1], %r5;") == 0
    synchronised = "and.b32 %r5, %r3, 31;\nst.global.u32 [%rd1], %r5;\nbar.warp.sync -1;\nld.global.u32 %r6, [%rd1];"
    assert steps(synchronised) == 0
