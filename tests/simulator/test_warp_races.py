"""Lanes of a warp that meet in shared memory: only a barrier of the warp that both take part in orders the two."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import THREADS_ORDERED
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
BEFORE = ".shared .align 16 .b8 numbers[4096];\n"
SYNC = "bar.warp.sync -1;\n"
HALF = "setp.lt.u32 %p7, %r1, 16;\nselp.u32 %r10, 0xFFFF, 0xFFFF0000, %p7;\nbar.warp.sync %r10;\n"
"""``tile.sync()`` of the two halves of the warp."""
OWN = "mov.u32 %r9, numbers;\nmad.lo.u32 %r2, %r1, 4, %r9;\n"
WRITE = "st.shared.u32 [%r2], %r1;\n"
VALUES = (
    "shfl.sync.bfly.b32 %r11, %r1, 1, 0x1f, -1;\n",
    "vote.sync.ballot.b32 %r11, %p7, -1;\n",
    "match.any.sync.b32 %r11, %r1, -1;\n",
    "redux.sync.add.u32 %r11, %r1, -1;\n",
)
"""What lanes do together that orders no memory."""


def other(distance: int, space: str = "") -> str:
    """Return a read of the word of another lane."""
    return f"xor.b32 %r3, %r1, {distance};\nmad.lo.u32 %r4, %r3, 4, %r9;\nld{space}.shared.u32 %r6, [%r4];\n"


def pair(mask: int) -> str:
    """Return a barrier for the lanes of a mask, which the others go past."""
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    first, last = lanes[0], lanes[-1]
    return (
        f"sub.u32 %r12, %r1, {first};\nsetp.gt.u32 %p6, %r12, {last - first};\n@%p6 bra P{mask};\n"
        f"bar.warp.sync {mask};\nP{mask}:\n"
    )


ONE_TO_TWO = "setp.ne.u32 %p5, %r1, 2;\n@%p5 ret;\nld.shared.u32 %r6, [%r9];\n"
"""Lane 2 reads the word of lane 0."""


@pytest.mark.parametrize(
    ("body", "races"),
    [
        pytest.param(WRITE + other(1), True, id="read-after-write"),
        pytest.param(other(1) + WRITE, True, id="write-after-read"),
        pytest.param(WRITE + SYNC + other(1) + WRITE, True, id="second-barrier-missing"),
        pytest.param("st.shared.u32 [numbers], %r1;\n", True, id="one-word-other-values"),
        pytest.param(WRITE + HALF + other(16), True, id="barrier-of-other-lanes"),
        pytest.param(WRITE + pair(0b11) + ONE_TO_TWO, True, id="pair-without-the-reader"),
        *(pytest.param(WRITE + each + other(1), True, id=each.split(".")[0]) for each in VALUES),
        *(pytest.param(other(1) + each + WRITE, False, id=f"{each.split('.')[0]}-after-the-read") for each in VALUES),
        pytest.param(WRITE + SYNC + other(1), False, id="barrier"),
        pytest.param(WRITE + SYNC + other(1) + SYNC + WRITE, False, id="two-barriers"),
        pytest.param(WRITE + HALF + other(8), False, id="barrier-of-a-tile"),
        pytest.param(WRITE + pair(0b11) + pair(0b110) + ONE_TO_TWO, False, id="one-pair-after-another"),
        pytest.param(WRITE + "bar.sync 0;\n" + other(1), False, id="barrier-of-the-block"),
        pytest.param("st.shared.u32 [numbers], 7;\n", False, id="one-word-one-value"),
        pytest.param("atom.shared.add.u32 %r6, [numbers], 1;\n", False, id="atomics"),
        pytest.param(
            "st.volatile.shared.u32 [%r2], %r1;\n" + SYNC + other(1, ".volatile"), False, id="volatile-and-barrier"
        ),
        pytest.param("".join(VALUES), False, id="values-by-registers"),
        pytest.param(WRITE + "ld.shared.u32 %r6, [%r2];\n", False, id="own-word"),
    ],
)
def test_lanes_that_use_the_same_shared_memory(checked: MakeDevice, body: str, races: bool) -> None:
    given = checked()
    given.work(OWN + body, block=32, before=BEFORE)
    assert set(given.rules()) == ({THREADS_ORDERED} if races else set())


def test_a_race_of_lanes_says_what_to_write(checked: MakeDevice) -> None:
    given = checked()
    given.work(OWN + WRITE + other(1), block=(64), before=BEFORE)
    (finding,) = given.findings()
    assert finding.expected == "a barrier of the warp between the two accesses: __syncwarp()"
    assert "kernel 'work' reads 4 bytes at byte 4 of shared memory, in thread (0, 0, 0) of block" in finding.observed
    assert "; thread (1, 0, 0) writes there at 'st.shared.u32 [%r2], %r1' (line " in finding.observed
    assert finding.observed.endswith(". Both threads are in one warp, and no barrier of the warp is in between")


def test_lanes_that_store_a_matrix_and_read_it(checked: MakeDevice) -> None:
    store = (
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [numbers], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, 16;\n"
    )
    given = checked()
    given.work(OWN + store + SYNC + other(0), block=32, before=BEFORE)
    assert given.rules() == []
    given.work(OWN + store + other(0), block=32, before=BEFORE)
    assert given.rules() == [THREADS_ORDERED]
