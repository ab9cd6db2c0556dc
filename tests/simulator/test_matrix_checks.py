"""Accesses of kernels whose threads load and store matrices together."""

from __future__ import annotations

import pytest
from tests.simulator.test_kernel_checks import MakeDevice

from quiesce.model.program_rules import KERNELS_INSIDE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

FRAGMENT = "{%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}"
ROWS = (
    ".shared .align 16 .b8 rows[128];\nmov.u32 %r2, rows;\nmad.lo.u32 %r2, %r1, 16, %r2;\nsetp.ge.u32 %p1, %r1, 8;\n"
    "@%p1 mov.u32 %r2, 0x7FFFFFF0;\n{}\nbar.sync 0;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r3}}, [%r2];\n"
    "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r3;"
)


def test_each_element_of_a_matrix_is_judged(checked: MakeDevice) -> None:
    given = checked()
    whole, short = given.words(*[0] * 128), given.words(*[0] * 100)
    body = f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {FRAGMENT}, [%rd1], 16;\nst.global.u32 [%rd1], %r2;"
    given.work(body, whole, block=32)
    assert given.rules() == []
    given.work(body, short, block=32)
    assert given.rules() == [KERNELS_INSIDE]


def test_threads_that_name_no_row_may_have_any_address(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(*[0] * 32)
    given.work(ROWS.format(""), words, block=32)
    assert given.rules() == []
    given.work(ROWS.format("add.u32 %r2, %r2, 64;"), words, block=32)
    assert given.rules() == ["kernels_stay_inside_shared_memory"]
