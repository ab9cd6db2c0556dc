"""Asynchronous copies and barriers in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.programs import plain_kernel as kernel

COPIES = """
.shared .align 16 .b8 room[512];
.reg .b32 %t, %a, %n; .reg .b64 %from, %to; .reg .pred %p; .reg .b32 %v<4>;
mov.u32 %t, %tid.x; ld.param.u64 %from, [p0]; ld.param.u64 %to, [p1];
mad.wide.u32 %from, %t, 16, %from; mad.wide.u32 %to, %t, 16, %to;
mov.u32 %a, room; mad.lo.u32 %a, %t, 16, %a; mov.u32 %n, 8; setp.ge.u32 %p, %t, 16;
st.shared.v4.u32 [%a], {9, 9, 9, 9};
%s
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a];
st.global.v4.u32 [%to], {%v0, %v1, %v2, %v3};
"""


@pytest.mark.parametrize(
    ("lines", "copied"),
    [
        ("cp.async.cg.shared.global [%a], [%from], 16;", 16),
        ("cp.async.cg.shared::cta.global.L2::128B [%a], [%from], 16, 16;", 16),
        ("cp.async.ca.shared.global [%a], [%from], 16, %n;", 8),
        ("cp.async.ca.shared.global.L2::cache_hint [%a], [%from], 16, 0, %from;", 0),
    ],
)
def test_what_is_copied_is_there_and_the_rest_is_zeros(lines: str, copied: int) -> None:
    given = np.arange(1, 129, dtype="u4").reshape(32, 4)
    found = np.zeros_like(given)
    kernel(COPIES.replace("%s", lines), 2).launch(1, 32, given, found)
    expected = given.copy()
    expected[:, copied // 4 :] = 0
    np.testing.assert_array_equal(found, expected)


def test_a_source_that_is_ignored() -> None:
    given = np.arange(1, 129, dtype="u4").reshape(32, 4)
    found = np.zeros_like(given)
    kernel(COPIES.replace("%s", "cp.async.ca.shared.global [%a], [%from], 8, %p;"), 2).launch(1, 32, given, found)
    expected = given.copy()
    expected[:, 2:] = 9
    expected[16:, :2] = 0
    np.testing.assert_array_equal(found, expected)


PHASES = """
.shared .align 8 .b64 barrier;
.shared .align 4 .u32 word;
.reg .b32 %t, %m, %v; .reg .b64 %to, %state; .reg .pred %p, %q;
mov.u32 %t, %tid.x; ld.param.u64 %to, [p0]; mad.wide.u32 %to, %t, 4, %to; mov.u32 %m, barrier;
setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared.b64 [%m], 64;
bar.sync 0;
setp.eq.u32 %p, %t, 63;
@%p st.shared.u32 [word], 77;
mbarrier.arrive.release.cta.shared::cta.b64 %state, [%m];
again: mbarrier.%s;
@!%p bra again;
ld.shared.u32 %v, [word]; st.global.u32 [%to], %v;
"""


@pytest.mark.parametrize(
    "wait",
    ["test_wait.shared.b64 %p, [%m], %state", "try_wait.parity.acquire.cta.shared::cta.b64 %p, [%m], 0, 1000"],
)
def test_threads_wait_for_the_end_of_a_phase(wait: str) -> None:
    found = np.zeros(64, "u4")
    kernel(PHASES.replace("%s;", f"{wait};"), 1).launch(1, 64, found)
    assert (found == 77).all()


def test_copies_count_bytes() -> None:
    lines = """
.shared .align 16 .b8 room[64]; .shared .align 8 .b64 barrier;
.reg .b32 %v<4>; .reg .b64 %from, %to; .reg .pred %p;
ld.param.u64 %from, [p0]; ld.param.u64 %to, [p1];
mbarrier.init.shared::cta.b64 [barrier], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 64;
mbarrier.test_wait.parity.shared.b64 %p, [barrier], 0; selp.u32 %v0, 1, 0, %p; st.global.u32 [%to], %v0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%from], 64, [barrier];
mbarrier.test_wait.parity.shared.b64 %p, [barrier], 0; selp.u32 %v0, 1, 0, %p; st.global.u32 [%to+4], %v0;
fence.proxy.async;
cp.async.bulk.global.shared::cta.bulk_group [%to+16], [room], 64;
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
"""
    given, found = np.arange(16, dtype="u4"), np.zeros(20, "u4")
    kernel(lines, 2).launch(1, 1, given, found)
    assert found.tolist() == [0, 1, 0, 0, *range(16)]


def test_how_many_arrivals_are_missing() -> None:
    lines = """
.shared .align 8 .b64 barrier; .reg .b32 %v; .reg .b64 %to, %s; .reg .pred %p;
ld.param.u64 %to, [p0];
mbarrier.init.shared.b64 [barrier], 5;
mbarrier.arrive.shared.b64 %s, [barrier], 2; mbarrier.pending_count.b64 %v, %s; st.global.u32 [%to], %v;
mbarrier.arrive_drop.shared.b64 %s, [barrier]; mbarrier.pending_count.b64 %v, %s; st.global.u32 [%to+4], %v;
mbarrier.arrive.noComplete.shared.b64 %s, [barrier], 1; mbarrier.arrive.shared.b64 _, [barrier];
mbarrier.arrive.shared.b64 %s, [barrier]; mbarrier.pending_count.b64 %v, %s; st.global.u32 [%to+8], %v;
"""
    found = np.zeros(3, "u4")
    kernel(lines, 1).launch(1, 1, found)
    assert found.tolist() == [5, 3, 4]


def phases(lines: str) -> list[int]:
    """Run lines with a barrier for one arrival, where ``ask`` notes whether its first phase has ended."""
    questions = lines.count("ask;")
    for number in range(questions):
        asks = (
            "mbarrier.test_wait.parity.shared.b64 %p, [barrier], 0;\n"
            f"selp.u32 %v, 1, 0, %p;\nst.global.u32 [%to+{4 * number}], %v;"
        )
        lines = lines.replace("ask;", asks, 1)
    body = (
        ".shared .align 8 .b64 barrier; .shared .align 16 .b8 room[16];\n.reg .b32 %v; .reg .b64 %to; .reg .pred %p;\n"
        f"ld.param.u64 %to, [p0];\nmbarrier.init.shared.b64 [barrier], 1;\n{lines}"
    )
    found = np.zeros(max(4, questions), "u4")
    kernel(body, 1).launch(1, 1, found)
    return [int(each) for each in found[:questions]]


def test_a_phase_ends_when_no_arrival_and_no_byte_is_missing() -> None:
    expect, complete = (
        f"mbarrier.{name}.relaxed.cta.shared::cta.b64 [barrier]," for name in ("expect_tx", "complete_tx")
    )
    arrive = "mbarrier.arrive.shared.b64 _, [barrier];"
    assert phases(f"ask; {arrive} ask;") == [0, 1]
    assert phases(f"{expect} 8; {arrive} ask; {complete} 4; ask; {complete} 4; ask;") == [0, 0, 1]
    assert phases(f"{expect} 8; {expect} 4; {complete} 12; ask; {arrive} ask;") == [0, 1]


def test_a_barrier_that_is_no_longer_valid_is_zero() -> None:
    body = (
        ".shared .align 8 .b64 barrier; .reg .b64 %to, %v;\nld.param.u64 %to, [p0];\n"
        "mbarrier.init.shared.b64 [barrier], 3;\nld.shared.b64 %v, [barrier];\nst.global.b64 [%to], %v;\n"
        "mbarrier.inval.shared.b64 [barrier];\nld.shared.b64 %v, [barrier];\nst.global.b64 [%to+8], %v;"
    )
    found = np.ones(2, "u8")
    kernel(body, 1).launch(1, 1, found)
    assert found[0] != 0
    assert found[1] == 0


@pytest.mark.parametrize(("word", "counts"), [("", False), (".noinc", True)])
def test_copies_arrive(word: str, counts: bool) -> None:
    copy = "cp.async.ca.shared.global [room], [%to], 4;"
    assert phases(f"{copy} cp.async.mbarrier.arrive{word}.shared.b64 [barrier]; ask;") == [int(counts)]


@pytest.mark.parametrize("end", ["cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"])
def test_whoever_waits_for_copies_has_them(end: str) -> None:
    given, found = np.arange(1, 129, dtype="u4").reshape(32, 4), np.zeros((32, 4), "u4")
    text = COPIES.replace("cp.async.commit_group;\ncp.async.wait_group 0;", end)
    kernel(text.replace("%s", "cp.async.cg.shared.global [%a], [%from], 16;"), 2).launch(1, 32, given, found)
    np.testing.assert_array_equal(found, given)
