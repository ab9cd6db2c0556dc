"""Asynchronous copies to shared memory: what they write is used only after a wait, and a barrier for other threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import COPIES_AWAITED, THREADS_ORDERED
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
THREADS: Final = 64
BEFORE: Final = ".shared .align 16 .b8 room[4096];\n"
START: Final = (
    "mov.u32 %r9, room;\nmad.lo.u32 %r2, %r1, 16, %r9;\nxor.b32 %r3, %r1, 33;\nmad.lo.u32 %r4, %r3, 16, %r9;\n"
    "mad.wide.u32 %rd2, %r1, 16, %rd1;\n"
)
COPY: Final = "cp.async.cg.shared.global [%r2], [%rd2], 16;\n"
SECOND: Final = "cp.async.ca.shared.global [%r2+2048], [%rd2], 8;\n"
ZEROS: Final = "cp.async.ca.shared.global [%r2], [%rd2], 16, 0;\n"
COMMIT, WAIT, WAIT_ALL = "cp.async.commit_group;\n", "cp.async.wait_group 0;\n", "cp.async.wait_all;\n"
BARRIER: Final = "bar.sync 0;\n"
READ, READ_OTHER = "ld.shared.u32 %r6, [%r2+4];\n", "ld.shared.u32 %r6, [%r4];\n"
READ_SECOND: Final = "ld.shared.u32 %r6, [%r2+2052];\n"
STAGES: Final = (
    f"mov.u32 %r12, 0;\n{COPY}{COMMIT}LOOP:\n{SECOND}{COMMIT}cp.async.wait_group 1;\n{BARRIER}{READ_OTHER}{BARRIER}"
    f"{COPY}{COMMIT}cp.async.wait_group 1;\n{BARRIER}ld.shared.u32 %r6, [%r4+2048];\n%s"
    "add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p1, %r12, 3;\n@%p1 bra LOOP;\n"
)
"""A loop that copies what it reads in the next round."""


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        pytest.param(COPY + READ, COPIES_AWAITED, id="no-wait"),
        pytest.param(COPY + COMMIT + BARRIER + READ_OTHER, COPIES_AWAITED, id="barrier-alone"),
        pytest.param(COPY + WAIT + READ, COPIES_AWAITED, id="not-in-a-group"),
        pytest.param(COPY + COMMIT + "cp.async.wait_group 1;\n" + READ, COPIES_AWAITED, id="last-group-left-out"),
        pytest.param(COPY + COMMIT + "st.shared.u32 [%r2], 1;\n", COPIES_AWAITED, id="overwritten"),
        pytest.param(ZEROS + COMMIT + READ, COPIES_AWAITED, id="zeros"),
        pytest.param(COPY + COMMIT + WAIT + READ_OTHER, THREADS_ORDERED, id="no-barrier"),
        pytest.param(READ_OTHER + COPY + COMMIT + WAIT, THREADS_ORDERED, id="copied-while-others-read"),
        pytest.param(STAGES.replace("%s", ""), THREADS_ORDERED, id="stages-without-the-last-barrier"),
        pytest.param(COPY + COMMIT + WAIT + READ, None, id="own"),
        pytest.param(COPY + WAIT_ALL + READ, None, id="wait-all"),
        pytest.param(COPY + COMMIT + WAIT + BARRIER + READ_OTHER, None, id="others"),
        pytest.param(
            COPY + COMMIT + SECOND + COMMIT + "cp.async.wait_group 1;\n" + READ + WAIT + READ_SECOND, None, id="groups"
        ),
        pytest.param(STAGES.replace("%s", BARRIER), None, id="stages"),
        pytest.param(COPY + COMMIT + READ_SECOND, None, id="elsewhere"),
        pytest.param("st.shared.u32 [%r2], 1;\n" + COPY + COMMIT + WAIT + READ, None, id="written-before"),
    ],
)
def test_what_is_copied_is_used_after_a_wait(checked: MakeDevice, body: str, rule: str | None) -> None:
    given = checked()
    words = given.words(*range(4 * THREADS))
    given.work(START + body, words, block=THREADS, grid=2, before=BEFORE)
    found = given.rules()
    assert rule in found if rule else not found


def test_an_early_use_names_the_copy(checked: MakeDevice) -> None:
    given = checked()
    given.work(START + COPY + COMMIT + BARRIER + READ_OTHER, given.words(*range(256)), block=THREADS, before=BEFORE)
    (finding,) = given.findings()
    assert "kernel 'work' reads 4 bytes at byte 528 of shared memory, in thread (0, 0, 0) of block" in finding.observed
    assert "; thread (33, 0, 0) copies there at 'cp.async.cg.shared.global [%r2], [%rd2], 16'" in finding.observed
    assert finding.observed.endswith(", and has not waited for the copy")


def test_more_copies_than_are_kept_count_as_done(checked: MakeDevice) -> None:
    given = checked()
    copies = (
        "mov.u32 %r12, 0;\nLOOP:\n" + COPY + "add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p1, %r12, 600;\n@%p1 bra LOOP;\n"
    )
    given.work(START + copies + WAIT_ALL + READ, given.words(*range(256)), block=THREADS, before=BEFORE)
    assert given.rules() == []
