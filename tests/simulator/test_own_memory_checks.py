"""Accesses of kernels to local memory and to the device's heap: by how much they miss which array or block."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import KERNELS_INSIDE, KERNELS_INSIDE_LOCAL
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]


@pytest.mark.parametrize("waits", ["", "bar.sync 0;\n"])
def test_local_memory(checked: MakeDevice, waits: str) -> None:
    given = checked()
    body = (
        f".local .align 8 .b8 own[64];\n{waits}mov.u64 %rd1, own;\nst.local.u32 [%rd1], 5;\n"
        "ld.local.u32 %r2, [%rd1+60];\ncvta.local.u64 %rd2, %rd1;\nst.u32 [%rd2+8], 5;\n"
    )
    given.work(body)
    assert given.rules() == []
    given.work(body + "ld.local.u32 %r2, [%rd1+68];")
    (finding,) = given.findings()
    assert finding.rule == KERNELS_INSIDE_LOCAL
    assert ", 4 bytes after the end of a local array of 64 bytes, in thread (0, 0, 0)" in finding.observed


def test_of_two_local_arrays_the_nearest_is_named(checked: MakeDevice) -> None:
    given = checked()
    given.work(".local .align 8 .b8 long[64];\n.local .align 8 .b8 short[8];\nst.local.u32 [short+4], 5;")
    assert given.rules() == []
    given.work(".local .align 8 .b8 long[640];\n.local .align 8 .b8 short[8];\nld.local.u32 %r2, [long+4000];")
    given.work(".local .align 8 .b8 long[640];\n.local .align 8 .b8 short[8];\nld.local.u32 %r2, [short+-4000];")
    arrays = [finding.observed.partition(" a local array of ")[2].partition(",")[0] for finding in given.findings()]
    assert len(arrays) == 2
    assert set(arrays) <= {"640 bytes", "8 bytes"}


def test_local_memory_of_another_thread(checked: MakeDevice) -> None:
    given = checked()
    body = (
        ".local .align 8 .b8 own[64];\nmov.u64 %rd1, own;\ncvta.local.u64 %rd1, %rd1;\nst.u32 [%rd1], 5;\n"
        "setp.eq.u32 %p1, %r1, 3;\n@%p1 st.shared.u64 [room], %rd1;\nbar.sync 0;\n"
        "setp.eq.u32 %p1, %r1, 1;\n@%p1 ld.shared.u64 %rd1, [room];\nld.u32 %r2, [%rd1];\n"
    )
    given.work(body, block=4, before=".shared .align 8 .b64 room;\n")
    (finding,) = given.findings()
    assert ", which is local memory of another thread, in thread (1, 0, 0) of block (0, 0, 0)" in finding.observed
    assert finding.observed.endswith("; it is that of thread (3, 0, 0)")


def test_memory_that_a_kernel_allocated(checked: MakeDevice) -> None:
    given = checked()
    before = ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n"
    body = (
        "{ .param .b64 a; .param .b64 b; st.param.b64 [a], 16; call.uni (b), malloc, (a); ld.param.b64 %rd1, [b]; }\n"
        "st.u32 [%rd1+12], 5;\nld.u32 %r2, [%rd1+12];"
    )
    given.work(body, before=before)
    assert given.rules() == []
    given.work(body + "st.u32 [%rd1+20], 5;", before=before)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_INSIDE
    assert (
        ", 4 bytes after the end of a block of 16 bytes of the device's heap, in thread (0, 0, 0)" in finding.observed
    )
    assert "; kernel 'work' allocated it in thread (0, 0, 0) of block (0, 0, 0), at 'call.uni (b), " in finding.observed
