"""Atomic operations in shared memory that meet plain accesses: they race unless a barrier parts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import THREADS_ORDERED
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
BEFORE: Final = ".shared .align 8 .b8 n[8];\n.shared .align 4 .b8 m[64];\n"
FIRST = ".reg .b16 %h<4>;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.eq.u32 %p2, %r1, 40;\n"
FIRST += "mov.u64 %rd3, n;\ncvta.shared.u64 %rd3, %rd3;\n"
"""Thread 0, a thread of the second warp, and the generic address of ``n``."""
CLEAR, READ = "@%p1 st.shared.u32 [n], 0;\n", "@%p2 ld.shared.u32 %r3, [n];\n"
ADD, BLOCK, WARP = "red.shared.add.u32 [n], 1;\n", "bar.sync 0;\n", "bar.warp.sync -1;\n"
GUESS: Final = (
    "ld.shared.u32 %r3, [n];\nagain:\nadd.u32 %r4, %r3, %r1;\natom.shared.cas.b32 %r5, [n], %r3, %r4;\n"
    "setp.ne.u32 %p3, %r5, %r3;\nmov.u32 %r3, %r5;\n@%p3 bra again;\n"
)
"""An addition that atomicCAS makes: what was read first may be old."""
PREFILTER: Final = "ld.shared.u32 %r3, [n];\nsetp.le.u32 %p3, %r1, %r3;\n@!%p3 red.shared.max.u32 [n], %r1;\n"
OF_BLOCK = "a barrier of the block between the two accesses: __syncthreads()"
OF_WARP = "a barrier of the warp between the two accesses: __syncwarp()"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(CLEAR + BLOCK + ADD + BLOCK + READ, id="barriers"),
        pytest.param(ADD + ADD, id="atomics-alone"),
        pytest.param(CLEAR + BLOCK + GUESS + BLOCK + READ, id="guess"),
        pytest.param(CLEAR + BLOCK + PREFILTER + BLOCK + READ, id="prefilter"),
        pytest.param(CLEAR + BLOCK + ADD + "ld.volatile.shared.u32 %r3, [n];\n", id="volatile-read"),
        pytest.param(CLEAR + BLOCK + ADD + "ld.relaxed.cta.shared.u32 %r3, [n];\n", id="relaxed-read"),
        pytest.param(CLEAR + BLOCK + "red.add.u32 [%rd3], 1;\n" + BLOCK + "ld.u32 %r3, [%rd3];\n", id="generic"),
        pytest.param(
            CLEAR + BLOCK + "atom.shared.cas.b16 %h1, [n], %h2, %h3;\n@%p2 st.shared.u16 [n+2], 3;\n", id="16"
        ),
        pytest.param(
            "st.shared.u32 [n], 7;\n" + BLOCK + "atom.acquire.cta.shared.add.u32 %r3, [n], 1;\n" + READ, id="acquire"
        ),
    ],
)
def test_these_may_meet(checked: MakeDevice, body: str) -> None:
    given = checked()
    given.work(FIRST + body, block=64, grid=2, before=BEFORE)
    assert given.rules() == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(CLEAR + ADD, id="start"),
        pytest.param(CLEAR + BLOCK + ADD + READ, id="end"),
        pytest.param("@%p1 ld.shared.u32 %r3, [n];\n" + "@%p2 " + ADD, id="read-before"),
        pytest.param(ADD + CLEAR, id="cleared-after"),
        pytest.param(CLEAR + WARP + ADD, id="barrier-of-the-warp"),
        pytest.param(CLEAR + BLOCK + GUESS + READ, id="read-after-a-guess"),
        pytest.param(CLEAR + "red.shared.add.u64 [n], %rd3;\n", id="64-bits"),
        pytest.param(BLOCK + "red.shared.add.u64 [n], %rd3;\n@%p2 ld.shared.u32 %r3, [n+4];\n", id="half-of-64-bits"),
        pytest.param(CLEAR + "red.add.u32 [%rd3], 1;\n", id="generic-atomic"),
        pytest.param(ADD + "@%p1 st.u32 [%rd3], 0;\n", id="generic-write"),
        pytest.param("atom.shared.cas.b16 %h1, [n], %h2, %h3;\n@%p2 st.shared.u8 [n+1], 3;\n", id="a-byte"),
    ],
)
def test_these_race(checked: MakeDevice, body: str) -> None:
    given = checked()
    given.work(FIRST + body, block=64, before=BEFORE)
    (finding,) = given.findings()
    assert (finding.rule, finding.expected) == (THREADS_ORDERED, OF_BLOCK)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CLEAR + ADD, [OF_WARP]),
        (CLEAR + WARP + ADD, []),
        (CLEAR + WARP + ADD + "ld.shared.u32 %r3, [n];\n", [OF_WARP]),
        (CLEAR + WARP + ADD + WARP + "ld.shared.u32 %r3, [n];\n", []),
    ],
)
def test_lanes_of_a_warp(checked: MakeDevice, body: str, expected: list[str]) -> None:
    given = checked()
    given.work(FIRST + body, block=32, before=BEFORE)
    assert [each.expected for each in given.findings()] == expected


def test_a_finding_is_about_the_plain_access(checked: MakeDevice) -> None:
    given = checked()
    given.work(FIRST + CLEAR + ADD, block=64, before=BEFORE)
    (finding,) = given.findings()
    assert (
        "'work' writes 4 bytes at byte 0 of shared memory, in thread (0, 0, 0) of block (0, 0, 0), at '@%p1 st.shared"
        in (finding.observed)
    )
    assert "; thread (32, 0, 0) writes there at 'red.shared.add.u32 [n], 1' (line " in finding.observed
