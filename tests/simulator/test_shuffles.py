"""Shuffles that take a value from a lane which takes no part: found where the value is used, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import LANES_TAKE_PART
from quiesce.model.rules import Kind
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
BEGIN: Final = (
    "add.u32 %r2, %r1, 100;\nmul.wide.u32 %rd9, %r1, 4;\nadd.u64 %rd2, %rd1, %rd9;\n"
    "setp.ge.u32 %p1, %r1, 16;\nsetp.ne.u32 %p2, %r1, 0;\n@%p1 bra end;\n"
)
"""A value and a place for each thread, in the lower half of the warp."""
HALF, ALL = "0xFFFF", "-1"
STORE: Final = "st.global.u32 [%rd2], %r3;\n"
END: Final = "end:\n"


def shuffle(form: str, mask: str = HALF, source: str = "%r2", target: str = "%r3") -> str:
    """Return a shuffle: ``form`` has the mode and the lane."""
    mode, lane = form.split()
    return f"shfl.sync.{mode}.b32 {target}, {source}, {lane}, {0 if mode == 'up' else 31}, {mask};\n"


def sum_of_lanes(operation: str, mask: str, first: int) -> str:
    """Return a reduction over the lanes above; thread 0 writes its result."""
    steps = [first >> number for number in range(5) if first >> number]
    rounds = "".join(f"{shuffle(f'down {step}', mask)}{operation} %r2, %r2, %r3;\n" for step in steps)
    return f"{rounds}@%p2 bra end;\nst.global.u32 [%rd2], %r2;\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(shuffle("idx 20") + STORE, id="outside-the-mask"),
        pytest.param(shuffle("idx 20", ALL) + STORE, id="ended"),
        pytest.param(shuffle("bfly 16") + "add.u32 %r3, %r3, %r2;\n" + STORE, id="sum-with-the-other-half"),
        pytest.param(shuffle("down 4") + STORE, id="last-lanes"),
        pytest.param(shuffle("idx 20") + "mul.lo.u32 %r3, %r3, 3;\n" + STORE, id="product"),
        pytest.param(shuffle("idx 20") + "setp.gt.u32 %p3, %r3, 7;\n@%p3 bra end;\n" + STORE, id="branch"),
        pytest.param(
            shuffle("idx 20") + "and.b32 %r3, %r3, 3;\nmul.wide.u32 %rd3, %r3, 4;\nadd.u64 %rd3, %rd1, %rd3;\n"
            "ld.global.u32 %r4, [%rd3];\n",
            id="address",
        ),
    ],
)
def test_values_that_are_used(checked: MakeDevice, body: str) -> None:
    given = checked()
    given.work(BEGIN + body + END, given.words(*range(32)), block=32)
    assert [each.rule for each in given.findings()] == [LANES_TAKE_PART]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(shuffle("idx 15") + STORE, id="takes-part"),
        pytest.param(shuffle("idx 20"), id="unused"),
        pytest.param(sum_of_lanes("add.u32", HALF, 8), id="sum-of-half-a-warp"),
        pytest.param(sum_of_lanes("max.u32", HALF, 8), id="maximum-of-half-a-warp"),
        pytest.param(sum_of_lanes("add.u32", ALL, 16), id="sum-of-a-tail"),
        pytest.param(shuffle("down 4") + "add.u32 %r3, %r2, %r3;\n" + STORE, id="sum-of-last-lanes"),
        pytest.param(
            shuffle("down 4") + "setp.lt.u32 %p3, %r1, 12;\n@!%p3 bra end;\n" + STORE, id="last-lanes-are-left-out"
        ),
        pytest.param(
            shuffle("down 4") + "setp.lt.u32 %p3, %r1, 12;\nselp.u32 %r3, %r3, %r2, %p3;\n" + STORE, id="selected"
        ),
        pytest.param(shuffle("idx 20") + "mov.u32 %r3, 5;\n" + STORE, id="replaced"),
    ],
)
def test_values_that_nobody_uses(checked: MakeDevice, body: str) -> None:
    given = checked()
    given.work(BEGIN + body + END, given.words(*range(32)), block=32)
    assert given.rules() == []


def test_devices_give_zero(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(*range(32))
    given.work(BEGIN + shuffle("idx 20") + STORE + END, words, block=32)
    assert given.read(words, 32) == [0] * 16 + list(range(16, 32))


@pytest.mark.parametrize(
    ("block", "form", "mask", "why"),
    [
        (32, "idx 20", HALF, "lane 20 of the warp, which the mask of the shuffle leaves out, in"),
        (32, "idx 20", ALL, "lane 20 of the warp, which is in the mask of the shuffle, but ended without coming to it"),
        (12, "idx 14", ALL, "lane 14 of the warp, which is in the mask of the shuffle, but is no thread of the block"),
    ],
)
def test_a_finding_says_why_a_lane_takes_no_part(
    checked: MakeDevice, block: int, form: str, mask: str, why: str
) -> None:
    given = checked()
    given.work(BEGIN + shuffle(form, mask) + STORE + END, given.words(*range(32)), block=block)
    (finding,) = given.findings()
    assert f"kernel 'work' uses the value of {why}" in finding.observed
    assert "in thread (0, 0, 0) of block (0, 0, 0), at 'shfl.sync.idx.b32 %r3" in finding.observed
    assert (finding.kind, finding.seen) == (Kind.ABSENT_LANE, min(block, 16))
