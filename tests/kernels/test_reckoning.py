"""Which numbers grow evenly with the index of a thread: so many accesses are judged as ranges, and no other ones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.test_ranges import COPY, INDEX, LOADS, PARAMETERS, compare

ONE = "shr.u32 %r9, %r5, 3; "
ZERO = "sub.s32 %r8, %r5, 9; "
"""Numbers that only the launch knows."""
OWN = "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; "
LOAD = "add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r6, [%rd4];"
NEVER = "setp.ne.u32 %p5, %r5, %r5; "


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """What is reckoned does not depend on how often a kernel is launched."""
    return False


@pytest.mark.parametrize(
    ("body", "covered"),
    [
        ("neg.s32 %r4, %r4; add.s32 %r4, %r4, 63; " + COPY, 128),
        ("mul.lo.s32 %r4, %r4, 2; " + COPY, 128),
        (ONE + "mul.lo.s32 %r4, %r9, %r4; " + COPY, 128),
        (ONE + "mad.lo.s32 %r4, %r4, %r9, %r9; " + COPY, 128),
        (ONE + "mad.lo.s32 %r4, %r4, %r9, %r4; " + COPY, 128),
        ("mad.wide.s32 %rd4, %r4, 4, %rd1; ld.global.u32 %r6, [%rd4];", 64),
        ("mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd3, %rd1; ld.global.u32 %r6, [%rd4];", 64),
        ("mul.hi.u32 %r4, %r4, 4; " + COPY, 0),
        ("mul.lo.s32 %r9, %r4, %r4; and.b32 %r4, %r9, 1; " + COPY, 0),
        ("sub.s32 %r8, %r4, %r4; add.s32 %r4, %r8, 3; " + COPY, 128),
        ("setp.lt.s32 %p1, %r4, 20; setp.ge.s32 %p2, %r4, 4; and.pred %p3, %p1, %p2; @!%p3 bra end; " + COPY, 32),
        ("setp.lt.s32 %p1, %r4, 4; setp.ge.s32 %p2, %r4, 20; or.pred %p3, %p1, %p2; @%p3 bra end; " + COPY, 32),
        ("setp.lt.s32 %p1, %r4, 4; setp.ge.s32 %p2, %r4, 20; or.pred %p3, %p1, %p2; @!%p3 bra end; " + COPY, 0),
        ("setp.lt.s32 %p1, %r4, 20; not.pred %p2, %p1; @%p2 bra end; " + COPY, 40),
        ("setp.lt.s32 %p1, %r4, 20; mov.pred %p2, %p1; @!%p2 bra end; " + COPY, 40),
        ("setp.lt.s32 %p1, 19, %r4; @%p1 bra end; " + COPY, 40),
        ("setp.lt.s32 %p1, %r4, 20; setp.lt.s32 %p2, %r4, 10; xor.pred %p3, %p1, %p2; @%p3 bra end; " + COPY, 0),
        ("setp.lt.u32 %p1, %r4, %r5; @%p1 st.global.u32 [%rd2], %r4; " + COPY, 128),
        ("setp.lo.u32 %p1, %r4, %r5; @!%p1 bra end; " + COPY, 18),
        ("setp.hs.u32 %p1, %r4, %r5; @!%p1 bra end; " + COPY, 110),
        ("setp.ls.u32 %p1, %r4, %r5; @!%p1 bra end; " + COPY, 20),
        ("setp.hi.u32 %p1, %r4, %r5; @!%p1 bra end; " + COPY, 108),
        ("setp.eq.s32 %p1, %r4, %r5; @!%p1 bra end; " + COPY, 2),
        ("setp.ne.s32 %p1, %r5, %r4; @%p1 bra end; " + COPY, 2),
        ("mul.lo.s32 %r9, %r4, 2; setp.eq.s32 %p1, %r9, 10; @!%p1 bra end; " + COPY, 0),
        ("min.s32 %r4, %r4, 5; " + COPY, 0),
        ("selp.b32 %r4, 1, 2, %p5; " + COPY, 128),
        ("setp.lt.s32 %p1, %r4, 20; selp.b32 %r4, 1, 2, %p1; " + COPY, 0),
        ("cvt.u64.u32 %rd7, %r4; shl.b64 %rd3, %rd7, 2; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r6, [%rd4];", 64),
        (
            "cvt.s64.s32 %rd7, %r4; shl.b64 %rd7, %rd7, 3; shr.s64 %rd3, %rd7, 1; " + LOAD,
            64,
        ),
        (
            "cvt.s64.s32 %rd7, %r4; shl.b64 %rd7, %rd7, 2; shr.s64 %rd3, %rd7, 3; shl.b64 %rd3, %rd3, 2; " + LOAD,
            0,
        ),
        ("mov.u32 %r9, 1; shl.b32 %r4, %r4, %r9; " + COPY, 0),
        ("shl.b32 %r9, %r4, 33; add.s32 %r4, %r4, %r9; " + COPY, 0),
        ("bfe.u32 %r4, %r4, 0, 5; " + COPY, 0),
        ("shr.u32 %r4, %r4, 1; " + COPY, 0),
        ("xor.b32 %r4, %r4, 1; " + COPY, 0),
        (ZERO + "and.b32 %r9, %r4, %r8; add.s32 %r4, %r4, %r9; " + COPY, 128),
        (ZERO + "and.b32 %r9, %r8, %r4; add.s32 %r4, %r4, %r9; " + COPY, 128),
        (ZERO + "shr.u32 %r4, %r4, %r8; " + COPY, 128),
        (ONE + "and.b32 %r4, %r4, %r9; " + COPY, 0),
        (ONE + "shr.u32 %r4, %r4, %r9; " + COPY, 0),
        ("@%p5 mov.u32 %r4, 7; " + COPY, 0),
        ("setp.lt.s32 %p1, %r4, 20; @%p1 mov.u32 %r4, 7; " + COPY, 0),
        ("mov.u32 %r4, %laneid; " + COPY, 0),
        ("mov.u32 %r4, %tid.y; " + COPY, 128),
        ("cvta.to.global.u64 %rd1, %rd1; " + COPY, 128),
        ("mul.wide.s32 %rd3, %r4, 4; sub.s64 %rd4, %rd1, %rd3; ld.global.u32 %r6, [%rd4+256];", 64),
        (
            OWN + "ld.global.u32 %r6, [%rd4+4]; ld.global.u8 %r7, [%rd4+1];",
            128,
        ),
        ("mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; atom.global.add.u32 %r6, [%rd4], 1;", 0),
        ("mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.volatile.global.u32 %r6, [%rd4];", 0),
    ],
)
def test_so_many_accesses_are_judged_as_ranges(body: str, covered: int) -> None:
    memory = np.arange(128, dtype="u4")
    text = f"{INDEX}{LOADS}{NEVER}{body}end: ret;"
    assert compare(text, PARAMETERS, [1], [64], memory, np.zeros(128, "u4"), np.uint32(9)) == covered


UNEVEN = ONE + "and.b32 %r10, %r4, %r9; "
"""A number that would grow evenly if what the launch knows were 0."""


@pytest.mark.parametrize(
    "line",
    [
        "mov.u32 %r4, %r10; ",
        "add.s32 %r4, %r4, %r10; ",
        "add.s32 %r4, %r10, %r4; ",
        "sub.s32 %r4, %r4, %r10; ",
        "neg.s32 %r10, %r10; sub.s32 %r4, %r4, %r10; ",
        "mul.lo.s32 %r4, %r10, 2; ",
        "mul.lo.s32 %r4, %r9, %r10; ",
        "mad.lo.s32 %r4, %r4, %r9, %r10; ",
        "mad.lo.s32 %r4, %r10, %r9, %r4; ",
        "shl.b32 %r4, %r10, 1; ",
        "and.b32 %r10, %r10, %r9; add.s32 %r4, %r4, %r10; ",
        "shr.u32 %r10, %r10, %r8; add.s32 %r4, %r4, %r10; ",
        "cvt.s64.s32 %rd7, %r10; cvt.u32.u64 %r4, %rd7; ",
        "cvt.s64.s32 %rd7, %r10; shl.b64 %rd7, %rd7, 2; shr.s64 %rd7, %rd7, 1; cvt.u32.u64 %r4, %rd7; ",
        "setp.ne.s32 %p1, %r10, 0; @%p1 bra end; ",
        "setp.gt.s32 %p1, %r10, 0; @%p1 bra end; ",
        "setp.gt.s32 %p1, 0, %r10; @%p1 bra end; ",
        "setp.gt.s32 %p1, %r10, 0; not.pred %p2, %p1; @!%p2 bra end; ",
        "setp.lt.s32 %p1, %r4, 40; setp.lt.s32 %p2, %r10, 1; and.pred %p3, %p1, %p2; @!%p3 bra end; ",
        "setp.ge.s32 %p1, %r4, 40; setp.ge.s32 %p2, %r10, 1; or.pred %p3, %p2, %p1; @%p3 bra end; ",
    ],
)
def test_what_holds_for_a_number_only_sometimes_holds_for_what_is_made_of_it_then(line: str) -> None:
    """The threads are judged one by one where it does not hold, and as ranges where it does."""
    memory = np.arange(256, dtype="u4")
    body = f"{INDEX}{LOADS}{NEVER}{UNEVEN}{line}{COPY}end: ret;".replace(ONE, ONE + ZERO)
    for count, holds in ((9, False), (1, True)):
        text = body if count == 9 else body.replace(ZERO, "mov.u32 %r8, 0; ")
        found = compare(text, PARAMETERS, [1], [64], memory, np.zeros(256, "u4"), np.uint32(count))
        assert bool(found) == holds
