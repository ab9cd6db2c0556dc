"""How long kernels take to compile, as ratios of processor time within one process."""

from __future__ import annotations

import time

import pytest
from tests.kernels.compiling import compile_kernel, translate_kernel
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.ptx.module import Module

_BARRIERS = 96


@pytest.fixture(autouse=True)
def tuned() -> None:
    """Compile for single threads alone."""


def _exchange(step: int) -> str:
    """Return one step of a sort in shared memory: threads compare two words, and may exchange them."""
    return f"""
xor.b32 %r3, %r1, {1 << step % 9};
shl.b32 %r4, %r3, 2;
add.s32 %r5, %r6, %r4;
setp.gt.u32 %p1, %r3, %r1;
@!%p1 bra S{step};
ld.shared.u32 %r7, [%r5];
ld.shared.u32 %r8, [%r2];
setp.gt.u32 %p2, %r8, %r7;
@!%p2 bra S{step};
st.shared.u32 [%r5], %r8;
st.shared.u32 [%r2], %r7;
ld.global.u32 %r9, [%rd1];
st.global.u32 [%rd1+4], %r9;
S{step}:
bar.sync 0;
"""


def _seconds(module: Module, checks: bool) -> float:
    begun = time.process_time()
    compile_kernel(module, "k", checks=checks)
    return time.process_time() - begun


def _text(barriers: int) -> str:
    return f"""{HEADER}
.visible .entry k(.param .u64 a)
{{
.reg .pred %p<3>;
.reg .b32 %r<10>;
.reg .b64 %rd<2>;
.shared .align 4 .b8 s[4096];
ld.param.u64 %rd1, [a];
mov.u32 %r1, %tid.x;
mov.u32 %r6, s;
shl.b32 %r2, %r1, 2;
add.s32 %r2, %r2, %r6;
{"".join(map(_exchange, range(barriers)))}
ret;
}}
"""


def test_checks_of_a_long_kernel_take_some_times_as_long_as_the_kernel() -> None:
    module = Module(_text(_BARRIERS))
    compile_kernel(module, "k")  # LLVM is loaded
    assert _seconds(module, checks=True) < 6 * _seconds(module, checks=False)  # 2.5 times; 43 if LLVM begins again


@pytest.mark.parametrize(("tuned", "most"), [(False, 3), (True, 3.2)])
def test_checks_that_few_threads_come_to_are_calls(tuned: bool, most: float) -> None:
    """Those of threads that run one by one, and of loops for ranges that are wrong: LLVM takes long for many blocks."""
    with_checks, without = (
        translate_kernel(Module(_text(4)), "k", tuned=tuned, checks=checks).count("\nbr ") for checks in (True, False)
    )
    assert with_checks < most * without
