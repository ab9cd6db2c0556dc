"""Threads of a block that meet in shared memory and at barriers: what is found, and what looks like it and is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.program_rules import BARRIERS_END, THREADS_ORDERED
from quiesce.simulator.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

LAUNCH_FAILURE = 719
MakeDevice = Callable[..., Checked]


SHARED = ".shared .align 4 .b8 numbers[4096];\n"
OWN = "mov.u32 %r2, numbers;\nmad.lo.u32 %r2, %r1, 4, %r2;\nmov.u32 %r5, %ntid.x;\nsub.u32 %r3, %r5, %r1;\n"
MIRRORED = "sub.u32 %r3, %r3, 1;\nmov.u32 %r4, numbers;\nmad.lo.u32 %r4, %r3, 4, %r4;\n"
WRITE, READ_OTHER, WRITE_OTHER = (
    "st.shared.u32 [%r2], %r1;\n",
    "ld.shared.u32 %r6, [%r4];\n",
    "st.shared.u32 [%r4], %r1;\n",
)
BARRIER, WARP = "bar.sync 0;\n", "bar.warp.sync 0xFFFFFFFF;\n"


@pytest.mark.parametrize(
    ("block", "body", "races"),
    [
        (64, WRITE + READ_OTHER, True),
        (64, WRITE + BARRIER + READ_OTHER, False),
        (64, WRITE + BARRIER + READ_OTHER + WRITE, True),
        (64, WRITE + BARRIER + READ_OTHER + BARRIER + WRITE, False),
        (64, WRITE + WRITE_OTHER, True),
        (64, WRITE + BARRIER + WRITE_OTHER, False),
        (64, "st.shared.u32 [numbers], 1;\n", False),
        (64, "st.shared.u32 [numbers], %r1;\n", True),
        (64, "atom.shared.add.u32 %r6, [numbers], 1;\n", False),
        (32, WRITE + WARP + READ_OTHER, False),
        (32, WRITE + READ_OTHER, True),
        (64, WRITE + WARP + READ_OTHER, True),
        (64, WRITE + "bar.red.popc.u32 %r7, 0, %p1;\n" + READ_OTHER, False),
    ],
)
def test_threads_that_use_the_same_shared_memory(checked: MakeDevice, block: int, body: str, races: bool) -> None:
    given = checked()
    given.work(OWN + MIRRORED + "setp.eq.u32 %p1, %r1, 0;\n" + body, block=block, grid=2, before=SHARED)
    assert set(given.rules()) == ({THREADS_ORDERED} if races else set())


def test_a_race_names_both_threads(checked: MakeDevice) -> None:
    given = checked()
    given.work(OWN + MIRRORED + WRITE + BARRIER + READ_OTHER + WRITE, block=64, before=SHARED)
    finding = next(each for each in given.findings() if each.rule == THREADS_ORDERED)
    assert "which thread number 31 of the block uses without a barrier in between" in finding.observed
    assert "in thread (32, 0, 0) of block (0, 0, 0)" in finding.observed


def test_threads_that_wait_for_each_other_for_ever(checked: MakeDevice) -> None:
    given = checked()
    body = "setp.lt.u32 %p1, %r1, 8;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;\n"
    given.work(body, block=32, answer=LAUNCH_FAILURE)
    (finding,) = given.findings()
    assert finding.rule == BARRIERS_END
    assert "kernel 'work', block (0, 0, 0): its threads wait for each other for ever" in finding.observed
